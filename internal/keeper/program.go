//go:build linux

package keeper

import (
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/spool"
)

// Bounds on the output of a program.
const (
	keptBytes   = 16 * cove.MiB
	memoryBytes = 256 * cove.KiB
	chunk       = 32 << 10
	// slack is how far who follows may be behind once output is dropped: with two
	// chunks more it is still in the memory of the log.
	slack = int64(memoryBytes)/2 - 2*chunk
	// maxFollowers bounds those of one program.
	maxFollowers = 16
)

// stallTime is how long who follows may hold a program up without reading
// anything.
var stallTime = within(10 * time.Second)

// program is one whose output is kept.
type program struct {
	note string
	log  *spool.Log
	gone chan struct{} // closed when the program is forgotten

	mu        sync.Mutex
	in        *os.File           // nil when it is closed
	outs      map[*os.File]bool  // those that are being read
	followers map[*follower]bool // guarded by mu
	moved     chan struct{}      // closed when one of them did; nil if nobody waits
}

// newProgram takes over the files, of which any may be nil.
func newProgram(note string, cfg spool.Config, in, out, errs *os.File) *program {
	cfg.MaxBytes, cfg.MemoryBytes, cfg.Budget = keptBytes, memoryBytes, 1
	p := &program{note: note, log: spool.New(cfg), in: in, gone: make(chan struct{}), outs: map[*os.File]bool{}, followers: map[*follower]bool{}}
	files := map[cove.Stream]*os.File{cove.Stdout: out, cove.Stderr: errs}
	for _, f := range files {
		if f != nil {
			p.outs[f] = true
		}
	}
	if len(p.outs) == 0 {
		p.log.Close()
	}
	for s, f := range files {
		if f != nil {
			go p.pump(f, p.log.Writer(s))
		}
	}
	return p
}

// pump reads until the stream ends, or the program has and its pipe is empty.
func (p *program) pump(f *os.File, to io.Writer) {
	defer p.closeOut(f)
	take := func(b []byte) error {
		_, _ = to.Write(b) // a log takes everything
		p.pace()
		if p.isGone() {
			return os.ErrClosed
		}
		return nil
	}
	protocol.Pump(f, chunk, take)
}

// closeOut closes a stream, and the log with the last.
func (p *program) closeOut(f *os.File) {
	_ = f.Close()
	p.mu.Lock()
	delete(p.outs, f)
	last := len(p.outs) == 0
	p.mu.Unlock()
	if last {
		p.log.Close()
	}
}

// pace waits for who follows, where he would miss something otherwise.
func (p *program) pace() {
	for {
		total := p.log.Total()
		if total < int64(keptBytes-memoryBytes) && p.log.Err() == nil {
			return
		}
		moved := p.behind(total - slack)
		if moved == nil {
			return
		}
		late := time.NewTimer(stallTime.long())
		select {
		case <-moved:
		case <-p.gone:
		case <-late.C:
			p.giveUp(total - slack)
		}
		late.Stop()
		if p.isGone() {
			return
		}
	}
}

func (p *program) isGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// behind returns what is closed when a follower moves, if one has not come to an
// offset; or nil.
func (p *program) behind(offset int64) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.followers {
		if f.at < offset && !f.stalled {
			if p.moved == nil {
				p.moved = make(chan struct{})
			}
			return p.moved
		}
	}
	return nil
}

// giveUp waits no longer for those who have not come to an offset.
func (p *program) giveUp(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.followers {
		f.stalled = f.stalled || f.at < offset
	}
}

// shut closes the input.
func (p *program) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in != nil {
		_ = p.in.Close()
		p.in = nil
	}
}

// finish is called when the program has ended: what is in its pipes is all that
// is wanted of them.
func (p *program) finish() {
	p.shut()
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.outs {
		_ = f.SetReadDeadline(time.Unix(1, 0))
	}
}

// forget frees all. It is called once.
func (p *program) forget() {
	p.mu.Lock()
	close(p.gone)
	for f := range p.followers {
		f.cancel()
	}
	p.mu.Unlock()
	p.finish()
	_ = p.log.Remove() // a file that stays is removed by the next keeper
}

// input returns a copy of the descriptor of the input; -1 if it is closed.
func (p *program) input() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in == nil {
		return -1, nil
	}
	raw, err := p.in.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var dup error
	if err := raw.Control(func(of uintptr) { fd, dup = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return -1, err
	}
	return fd, dup
}
