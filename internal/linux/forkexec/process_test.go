package forkexec_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/forkexec"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

func TestParseStat(t *testing.T) {
	const tail = " 8 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 768802 2990080 411\n"
	for _, text := range []string{"10 (sh) S 7 8" + tail, "10 (a b) S 1 (x) R 9 ) S 7 8" + tail, "10 (\n) S 7 8" + tail} {
		if parent, start, err := forkexec.ParseStat(10, text); err != nil || parent != 7 || start != "768802" {
			t.Errorf("%q: parent %d, start %s: %v", text, parent, start, err)
		}
	}
	for _, text := range []string{"", "10 sh S 7", "10 (sh) S 7", "10 (sh) S x 8" + tail} {
		if _, _, err := forkexec.ParseStat(10, text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// fullTable has no descriptor left: whoever cannot be looked at must not be
// taken for dead.
func fullTable([]string) error {
	if err := ownNamespace(); err != nil {
		return err
	}
	// The runtime needs some of its own, and opens them when it first waits.
	timer := time.AfterFunc(time.Hour, func() {})
	defer timer.Stop()
	pid, err := forkexec.Start(&forkexec.Command{Path: "/bin/sh", Argv: []string{"sh", "-c", "sleep 1000 & read x"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Files: []int{0}, Reaper: true})
	if err != nil {
		return err
	}
	defer func() {
		_ = unix.Kill(pid, unix.SIGKILL)
	}()
	var used []int
	for {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		used = append(used, fd)
	}
	err = forkexec.KillTree(context.Background(), pid)
	for _, fd := range used {
		_ = unix.Close(fd)
	}
	if !errors.Is(err, unix.EMFILE) {
		return fmt.Errorf("a hunt without descriptors: %w", err)
	}
	return forkexec.KillTree(context.Background(), pid)
}

func TestKillTreeWithoutDescriptors(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	linuxtest.OK(t, linuxtest.Child{Name: "full", Stdin: r, User: true, Clone: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS})
}
