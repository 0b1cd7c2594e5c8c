//go:build linux

package guest

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// chunk is how much is copied at a time.
const chunk = 32 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// errOutput is the end of an output that has reached its limit.
var errOutput = errors.New("the output limit is reached")

// endOfInput is what a terminal's user types at the end of his input.
const endOfInput = "\x04"

// output is one stream of a program on its way to the caller's writer.
type output struct {
	p      *process
	file   *os.File
	to     io.Writer
	stderr bool
	tape   *tape // of a recorded program, with what it wrote; nil of others
	from   int64 // where on the tape it begins
}

// isTerminal reports whether an agent attached a terminal, or with a transport
// that relays, the socket that stands for it. Anything else could make the
// host hang.
func isTerminal(fd int, relayed bool) bool {
	if relayed {
		return true // it is of our own making
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return false
	}
	const major, ptmx = 5, 2
	return unix.Major(st.Rdev) == major && unix.Minor(st.Rdev) == ptmx
}

// pump starts the copying.
func (p *process) pump(cmd cove.Command) {
	p.pending.Add(int32(len(p.outs))) //nolint:gosec // two at most
	for _, o := range p.outs {
		go o.run()
	}
	unread := p.follow(cmd)
	p.mu.Lock()
	p.flowing, p.input, p.unread = true, cmd.Stdin, unread
	ended := p.ended
	p.mu.Unlock()
	if cmd.Stdin != nil {
		go p.feed(cmd.Stdin)
	}
	if ended {
		p.hurry()
	}
	p.release()
}

// abandon closes what was made for a program that does not run.
func (p *process) abandon(streams []*protocol.Stream) {
	for _, s := range streams {
		s.Close()
	}
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	for _, o := range p.outs {
		_ = o.file.Close()
	}
	if p.recording != nil {
		p.recording.close()
	}
	p.unhold()
}

// hurry is called when the program has ended: nobody reads its input any more,
// and what is in its pipes is all that is wanted of them.
func (p *process) hurry() {
	if p.stdin != nil && !p.tty {
		_ = p.stdin.Close()
	}
	// The one reader that blocks forever and can be told not to.
	if r, ok := p.input.(*io.PipeReader); ok {
		_ = r.CloseWithError(io.ErrClosedPipe)
	}
	p.finish()
	if !p.relayed {
		for _, o := range p.outs {
			_ = o.file.SetReadDeadline(time.Unix(1, 0))
		}
	}
}

// run delivers until the stream ends, or the program has and its pipe is empty.
func (o *output) run() {
	defer o.p.release()
	defer func() { _ = o.file.Close() }()
	if o.tape != nil {
		o.record()
		return
	}
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	for {
		n, err := o.file.Read(buf[:])
		if n > 0 {
			if err := o.deliver(buf[:n]); err != nil {
				return
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = protocol.Drain(o.file, o.deliver)
			return
		}
		if err != nil {
			return
		}
	}
}

// deliver writes to the caller as far as the limit allows. An error closes the
// pipe, and the program learns it as every program does.
func (o *output) deliver(b []byte) error {
	n, over := o.p.spend(len(b))
	if n > 0 {
		if _, err := o.to.Write(b[:n]); err != nil {
			return err
		}
	}
	if over {
		o.p.end(cove.OutputLimit)
		return errOutput
	}
	return nil
}

// skip counts output that was dropped where it was kept, if the caller does.
func (o *output) skip(n int64) error {
	allowed, over := o.p.spend(int(n))
	if to, ok := o.to.(interface{ Skip(n int64) }); ok {
		to.Skip(int64(allowed))
	}
	if over {
		o.p.end(cove.OutputLimit)
		return errOutput
	}
	return nil
}

// spend takes from the output limit, and reports whether it did not suffice.
func (p *process) spend(n int) (allowed int, over bool) {
	if !p.limited {
		return n, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	allowed = int(min(int64(n), p.budget))
	p.budget -= int64(allowed)
	return allowed, allowed < n
}
