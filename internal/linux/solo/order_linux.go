package solo

import (
	"encoding/binary"
	"errors"
	"path"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Order is a program to run.
type Order struct {
	Argv, Env []string
	Dir       string
	Limits    []Limit // of the program
}

// Limit is a bound on a resource, RLIMIT_….
type Limit struct {
	Resource   int
	Soft, Hard uint64
}

// Report says how a program ended, or why it never began.
type Report struct {
	Stage  Stage
	Errno  syscall.Errno // with a Stage
	Status uint32        // as wait(2) has it
	CPU    int64         // microseconds
	MaxRSS int64         // KiB
}

// Stage is what could not be done.
type Stage int

// What can go wrong before a program runs.
const (
	StageNone  Stage = iota // nothing: it ran
	StageStart              // it could not be prepared
	StageDir                // the working directory could not be entered
	StageExec               // it was not found, or could not be executed
)

// The link, and the descriptors that come through it.
const (
	link    = 3
	streams = 5
)

// base is where an order is mapped. The offsets in it are known to the code in
// assembler.
const (
	base       = 0x10000000
	offFailed  = 72
	offPolls   = 248
	offSteps   = 408
	stepSize   = 56
	reportSize = 168
)

// defaultPath is searched where the environment has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// errNUL says that the kernel could not be told what was asked for.
var errNUL = errors.New("a name or an argument holds a NUL byte")

// picture is an order as the process maps it.
type picture struct{ b []byte }

func (p *picture) put(at int, v uint64) { binary.NativeEndian.PutUint64(p.b[at:], v) }

// add appends words and returns their address.
func (p *picture) add(words ...uint64) uint64 {
	at := base + uint64(len(p.b))
	for _, w := range words {
		p.b = binary.NativeEndian.AppendUint64(p.b, w)
	}
	return at
}

// text appends strings as C has them and returns their addresses.
func (p *picture) text(list []string) []uint64 {
	at := make([]uint64, 0, len(list)+1)
	for _, s := range list {
		at = append(at, base+uint64(len(p.b)))
		p.b = append(append(p.b, s...), 0)
	}
	for len(p.b)%8 != 0 {
		p.b = append(p.b, 0)
	}
	return at
}

type step struct {
	number uintptr
	args   [6]uint64
}

func (p *picture) steps(list []step) uint64 {
	at := base + uint64(len(p.b))
	for _, s := range list {
		p.add(uint64(s.number))
		p.add(s.args[:]...)
	}
	return at
}

// ownSteps are those of the process itself: nobody of its user may look into it,
// programs must not find the terminal of whoever started it, and no signal is
// ignored because that one ignored it.
func ownSteps(p *picture) []step {
	list := []step{
		{unix.SYS_PRCTL, [6]uint64{unix.PR_SET_DUMPABLE, 0}},
		{unix.SYS_SETSID, [6]uint64{}},
	}
	byDefault := p.add(0, 0, 0, 0) // a handler, flags, a restorer and a mask
	for sig := range unix.Signal(64) {
		if sig++; sig != unix.SIGKILL && sig != unix.SIGSTOP {
			list = append(list, step{unix.SYS_RT_SIGACTION, [6]uint64{uint64(sig), byDefault, 0, 8}})
		}
	}
	return list
}

// childSteps are those between the fork and the program; the last one enters the
// directory. The program is the reaper of what it starts, as it would be with an
// agent; so the process has no other child to wait for.
func childSteps(p *picture, o *Order, dir uint64) []step {
	var list []step
	for i := range uint64(3) {
		list = append(list, step{unix.SYS_DUP3, [6]uint64{streams + i, i, 0}})
	}
	list = append(list,
		step{unix.SYS_CLOSE_RANGE, [6]uint64{link, uint64(^uint32(0)), 0}},
		step{unix.SYS_SETPGID, [6]uint64{}},
		step{unix.SYS_PRCTL, [6]uint64{unix.PR_SET_CHILD_SUBREAPER, 1}},
	)
	for _, l := range o.Limits {
		list = append(list, step{unix.SYS_PRLIMIT64, [6]uint64{0, uint64(l.Resource), p.add(l.Soft, l.Hard), 0}}) //nolint:gosec // small numbers
	}
	return append(list, step{unix.SYS_CHDIR, [6]uint64{dir}})
}

// Encode draws the order. The result says where in the lists the directory is.
func (o *Order) Encode() (b []byte, chdir int, err error) {
	names, search := candidates(o.Argv[0], o.Dir, o.Env)
	for _, list := range [][]string{o.Argv, o.Env, names, {o.Dir}} {
		for _, s := range list {
			if strings.IndexByte(s, 0) >= 0 {
				return nil, 0, errNUL
			}
		}
	}
	p := &picture{b: make([]byte, offSteps, offSteps+4096)}
	list := func(texts []string) uint64 { return p.add(append(p.text(texts), 0)...) }
	dir := p.text([]string{o.Dir})[0]
	own, child := ownSteps(p), childSteps(p, o, dir)
	p.put(56, list(o.Argv))
	p.put(64, list(o.Env))
	p.put(32, list(names))
	p.put(40, uint64(len(names)))
	if search {
		p.put(48, 1)
	}
	p.put(0, p.steps(own))
	p.put(8, uint64(len(own)))
	p.put(16, p.steps(child))
	p.put(24, uint64(len(child)))
	// Two things to wait for: the program, and the link.
	const pollIn = unix.POLLIN
	binary.NativeEndian.PutUint16(p.b[offPolls+4:], pollIn)
	binary.NativeEndian.PutUint32(p.b[offPolls+8:], link)
	binary.NativeEndian.PutUint16(p.b[offPolls+12:], pollIn)
	return p.b, len(own) + 1 + len(child), nil
}

// candidates are the files that a name may mean, and whether the first that can
// be executed is the one: a name with a slash is what it is, others are searched
// in the PATH of the program's own environment, as a shell does.
func candidates(name, dir string, env []string) (files []string, search bool) {
	if strings.Contains(name, "/") {
		return []string{name}, false
	}
	list := defaultPath
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			list = v
		}
	}
	for d := range strings.SplitSeq(list, ":") {
		file := path.Join(d, name)
		if !path.IsAbs(file) {
			file = path.Join(dir, d, name)
		}
		files = append(files, file)
	}
	return files, true
}

// ReportSize is how long a report is.
const ReportSize = reportSize

// DecodeReport reads what the process said; chdir is what Encode returned.
func DecodeReport(b []byte, chdir int) (Report, bool) {
	if len(b) != reportSize {
		return Report{}, false
	}
	u := func(at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	r := Report{Errno: syscall.Errno(u(8)), Status: uint32(u(16))} //nolint:gosec // cut as wait(2) has it
	switch failed := u(0); failed {
	case 0:
		var usage unix.Rusage
		copy((*[unsafe.Sizeof(usage)]byte)(unsafe.Pointer(&usage))[:], b[24:]) //nolint:gosec // its own bytes
		r.CPU = (usage.Utime.Sec+usage.Stime.Sec)*1e6 + usage.Utime.Usec + usage.Stime.Usec
		r.MaxRSS = usage.Maxrss
		return r, true
	case ^uint64(0):
		r.Stage = StageExec
	case uint64(chdir): //nolint:gosec // small
		r.Stage = StageDir
	default:
		r.Stage = StageStart
	}
	return r, true
}

// Send hands an order over to the process behind a link, with the program's
// streams. It is sent once. What is passed on stays the caller's.
func Send(link, order, size int, streams [3]int) error {
	packet := binary.NativeEndian.AppendUint64(nil, uint64(size)) //nolint:gosec // a size
	for {
		err := unix.Sendmsg(link, packet, unix.UnixRights(append([]int{order}, streams[:]...)...), nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
