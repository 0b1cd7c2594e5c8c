package escape

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// writable opens every file below a directory for writing, and closes it.
func (t *tally) writable(dir string, skip func(name string) bool) {
	visited := 0
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if visited++; visited > maxVisited {
			return filepath.SkipAll
		}
		if err != nil {
			t.stop(meaning(err), "")
			return nil
		}
		if skip(name) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
			t.stop("something else is mounted over it", name)
			return nil
		}
		if by := reachable(name, unix.O_WRONLY); by != "" {
			t.stop(by, name)
		} else {
			t.through("opened " + name + " for writing")
		}
		return nil
	})
	if err != nil {
		t.stop(meaning(err), "")
	}
}

// procWrites leaves out the processes, as a program may change its own, and
// pressure, which everybody may ask to be told about.
func procWrites(mission) verdict {
	var t tally
	for _, name := range []string{"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches"} {
		if by := reachable(name, unix.O_WRONLY); by != "" {
			t.stop(by, name)
		} else {
			t.through("opened " + name + " for writing")
		}
	}
	t.writable("/proc", func(name string) bool {
		first := strings.TrimPrefix(name, "/proc/")
		return first != "" && first[0] >= '0' && first[0] <= '9' || first == "self" || first == "thread-self" || first == "pressure"
	})
	return t.verdict()
}

func sysWrites(mission) verdict {
	var t tally
	t.writable("/sys", func(string) bool { return false })
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"} {
		if err := os.Mkdir(filepath.Join(dir, Name), 0o755); err == nil {
			_ = os.Remove(filepath.Join(dir, Name))
			t.through("made a control group in " + dir)
		}
	}
	return t.verdict()
}

func procSecrets(mission) verdict {
	var t tally
	for _, name := range []string{"/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/dev/kmem", "/dev/port", "/proc/vmcore", "/sys/kernel/debug", "/sys/kernel/tracing/trace", "/sys/firmware/efi/efivars"} {
		text, err := content(name)
		switch {
		case err != nil:
			t.stop(meaning(err), name)
		case len(text) > 0:
			t.through("read " + name)
		}
	}
	for _, name := range []string{"/proc/kallsyms", "/proc/modules", "/proc/iomem"} {
		if leaksAddresses(name) {
			t.through(name + " shows the kernel's addresses")
		}
	}
	t.make(call{name: "syslog", do: sys(unix.SYS_SYSLOG, 10), twin: sys(unix.SYS_SYSLOG, ^uintptr(0))})
	return t.verdict()
}

// procMachine reads what programs can do without. What a kernel of the sandbox's own
// says, the host compares.
func procMachine(m mission) verdict {
	var t tally
	for _, name := range []string{
		"bootconfig", "cmdline", "config.gz", "diskstats", "interrupts", "key-users", "keys", "latency_stats", "modules", "partitions",
		"pressure/cpu", "pressure/io", "pressure/irq", "pressure/memory", "sched_debug", "schedstat", "softirqs", "swaps", "timer_list",
	} {
		name = "/proc/" + name
		text, err := content(name)
		switch {
		case err != nil:
			t.stop(meaning(err), name)
		case len(text) == 0:
			t.stop("nothing is in it", name)
		case m.Apart:
			say(wordFact + name + " " + digest(text))
			t.stop("it is of a kernel of the sandbox's own", name)
		default:
			t.through("read " + name)
		}
	}
	// Locks of open file descriptions are shown in every sandbox. The host knows the processes that hold them.
	locks, _ := os.ReadFile("/proc/locks") // a process that cannot read it sees none
	for line := range strings.Lines(string(locks)) {
		if of := strings.Fields(line); len(of) > 5 && of[1] == "OFDLCK" {
			say(wordFact + lockFact + of[5])
		}
	}
	return t.verdict()
}

// tellSettings tells the host of what it reads in settings beside programs.
func tellSettings(mission) verdict {
	var t tally
	for _, top := range []string{"/usr/etc", "/usr/local/etc", "/usr/pip.conf", "/usr/local/pip.conf"} {
		visited, refused := 0, len(t.stops)
		_ = filepath.WalkDir(top, func(name string, d os.DirEntry, err error) error { // it gives no error of its own
			if visited++; visited > maxVisited {
				return filepath.SkipAll
			}
			if err != nil {
				t.stop(meaning(err), name)
				return nil
			}
			if d.IsDir() || d.Type()&os.ModeSymlink != 0 {
				return nil
			}
			text, err := content(name)
			switch {
			case err != nil:
				t.stop(meaning(err), name)
			case len(text) > 0:
				say(wordFact + name + " " + digest(text))
			}
			return nil
		})
		if visited == 1 && refused == len(t.stops) {
			t.stop("nothing is in it", top)
		}
	}
	if v := t.verdict(); len(t.stops) > 0 {
		return v
	}
	return heldBy("what is there is not the host's")
}

// leaksAddresses reports whether a file has an address that is not all zeros.
func leaksAddresses(name string) bool {
	text, _ := content(name) // a file that is not there leaks nothing
	for line := range bytes.Lines(text) {
		for f := range bytes.FieldsSeq(line) {
			f = bytes.TrimPrefix(f, []byte("0x"))
			if len(f) == 16 && len(bytes.Trim(f, "0123456789abcdef")) == 0 && len(bytes.Trim(f, "0")) > 0 {
				return true
			}
		}
	}
	return false
}

// kinds are the namespaces.
var kinds = []string{"mnt", "pid", "net", "ipc", "uts", "user", "cgroup"}

// tellNamespaces tells the host where it is.
func tellNamespaces(mission) verdict {
	for _, kind := range kinds {
		name, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return heldBy("no /proc to look in: " + errnoName(err))
		}
		say(wordFact + kind + " " + name)
	}
	return heldBy("every namespace is the sandbox's own")
}

func enterNamespaces(mission) verdict {
	var t tally
	twin := sys(unix.SYS_SETNS, ^uintptr(0), 0)
	for _, dir := range append([]string{"/proc/self", "/proc/1"}, visible()...) {
		for _, kind := range kinds {
			fd, err := unix.Open(dir+"/ns/"+kind, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.stop(meaning(err), "opening namespaces")
				continue
			}
			t.make(call{name: "setns", do: sys(unix.SYS_SETNS, uintptr(fd), 0), twin: twin})
			_ = unix.Close(fd)
		}
	}
	return t.verdict()
}

// dumpCore changes its limit on core files. The file would be made by the kernel in
// the sandbox or by a handler on the host. The kernel starts a handler with a limit of
// 0, too, and with 1 not: on a kernel that is shared it must be 1 and stay it.
func dumpCore(m mission) verdict {
	const none = 1
	for _, l := range []unix.Rlimit{{}, {Cur: 0, Max: none}, {Cur: 1 << 20, Max: 1 << 20}} {
		err := unix.Setrlimit(unix.RLIMIT_CORE, &l)
		var now unix.Rlimit
		if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &now); err != nil {
			return breach("prlimit: " + err.Error())
		}
		if now.Max > none || !m.Apart && now != (unix.Rlimit{Cur: none, Max: none}) {
			return breach(fmt.Sprintf("the limit on core files is %d and %d after setting it (%v)", now.Cur, now.Max, err))
		}
	}
	if m.Apart {
		return heldBy("the hard limit on core files is at most 1, and crashes stay in the sandbox's own kernel")
	}
	return heldBy("the limit on core files is 1 and stays it: no file is written and no handler of the host is started")
}

func agentMemory(mission) verdict {
	var t tally
	for _, name := range []string{"mem", "environ", "maps", "auxv", "pagemap", "syscall", "stack", "task/1/mem"} {
		if by := reachable("/proc/1/"+name, unix.O_RDONLY); by != "" {
			t.stop(by, "/proc/1/"+name)
		} else {
			t.through("opened /proc/1/" + name)
		}
	}
	if by := reachable("/proc/1/mem", unix.O_RDWR); by == "" {
		t.through("opened /proc/1/mem for writing")
	}
	if _, err := os.ReadDir("/proc/1/fd"); err == nil {
		t.through("listed the descriptors of the agent")
	}
	v := unix.Iovec{Base: new(byte)}
	v.SetLen(1)
	vec := at(v)
	t.make(
		call{name: "process_vm_readv", do: sys(unix.SYS_PROCESS_VM_READV, 1, vec, 1, vec, 1), twin: sys(unix.SYS_PROCESS_VM_READV, 1, 0, 0, 0, 0, 1)},
		call{name: "process_vm_writev", do: sys(unix.SYS_PROCESS_VM_WRITEV, 1, vec, 1, vec, 1), twin: sys(unix.SYS_PROCESS_VM_WRITEV, 1, 0, 0, 0, 0, 1)},
		call{name: "pidfd_getfd", do: stealDescriptor, twin: sys(unix.SYS_PIDFD_GETFD, ^uintptr(0))},
	)
	return t.verdict()
}

func stealDescriptor() error {
	pidfd, err := unix.PidfdOpen(1, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(pidfd) }()
	for fd := range 4 {
		var stolen int
		if stolen, err = unix.PidfdGetfd(pidfd, fd, 0); err == nil {
			_ = unix.Close(stolen)
			return nil
		}
	}
	return err
}

func agentTrace(mission) verdict {
	var t tally
	twin := sys(unix.SYS_PTRACE, unix.PTRACE_PEEKDATA, 1<<22)
	t.make(
		call{name: "ptrace seize", do: sys(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1), twin: twin},
		call{name: "ptrace attach", do: sys(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1), twin: twin},
	)
	return t.verdict()
}

func agentExecutable(mission) verdict {
	var t tally
	for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR} {
		if by := reachable("/proc/1/exe", flags); by != "" {
			t.stop(by, "/proc/1/exe")
		} else {
			t.through("opened /proc/1/exe for writing")
		}
	}
	fd, err := unix.Open("/proc/1/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.stop(meaning(err), "/proc/1/exe")
		return t.verdict()
	}
	defer func() { _ = unix.Close(fd) }()
	if by := reachable("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY); by != "" {
		t.stop(by, "opening it a second time")
	} else {
		t.through("opened the agent's executable for writing")
	}
	return t.verdict()
}

func agentLimits(mission) verdict {
	var t tally
	l := unix.Rlimit{}
	t.make(call{name: "prlimit of the agent", do: func() error { return unix.Prlimit(1, unix.RLIMIT_NOFILE, &l, nil) }})
	// An agent that gets no turn ends nobody, and does not die itself.
	var first unix.CPUSet
	first.Set(0)
	idle := [1]int32{}
	const schedIdle, whoProcess, idleClass = 5, 1, 3 << 13
	t.make(
		call{name: "affinity of the agent", do: func() error { return unix.SchedSetaffinity(1, &first) }},
		call{name: "priority of the agent", do: func() error { return unix.Setpriority(unix.PRIO_PROCESS, 1, 19) }},
		call{name: "scheduler of the agent", do: func() error {
			_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 1, schedIdle, uintptr(unsafe.Pointer(&idle)))
			return refusal(errno)
		}},
		call{name: "disk priority of the agent", do: func() error {
			_, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, whoProcess, 1, idleClass)
			return refusal(errno)
		}},
	)
	return t.verdict()
}

// refusal is nil for a call that was not refused.
func refusal(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// agentSignals sends every signal to process 1, but only where that is not the
// host's.
func agentSignals(m mission) verdict {
	here, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || here == m.PIDs {
		return breach("process 1 may be the host's own: the pid namespace is " + here)
	}
	const signals = 64
	for sig := unix.Signal(1); sig <= signals; sig++ {
		_ = unix.Kill(1, sig) // the host looks whether it mattered
	}
	return heldBy("the agent still answers after 64 signals")
}
