package gvisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"

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
		return startWithoutCores(cmd)
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
	return startWithoutCores(cmd)
}

// startWithoutCores starts a process for whose crash, and that of what it starts, the
// kernel writes no core file and starts no handler of the host: they hold what the
// sandbox holds. It has the limit before it has started anything.
func startWithoutCores(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	none := unix.Rlimit{Cur: 1, Max: 1} // with 0 a handler would be started
	var now unix.Rlimit
	err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_CORE, nil, &now)
	if err == nil && now.Max > none.Max {
		err = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_CORE, &none, nil)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended, and Wait says how
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return os.NewSyscallError("prlimit", err)
	}
	return nil
}

// null is a file that is always empty, for what must have descriptors and needs
// none.
func null() (*os.File, error) { return os.OpenFile(os.DevNull, os.O_RDWR, 0) }
