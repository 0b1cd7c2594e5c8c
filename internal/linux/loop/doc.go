// Package loop makes block devices of files.
//
// A [Device] belongs to who uses it: it is gone when the last descriptor of it
// is closed and nothing of it is mounted, also when that is the end of a
// process. The package must not mount anything, nor touch a device that it did
// not make.
//
// Minimum kernel: Linux 5.8, with the driver loop.
package loop
