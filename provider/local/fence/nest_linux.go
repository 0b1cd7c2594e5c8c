package fence

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
)

// Nest is a program of the plan's root that runs beside the sandboxes and in none
// of them, with the spawner's privileges: it puts copies of itself into them. It
// must never be given anything of what runs there.
type Nest struct {
	Argv, Env []string
}

func (n *Nest) encode(e *protocol.Encoder) {
	e.List(n.Argv)
	e.List(n.Env)
}

func (n *Nest) decode(d *protocol.Decoder) {
	n.Argv, n.Env = d.List(maxEntries, maxText), d.List(maxEntries, maxText)
}

// nestSpaces are its own: it sees no network and nothing that is shared.
const nestSpaces = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// nest starts one. The files become its standard input and descriptor 3. It is
// killed with the spawner.
func (s *spawner) nest(n Nest, files []int) (pidfd int, err error) {
	if len(files) != 2 || len(n.Argv) == 0 {
		return -1, protocol.ErrMalformed
	}
	path, err := lookPath(n.Argv[0], n.Env)
	if err != nil {
		return -1, err
	}
	var given []*os.File
	defer func() {
		for _, f := range given {
			_ = f.Close()
		}
	}()
	for _, fd := range []int{files[0], s.builder.null, s.builder.null, files[1]} {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return -1, os.NewSyscallError("fcntl", err)
		}
		given = append(given, os.NewFile(uintptr(dup), "nest"))
	}
	fd := -1
	p, err := os.StartProcess(path, n.Argv, &os.ProcAttr{
		Dir: "/", Env: n.Env, Files: given,
		Sys: &syscall.SysProcAttr{Cloneflags: nestSpaces, Setsid: true, PidFD: &fd},
	})
	if err != nil {
		return -1, err
	}
	_ = p.Release() // who reaps all children reaps it
	select {
	case s.born <- struct{}{}:
	default:
	}
	return fd, nil
}

// lookPath finds a program as the programs of a sandbox would.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, v := range env {
		dirs, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(dirs) {
			path := filepath.Join(dir, name)
			if unix.Access(path, unix.X_OK) == nil {
				return path, nil
			}
		}
	}
	return "", &os.PathError{Op: "find", Path: name, Err: unix.ENOENT}
}

// walls opens the rules that hold in a sandbox, which its first process names by a
// pidfd, for another process that goes there.
func (t Tools) walls(layers bool, process int) (Done, error) {
	ruleset := -1
	err := apart(func() (err error) {
		if err := unix.Setns(process, unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("setns", err)
		}
		ruleset, _, err = landlock.Open(walls(-1, layers, false))
		return err
	})
	if err != nil {
		return Done{}, err
	}
	return Done{Files: []int{ruleset}}, nil
}
