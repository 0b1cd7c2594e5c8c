package escape

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func becomeRoot(mission) verdict {
	var t tally
	if os.Getuid() == 0 && status("NoNewPrivs") == "" {
		t.through("the program is root already")
	}
	t.make(
		call{name: "setuid", do: sys(unix.SYS_SETUID, 0)},
		call{name: "setresuid", do: sys(unix.SYS_SETRESUID, 0, 0, 0)},
		call{name: "setgid", do: sys(unix.SYS_SETGID, 0)},
		call{name: "setgroups", do: sys(unix.SYS_SETGROUPS, 0, 0)},
		call{name: "chown to root", do: func() error { return ownByRoot(0o4755) }},
	)
	if found := setuidPrograms(); len(found) > 0 && status("NoNewPrivs") != "1" {
		t.through("setuid programs work: " + found[0])
	} else if len(found) > 0 {
		t.stop("no_new_privs", "setuid programs")
	}
	return t.verdict()
}

// ownByRoot makes a program and gives it to root.
func ownByRoot(mode uint32) error {
	const name = "suid"
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(name) }()
	if err := unix.Chown(name, 0, 0); err != nil {
		return err
	}
	return unix.Chmod(name, mode)
}

// setuidPrograms returns programs that would run as their owner.
func setuidPrograms() []string {
	var found []string
	for _, dir := range []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/bin", "/sbin"} {
		entries, _ := os.ReadDir(dir) // nothing where there is none
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			var s unix.Statfs_t
			if info, err := e.Info(); err != nil || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) == 0 {
				continue
			}
			if unix.Statfs(name, &s) == nil && s.Flags&unix.ST_NOSUID == 0 {
				found = append(found, name)
			}
		}
	}
	return found
}

func takeCapabilities(mission) verdict {
	var t tally
	for _, set := range []string{"CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd"} {
		if v := status(set); strings.Trim(v, "0") != "" {
			t.through(set + " is " + v)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := [2]unix.CapUserData{{Effective: ^uint32(0), Permitted: ^uint32(0)}, {Effective: 1<<9 - 1, Permitted: 1<<9 - 1}}
	t.make(
		call{name: "capset", do: func() error { return unix.Capset(&header, &all[0]) }},
		call{name: "raising an ambient capability", do: func() error {
			return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0)
		}},
	)
	return t.verdict()
}

func raisePriorities(m mission) verdict {
	var t tally
	for name, resource := range map[string]int{"open files": unix.RLIMIT_NOFILE, "processes": unix.RLIMIT_NPROC, "locked memory": unix.RLIMIT_MEMLOCK} {
		var l unix.Rlimit
		if unix.Getrlimit(resource, &l) != nil || l.Max == unix.RLIM_INFINITY {
			continue // there is nothing to raise
		}
		l.Max++
		t.make(call{name: "more " + name, do: func() error { return unix.Setrlimit(resource, &l) }})
	}
	if m.Apart {
		t.stop("a kernel of its own, whose priorities the host's does not know", "priorities")
		return t.verdict()
	}
	t.make(
		call{name: "nice -20", do: func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -20) }},
		call{name: "real time", do: sys(unix.SYS_SCHED_SETSCHEDULER, 0, 1, at(int32(1)))},
		call{name: "real time for disks", do: sys(unix.SYS_IOPRIO_SET, 1, 0, 1<<13)},
		call{name: "oom_score_adj", do: func() error { return os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0) }},
	)
	return t.verdict()
}
