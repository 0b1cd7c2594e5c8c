// Package sdktest runs the SDKs that others wrote, as they are published, against a
// server of Cove, and writes down what works: docs/compat.md is the table of its last
// run. The cases in testdata are written as users of the SDKs write programs; they
// know nothing of Cove. scripts/sdks.sh installs the SDKs from the lock files here.
//
// It must not contain anything that a server needs, and a case must not be bent to
// what Cove does: what is different is said in the table, with the reason.
package sdktest
