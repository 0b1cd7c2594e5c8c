package forkexec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{
		"report":   report,
		"hunt":     playHunt,
		"headless": headless,
		"full":     fullTable,
		"locked":   locked,
		"deafened": deafened,
		"orphanage": func(args []string) error {
			if err := ownNamespace(); err != nil {
				return err
			}
			return orphanage(args)
		},
		"elsewhere": func([]string) error {
			return expectForeignProc()
		},
	})
}

// state is what a started program finds.
type state struct {
	Args, Env   []string
	Dir         string
	Files       map[string]string
	Leader      bool // of a session
	GroupLeader bool
	Reaper      bool
	NoFile      unix.Rlimit
	Blocked     string // signals
	HasTerminal bool
}

func report(args []string) error {
	s := state{Args: args, Env: os.Environ(), Files: map[string]string{}}
	s.Dir, _ = os.Getwd()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		// Go's runtime opens some of its own.
		if err == nil && !strings.Contains(to, "anon_inode:[event") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			s.Files[e.Name()] = to
		}
	}
	sid, err := unix.Getsid(0)
	if err != nil {
		return err
	}
	s.Leader, s.GroupLeader = sid == os.Getpid(), unix.Getpgrp() == os.Getpid()
	var reaper int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, pointer(&reaper), 0, 0, 0); err != nil {
		return err
	}
	s.Reaper = reaper == 1
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &s.NoFile); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(status), "SigBlk:\t")
	s.Blocked, _, _ = strings.Cut(rest, "\n")
	if tty, err := os.Open("/dev/tty"); err == nil {
		s.HasTerminal = true
		_ = tty.Close()
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(text)) //nolint:forbidigo // this is the report
	return err
}
