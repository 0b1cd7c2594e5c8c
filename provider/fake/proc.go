package fake

import (
	"math"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
)

// proc is one simulated process. Its program runs in a goroutine that asks the
// proc before everything it does; when the process is ended from outside, the
// goroutine gets errDead and unwinds.
type proc struct {
	m   *machine
	job *job
	pid int

	dead   chan struct{} // closed at the end
	buried chan struct{} // closed after that, when its descriptors are
	poke   chan struct{} // holds one when a caught signal waits

	// The fields below are guarded by m.mu.
	ppid     int
	fds      table
	ended    bool
	status   status // when ended
	mem      cove.Bytes
	steps    int
	held     chan struct{} // not nil while stopped; closed by CONT
	caught   map[cove.Signal]bool
	ignored  map[cove.Signal]bool
	pending  []cove.Signal // caught and not yet handled
	detached bool          // left the session: the terminal's signals miss it
}

// status is how a process ended.
type status struct {
	code int
	sig  cove.Signal
}

// shell is the status as $? shows it.
func (s status) shell() int {
	if s.sig != "" {
		return 128 + s.sig.Number()
	}
	return s.code
}

// exit ends the process by itself.
func (p *proc) exit(code int) {
	p.m.mu.Lock()
	left := p.m.end(p, status{code: code & 0xff})
	p.m.mu.Unlock()
	left.bury()
}

// over reports whether the process has ended.
func (p *proc) over() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// step is asked before everything a process does. It waits while the process
// is stopped or the machine paused, and is errDead when the process has ended.
func (p *proc) step() error {
	p.m.mu.Lock()
	for {
		hold := p.m.gate
		if p.held != nil {
			hold = p.held
		}
		if p.ended {
			p.m.mu.Unlock()
			return errDead
		}
		if hold == nil {
			break
		}
		p.m.mu.Unlock()
		select {
		case <-hold:
		case <-p.dead:
		}
		p.m.mu.Lock()
	}
	p.steps++
	p.m.cpu += stepCPU
	p.job.cpu += stepCPU
	turns, odd := p.steps/stepsPerTurn, p.steps%stepsPerTurn
	p.m.mu.Unlock()
	if odd == 0 {
		return p.sleep(min(longRest, shortRest<<min(turns/turnsToTire, 10)))
	}
	return nil
}

// forever is how long an endless sleep takes.
const forever = time.Duration(math.MaxInt64)

// sleep waits on the clock.
func (p *proc) sleep(d time.Duration) error {
	if d == forever {
		<-p.dead
		return errDead
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.dead:
		return errDead
	}
}

// charge books memory until the end of the process. Where there is none left,
// the whole job is killed, as a kernel does with a group that ran out.
func (p *proc) charge(n int) error {
	p.m.mu.Lock()
	switch {
	case p.ended:
		p.m.mu.Unlock()
		return errDead
	case cove.Bytes(n) > p.m.maxMem-p.m.mem:
		p.m.mu.Unlock()
		p.m.killJob(p.job, cove.OutOfMemory)
		return errDead
	}
	p.m.grow(p, cove.Bytes(n))
	p.m.mu.Unlock()
	return nil
}

// refund gives memory back that was charged.
func (p *proc) refund(n int) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if !p.ended {
		p.m.grow(p, -cove.Bytes(n))
	}
}

// descriptor returns what fd leads to, or nil.
func (p *proc) descriptor(fd int) *file {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if fd < 0 || fd >= len(p.fds) {
		return nil
	}
	return p.fds[fd]
}

// terminal returns the terminal that fd leads to, or nil.
func (p *proc) terminal(fd int) *tty {
	f := p.descriptor(fd)
	if f == nil {
		return nil
	}
	t, _ := f.stream.(*tty)
	return t
}

// parent returns the number of the process that made p, or 1.
func (p *proc) parent() int {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return p.ppid
}

// copyTable returns the descriptors of p, kept open once more.
func (p *proc) copyTable() table {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return p.fds.clone()
}

// swap gives p other descriptors and returns what it must no longer own: the
// old ones or, when p has ended, those that came too late.
func (p *proc) swap(fds table) table {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.ended {
		return fds
	}
	old := p.fds
	p.fds = fds
	return old
}

// stdio reads and writes a descriptor of a process.
type stdio struct {
	p  *proc
	fd int
}

func (s stdio) Read(b []byte) (int, error) {
	if err := s.p.step(); err != nil {
		return 0, err
	}
	f := s.p.descriptor(s.fd)
	if f == nil {
		return 0, syscall.EBADF
	}
	n, err := f.read(s.p, b)
	if err == nil && n > 0 {
		err = s.p.step() // what was read while paused is acted upon later
	}
	return n, err
}

func (s stdio) Write(b []byte) (int, error) {
	if err := s.p.step(); err != nil {
		return 0, err
	}
	f := s.p.descriptor(s.fd)
	if f == nil {
		return 0, syscall.EBADF
	}
	return f.write(s.p, b)
}
