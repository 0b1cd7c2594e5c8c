package forkexec_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/forkexec"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

// orphanage is a reaper that is left many children, and finds them all.
func orphanage([]string) error {
	o, err := forkexec.NewOrphans()
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	if list, err := o.List(nil); err != nil || len(list) > 0 {
		return fmt.Errorf("at first there are %v, %w", list, err)
	}
	const script = `i=0; while [ $i -lt 200 ]; do sleep 1000 >/dev/null & echo $!; i=$((i+1)); done`
	pid, handle, err := forkexec.StartHandled(&forkexec.Command{
		Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Files: []int{0, int(w.Fd()), 2}, Reaper: true,
	})
	if err != nil {
		return err
	}
	_ = w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	var want []int
	for line := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			return err
		}
		want = append(want, n)
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 10_000); n != 1 || err != nil {
		return fmt.Errorf("the handle does not tell of the end: %w", err)
	}
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
		return err
	}
	list, err := o.List(nil)
	slices.Sort(list)
	slices.Sort(want)
	if err != nil || !slices.Equal(list, want) {
		return fmt.Errorf("found %v, want %v: %w", list, want, err)
	}
	for _, pid := range list {
		_ = unix.Kill(pid, unix.SIGKILL)
		if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
			return err
		}
	}
	if list, err = o.List(list); err != nil || len(list) > 0 {
		return fmt.Errorf("at last there are %v, %w", list, err)
	}
	return nil
}

func TestOrphans(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	linuxtest.OK(t, linuxtest.Child{Name: "orphanage", Clone: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUSER})
}

// deafened gets signals that would end it, and starts programs that hear all.
func deafened([]string) error {
	forkexec.Deafen()
	for sig := unix.Signal(1); sig <= 64; sig++ {
		if err := unix.Kill(os.Getpid(), sig); err != nil {
			return fmt.Errorf("signal %d: %w", sig, err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	_ = r.Close()
	if _, err := w.WriteString("x"); !errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("a pipe that nobody reads: %w", err)
	}
	for _, sig := range []string{"HUP", "INT", "PIPE", "TERM", "USR1", "URG"} {
		pid, err := forkexec.Start(&forkexec.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", "kill -" + sig + " $$"}, Files: []int{0, 1, 2}})
		if err != nil {
			return err
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
			return err
		}
		if status.Signaled() != (sig != "URG") {
			return fmt.Errorf("a program that gets %s ends with %#x", sig, uint32(status))
		}
	}
	return nil
}

func TestDeafen(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	linuxtest.OK(t, linuxtest.Child{Name: "deafened", Clone: unix.CLONE_NEWPID | unix.CLONE_NEWUSER})
}
