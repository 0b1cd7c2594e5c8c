//go:build lean

// Command cove, lean: what make build puts around the whole program. It runs
// programs in local sandboxes itself, and executes the whole program for
// everything else, so that starting a run does not wait for what only servers
// and clients need. It must not hold anything of its own.
package main

import (
	_ "embed"
	"io"
	"os"
	"runtime"

	"github.com/cove-sandbox/cove/internal/cli"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/whole"
	"github.com/cove-sandbox/cove/provider/local"
)

// image is the whole program. The file is not in the tree: scripts/build.sh makes
// it and lays it over this place.
//
//go:embed whole.bin
var image []byte

// imageID is a hash of it, which the build writes here.
var imageID string

func main() {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		// The sandbox begins with a thread that cannot be the first of the process,
		// where nobody waits for another while that one is taken.
		runtime.LockOSThread()
		local.Ahead()
		runtime.UnlockOSThread()
		if code, ok := cli.Lean(); ok {
			os.Exit(code)
		}
	}
	home, _ := config.Home(config.Environment, os.Geteuid() == 0) // without one the copy is in memory
	err := whole.Program{Image: image, ID: imageID}.Exec(home, os.Args, os.Environ())
	_, _ = io.WriteString(os.Stderr, "cove: the whole program cannot be executed: "+err.Error()+"\n")
	os.Exit(125)
}
