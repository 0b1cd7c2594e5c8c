//go:build linux

package mailbox

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/agent"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// startAgent starts an agent as a user, which waits for doors. Where one does so
// already, it ends at once.
func startAgent(uid int) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	attr := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)} //nolint:gosec // 31 bits
	}
	proc, err := startPoor(&os.ProcAttr{Dir: "/", Env: agent.Env(), Files: []*os.File{null, null, null}, Sys: attr})
	if err != nil {
		return nil, err
	}
	_ = os.WriteFile("/proc/"+strconv.Itoa(proc.Pid)+"/oom_score_adj", []byte("0"), 0) // not ours
	return proc, nil
}

// beside is how to start an agent, or a door to it. Where we are not root, it is known
// as ours by its parent.
func beside(word string) []string {
	args := []string{agent.Name, word}
	if os.Geteuid() != 0 {
		args = append(args, protocol.BesideWord)
	}
	return args
}

// startDoor opens a door to the agent, and returns the other end of its link.
func startDoor() (*os.File, *os.Process, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "door")
	defer func() { _ = theirs.Close() }()
	_ = unix.SetNonblock(fds[0], true)
	ours := os.NewFile(uintptr(fds[0]), "link")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	defer func() { _ = null.Close() }()
	proc, err := os.StartProcess(self, beside(protocol.DoorWord), &os.ProcAttr{Dir: "/", Env: agent.Env(), Files: []*os.File{theirs, theirs, null}})
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, proc, nil
}

// startPoor starts an agent that can gain nothing by executing something, and leaves
// no core files. What a thread gave up its children do not have, so it is a thread
// that ends with this.
func startPoor(attr *os.ProcAttr) (*os.Process, error) {
	type started struct {
		proc *os.Process
		err  error
	}
	done := make(chan started)
	go func() {
		runtime.LockOSThread()
		err := giveUp()
		var proc *os.Process
		if err == nil {
			proc, err = os.StartProcess(self, beside(protocol.ListenWord), attr)
		}
		done <- started{proc, err}
	}()
	s := <-done
	return s.proc, s.err
}

func giveUp() error {
	const most = 64
	for c := uintptr(0); c < most && os.Geteuid() == 0; c++ {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil {
			break // past the last that this kernel knows
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return os.NewSyscallError("prctl", err)
		}
	}
	return errors.Join(
		os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)),
		os.NewSyscallError("setrlimit", unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})),
	)
}
