package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of how often a connection is looked at.
const (
	leastTick = 10 * time.Millisecond
	mostTick  = 15 * time.Second
)

// tick is how often idleness is looked for.
func tick(idle time.Duration) time.Duration { return min(max(idle/4, leastTick), mostTick) }

var errIdle = errors.New("nothing went through for too long")

// relay carries bytes both ways until both sides have said all they want to.
func (l *link) relay(p *policy, outside net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { l.carry(p, outside, l.inside, &l.sent) })
	l.carry(p, l.inside, outside, &l.received)
	both.Wait()
}

// carry carries one way, and hands on the end of it.
func (l *link) carry(p *policy, to, from net.Conn, count *atomic.Int64) {
	if err := l.copy(p, to, from, count); err != nil {
		l.end(ending(err))
		return
	}
	if c, ok := to.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite() // if it is gone already, the other way notices
	}
}

// ending puts the error of a connection into few words.
func ending(err error) string {
	if errors.Is(err, errIdle) {
		return errIdle.Error()
	}
	return "" // one side hung up, as sides do
}

// copy moves bytes until there are no more. It lets the kernel do it, and looks
// up from time to time: by the deadline for reading, at which no byte is on its
// way. The deadline for writing is only met by a side that does not read.
func (l *link) copy(p *policy, to, from net.Conn, count *atomic.Int64) error {
	idle, rate := p.limits.Idle, int64(p.limits.Rate)
	step, chunk := tick(idle), min(max(rate/8, 1<<10), 256<<10)
	for {
		begun := time.Now()
		_ = from.SetReadDeadline(begun.Add(step)) // a closed connection says so when it is read
		_ = to.SetWriteDeadline(begun.Add(step + idle))
		source := io.Reader(from)
		if rate > 0 {
			source = &io.LimitedReader{R: from, N: chunk}
		}
		n, err := io.Copy(to, source)
		count.Add(n)
		if n > 0 {
			l.touch()
		}
		switch {
		case err == nil && (rate == 0 || n < chunk):
			return nil
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case time.Since(begun) >= step+idle || l.idle() >= idle:
			return errIdle
		}
		if rate > 0 && !l.pay(n, rate) {
			return net.ErrClosed
		}
	}
}

// pay waits until n bytes are earned, or reports that the link has ended.
func (l *link) pay(n, rate int64) bool {
	wait := l.g.bytes.spend(n, rate)
	if wait == 0 {
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// watch ends connections that are read and idle; the others look for themselves.
func (g *Gateway) watch() {
	for {
		idle := g.policy.Load().limits.Idle
		t := time.NewTimer(tick(idle))
		select {
		case <-t.C:
		case <-g.ctx.Done():
			t.Stop()
			return
		}
		g.mu.Lock()
		var end []*link
		for l := range g.live {
			if l.injects && l.idle() >= idle {
				end = append(end, l)
			}
		}
		g.mu.Unlock()
		for _, l := range end {
			l.end(errIdle.Error())
		}
	}
}
