// Package archivetest is what every cove.Archives must do, wherever it keeps its
// files.
//
// It must not know of any implementation.
package archivetest
