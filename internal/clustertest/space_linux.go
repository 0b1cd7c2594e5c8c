package clustertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// space is a network namespace with mounts of its own, and a thread in it. It is there
// for as long as the thread or any process in it is, and no other process sees it.
type space struct {
	ns   *os.File
	name string // as /proc/PID/ns/net has it
	jobs chan func()
	end  chan struct{}
}

func newSpace() (*space, error) {
	s := &space{jobs: make(chan func()), end: make(chan struct{})}
	made := make(chan error)
	go func() {
		defer close(s.end)
		runtime.LockOSThread() // for good: the thread is not fit for anything else
		err := s.enter()
		made <- err
		if err != nil {
			return
		}
		for job := range s.jobs {
			job()
		}
	}()
	return s, <-made
}

func (s *space) enter() (err error) {
	const own = "/proc/thread-self/ns/net"
	if err := syscall.Unshare(syscall.CLONE_NEWNET | syscall.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if s.name, err = os.Readlink(own); err != nil {
		return err
	}
	s.ns, err = os.Open(own)
	return err
}

// run does something on the thread in the space.
func (s *space) run(f func()) {
	done := make(chan struct{})
	s.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

// path names the namespace for other processes.
func (s *space) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.ns.Fd()) }

// ip runs the program ip in the space.
func (s *space) ip(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var out []byte
	var err error
	s.run(func() { out, err = exec.CommandContext(ctx, "ip", args...).CombinedOutput() })
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// start starts a program in the space, which does not outlive this process.
func (s *space) start(cmd *exec.Cmd) (err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	s.run(func() { err = cmd.Start() })
	return err
}

// read is what is in a file, as the space has it.
func (s *space) read(path string) (text []byte, err error) {
	s.run(func() { text, err = os.ReadFile(path) })
	return text, err
}

// processes returns every process in the space.
func (s *space) processes() []int {
	var all []int
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != s.name {
			continue // it may have gone meanwhile
		}
		if pid, err := strconv.Atoi(strings.Split(link, "/")[2]); err == nil && pid != os.Getpid() {
			all = append(all, pid)
		}
	}
	return all
}

// killAll ends every process in the space.
func (s *space) killAll(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		all := s.processes()
		if len(all) == 0 {
			return nil
		}
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes %d do not end", all)
		case <-tick.C:
		}
	}
}

// close gives the space back.
func (s *space) close() {
	close(s.jobs)
	<-s.end
	_ = s.ns.Close() // nothing was written
}
