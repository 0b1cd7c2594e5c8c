package gvisor

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// hunt kills the processes of a sandbox by what they were started with, where
// nothing else knows them any more. It returns when none is left.
func (h *hostSide) hunt(ctx context.Context, name string) error {
	for {
		left, err := h.kill(name)
		if err != nil || left == 0 {
			return err
		}
		tick := time.NewTimer(10 * time.Millisecond)
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return ctx.Err()
		}
	}
}

// kill kills those that are there, and says how many there were.
func (h *hostSide) kill(name string) (int, error) {
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	n := 0
	for _, path := range list {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// Read when we hold it: the number may be another's by now.
		if text, err := os.ReadFile(path); err == nil && h.isOf(name, text) { //nolint:gosec // of /proc
			n++
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		_ = unix.Close(fd)
	}
	return n, nil
}

// isOf reports whether a command line is that of a part of a sandbox of ours.
func (h *hostSide) isOf(name string, cmdline []byte) bool {
	args := bytes.Split(cmdline, []byte{0})
	return bytes.HasPrefix(args[0], []byte("runsc")) &&
		bytes.Contains(cmdline, []byte(filepath.Join(h.cfg.Dir, runDir))) && bytes.Contains(cmdline, []byte(name))
}
