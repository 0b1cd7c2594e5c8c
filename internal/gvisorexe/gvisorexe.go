//go:build linux

package gvisorexe

import (
	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/packed"
)

// imageID is a hash of the executable, which the build writes here.
var imageID string

// Installed returns the path of the executable, a file in dir that is made by the
// first call of a build; those of other builds go away. Only the caller's user may
// write to dir. A build without gVisor inside is Unavailable.
func Installed(dir string) (string, error) {
	program := packed.Program{Name: "cove-gvisor", Title: "gVisor", Image: image, ID: imageID}
	if !program.Embedded() {
		return "", cove.Errorf(cove.Unavailable, "this build has no gVisor inside").
			Remedy("build cove with make build, or set COVE_GVISOR_RUNSC to the path of a runsc")
	}
	return program.Installed(dir)
}
