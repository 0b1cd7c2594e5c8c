package forkexec

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is one line of the table in /proc. A pid that was used again has
// another start.
type process struct {
	pid, parent int
	start       string
}

// errGone says that there is no such process.
var errGone = errors.New("no such process")

// read returns what /proc says about a pid.
func read(pid int) (process, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return process{}, errGone
	}
	if err != nil {
		return process{}, err
	}
	return parse(pid, text)
}

func parse(pid int, text []byte) (process, error) {
	// The name of a program may hold anything, also parentheses.
	end := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[end+1:]))
	const parent, start = 1, 19
	if end < 0 || len(fields) <= start {
		return process{}, fmt.Errorf("process table: process %d has %d fields", pid, len(fields))
	}
	p, err := strconv.Atoi(fields[parent])
	if err != nil {
		return process{}, fmt.Errorf("process table: process %d: %w", pid, err)
	}
	return process{pid: pid, parent: p, start: fields[start]}, nil
}

// table returns every process that is to be seen, zombies included: a process
// whose first thread ended looks like one while its other threads run. It does not
// read the pids in skip. The newest processes come first, so that a process that
// lives for a moment is found before it ends.
func table(skip map[int]process) ([]process, error) {
	if err := ownProc(); err != nil {
		return nil, err
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(names))
	for _, name := range slices.Backward(names) {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if _, ok := skip[pid]; ok {
			continue
		}
		p, err := read(pid)
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return nil, err // somebody would be forgotten
		}
		all = append(all, p)
	}
	return all, nil
}

// newestPID returns the number that was given last in this pid namespace, which
// changes with each process and thread that is made. Where /proc does not tell,
// it is always the same.
func newestPID() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return string(text[bytes.LastIndexByte(text, ' ')+1:])
}

// ownProc fails where /proc shows another pid namespace: its numbers would be
// those of other processes here.
func ownProc() error {
	self, err := os.Readlink("/proc/self")
	if err != nil {
		return fmt.Errorf("process table: %w", err)
	}
	if self != strconv.Itoa(os.Getpid()) {
		return errors.New("process table: /proc belongs to another pid namespace")
	}
	return nil
}

// below returns the processes of a table that descend from roots, and the roots.
func below(all []process, roots []int) []process {
	children := map[int][]process{}
	byPID := map[int]process{}
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
		byPID[p.pid] = p
	}
	var tree []process
	seen := map[int]bool{}
	add := func(p process) {
		if !seen[p.pid] {
			seen[p.pid] = true
			tree = append(tree, p)
		}
	}
	for _, pid := range roots {
		if p, ok := byPID[pid]; ok {
			add(p)
		}
	}
	for i := 0; i < len(tree); i++ {
		for _, p := range children[tree[i].pid] {
			add(p)
		}
	}
	return tree
}

// Children returns the pids of the children of a process, dead ones that nobody
// has reaped included. An agent that is the reaper of its sandbox finds the
// survivors of ended runs so: they are the children it did not start.
func Children(pid int) ([]int, error) {
	if err := ownProc(); err != nil {
		return nil, err
	}
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/[0-9]*/children")
	if err != nil {
		return nil, err
	}
	if len(lists) == 0 {
		// The kernel was built without CONFIG_PROC_CHILDREN, or pid is gone.
		return scanChildren(pid)
	}
	var pids []int
	for _, list := range lists {
		text, err := os.ReadFile(list) //nolint:gosec // a name that the kernel gave
		if err != nil {
			continue // the thread ended; its children went to another
		}
		for field := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(field); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids, nil
}

func scanChildren(pid int) ([]int, error) {
	all, err := table(nil)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range all {
		if p.parent == pid {
			pids = append(pids, p.pid)
		}
	}
	return pids, nil
}

// handle opens a process that is still the one in the table.
func (p process) handle() (fd int, err error) {
	fd, err = unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, errGone
	}
	if err != nil {
		return -1, err
	}
	now, err := read(p.pid)
	if err == nil && now.start != p.start {
		err = errGone
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// signal sends a signal to the process, and to no other that has its number by
// now. Whether it arrived, the next look at the table says.
func (p process) signal(sig unix.Signal) {
	if fd, err := p.handle(); err == nil {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		_ = unix.Close(fd)
	}
}

// dead waits until all threads of the process have ended, for at most so many
// milliseconds. What cannot be found out is not dead.
func (p process) dead(wait int) bool {
	fd, err := p.handle()
	if err != nil {
		return errors.Is(err, errGone)
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, wait) //nolint:gosec // descriptors are small
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}
