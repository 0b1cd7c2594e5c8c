//go:build linux

// Command cove-gvisor is gVisor, built from its Go module: what a sandbox of
// provider/gvisor runs under. Nothing has to be installed for it: it is runsc
// under that name and under the names that runsc gives to its own processes, and
// with the argument "warden" the process that provider/gvisor asks to do what
// runsc would otherwise be started for.
//
// It must not be linked into cove, whose start would pay for it, and it decides
// nothing: what a sandbox may do is written by provider/gvisor.
package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/cove-sandbox/cove/provider/gvisor/warden"
)

func main() {
	switch {
	case runsc(os.Args[0]):
		commands()
	case len(os.Args) > 1 && os.Args[1] == "runsc":
		os.Args = append([]string{"runsc"}, os.Args[2:]...)
		commands()
	case len(os.Args) > 1 && os.Args[1] == warden.Word:
		os.Exit(guard(os.Args[2:]))
	}
	_, _ = io.WriteString(os.Stderr, "usage: cove-gvisor runsc|warden ARGUMENTS\n")
	os.Exit(2)
}

// runsc reports whether the name is one that runsc has, or gives to a process of
// its own by executing itself: the first process of a sandbox has no environment,
// so its name is all there is to tell.
func runsc(name string) bool {
	switch name {
	case "runsc-sandbox", "runsc-gofer", "runsc-exec", "/proc/self/exe":
		return true
	default:
		return filepath.Base(name) == "runsc"
	}
}
