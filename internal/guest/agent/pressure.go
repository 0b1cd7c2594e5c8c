//go:build linux

package agent

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// How often memory is looked at: as soon as a program that does nothing but take
// memory could have taken what is left, within bounds.
const (
	fastest  = 4 << 30 // bytes in a second
	leastGap = 5 * time.Millisecond
	mostGap  = 50 * time.Millisecond
)

// page is more than the kernel says about memory.
const page = 4096

// slack is what programs may use above the bound where killing does not bring enough
// back, and slackPart the part of the bound that it is at most.
const (
	slack     = 32 << 20
	slackPart = 4
)

// pressure bounds the memory of a sandbox whose kernel does not: when there is more
// in use, the largest process is killed, as Linux does it. The zero value does
// nothing.
type pressure struct {
	most    uint64       // bytes; guarded by the server's procs, as are the others
	victims map[int]bool // children that we killed and are not reaped
	running bool
	wake    chan struct{} // that there may be somebody again

	// Those below are for who watches alone.

	ending string // who was killed last
	// stuck is what is still in use when nobody is left who was killed for it, such
	// as by files in memory. Who comes to remove them must not be killed, too.
	stuck uint64
}

// bound sets or lifts the bound.
func (s *server) bound(m *protocol.Message) {
	b, err := protocol.DecodeBound(m.Body)
	if err != nil {
		s.malformed(m)
		return
	}
	s.forks.Lock()
	s.offer = sacrifice{} // nobody asks for it there
	s.forks.Unlock()
	s.procs.Lock()
	p := &s.pressure
	p.most = b.Memory
	if !p.running && p.most > 0 {
		p.running, p.victims, p.wake = true, map[int]bool{}, make(chan struct{}, 1)
		go s.relieve()
	}
	p.arouse()
	s.procs.Unlock()
	s.reply(m.ID, protocol.Reply{})
}

// arouse makes the watch look. It does not wait, and is called with procs held.
func (p *pressure) arouse() { wakeWatch(p.wake) }

// relieve looks at the memory for as long as there are processes.
func (s *server) relieve() {
	used := memoryInUse() // before any program
	for {
		s.procs.Lock()
		most, idle := s.pressure.most, len(s.family.children) == 0
		s.procs.Unlock()
		if most == 0 || idle {
			<-s.pressure.wake
			// Who begins now needs a while, too. Looking costs a program that does nothing a
			// tenth of its time, and most such have ended by then.
			rest(gap(used, most))
			continue
		}
		used = memoryInUse()
		if s.pressure.tooMuch(used, most) {
			s.killLargest()
		}
		rest(gap(used, most))
	}
}

func rest(d time.Duration) {
	pause := time.NewTimer(d)
	<-pause.C
}

// tooMuch reports whether somebody is to be killed. Who was before must be gone.
func (p *pressure) tooMuch(used, most uint64) bool {
	if used <= most {
		p.stuck, p.ending = 0, ""
		return false
	}
	if p.ending != "" {
		if residentPages(p.ending) > 0 {
			return false
		}
		p.stuck, p.ending = used, ""
	}
	p.stuck = min(p.stuck, used)
	// Without an end it does not go up: then nobody may use any more.
	more := min(slack, most/slackPart)
	return p.stuck == 0 || used > min(max(p.stuck+more, most), most+more)
}

// gap is how long memory need not be looked at.
func gap(used, most uint64) time.Duration {
	if used >= most {
		return leastGap
	}
	left := min(most-used, fastest)
	return min(max(time.Duration(left)*time.Second/fastest, leastGap), mostGap)
}

// killLargest ends the process that has the most memory.
func (s *server) killLargest() {
	door := 0
	if d, ok := s.link.(*doors); ok {
		door = d.door()
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	largest, most := 0, uint64(0)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() || pid == door {
			continue
		}
		if size := residentPages(name); size > most {
			largest, most = pid, size
		}
	}
	if largest == 0 {
		return
	}
	// With the lock nobody else gets the number of a child, and the end of it is not
	// told before we have said why.
	s.procs.Lock()
	defer s.procs.Unlock()
	if unix.Kill(largest, unix.SIGKILL) != nil {
		return
	}
	s.pressure.ending = strconv.Itoa(largest)
	if _, ours := s.family.children[largest]; ours {
		s.pressure.victims[largest] = true
	}
}

// residentPages is how much memory a process has; none if it has ended.
func residentPages(pid string) uint64 {
	text, err := os.ReadFile("/proc/" + pid + "/statm") //nolint:gosec // pid came from /proc
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.ParseUint(string(fields[1]), 10, 64)
	return n
}

// memoryInUse is what cannot be given back: the memory of programs and of files that
// are in memory. It is 0 where the kernel does not say it.
func memoryInUse() uint64 {
	// Without what Go does around files: every call is a detour there.
	fd, err := unix.Open("/proc/meminfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(fd) }()
	var b [page]byte
	n, err := unix.Read(fd, b[:])
	if err != nil {
		return 0
	}
	return parseUse(b[:n])
}

// parseUse reads what gVisor says: its AnonPages are those of programs and of files.
func parseUse(text []byte) uint64 {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("AnonPages:")); ok {
			return kilobytes(rest)
		}
	}
	return 0
}

// kilobytes reads a number of them, as bytes; 0 if there is none.
func kilobytes(text []byte) uint64 {
	fields := bytes.Fields(text)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseUint(string(fields[0]), 10, 54)
	if err != nil {
		return 0
	}
	return n << 10
}
