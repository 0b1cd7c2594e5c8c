package gvisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/cove-sandbox/cove/internal/linux/cgroup"
)

// joining is a script that puts itself into control groups, by as many files as
// its first argument says, and becomes the rest of its arguments.
const joining = `n=$1; shift
while [ "$n" -gt 0 ]; do f=$((n+2)); eval "echo 0 >&$f && exec $f>&-" || exit 125; n=$((n-1)); done
exec "$@"`

// mostHierarchies is how many of them the script can name.
const mostHierarchies = 7

// startIn starts a process that is in a control group before it begins, as all
// that it starts will be.
func startIn(g *cgroup.Group, cmd *exec.Cmd) error {
	if g == nil {
		return cmd.Start()
	}
	files, err := g.Tasks()
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if err != nil {
		return err
	}
	if len(files) > mostHierarchies {
		return fmt.Errorf("there are %d hierarchies of control groups, which are too many: %w", len(files), errors.ErrUnsupported)
	}
	if fd, ok := g.FD(); ok {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
	}
	if len(files) > 0 {
		cmd.ExtraFiles = files
		cmd.Args = append([]string{"sh", "-c", joining, "sh", strconv.Itoa(len(files)), cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
	return cmd.Start()
}

// null is a file that is always empty, for what must have descriptors and needs
// none.
func null() (*os.File, error) { return os.OpenFile(os.DevNull, os.O_RDWR, 0) }
