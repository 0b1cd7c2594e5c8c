// Package s3test runs a real S3 server for tests, on the loopback and over a folder
// of its own: the executable that scripts/s3.sh builds.
//
// It must not be imported by what is not a test, and must leave no process.
package s3test
