//go:build linux

package mailbox

import (
	"os"
	"sync"
	"time"
)

// link is the box's end of one link to the agent.
type link struct {
	id   string
	sock *os.File
	proc *os.Process
	done chan struct{} // closed when the door has ended

	mu      sync.Mutex
	in      []byte // not yet with the agent
	given   int64
	out     []byte
	at      int64 // the number of the first byte of out
	over    bool
	heard   time.Time
	changed chan struct{} // closed and made anew when something above changes
}

// begin opens a door.
func begin(id string) (*link, error) {
	sock, proc, err := startDoor()
	if err != nil {
		return nil, err
	}
	l := &link{id: id, sock: sock, proc: proc, done: make(chan struct{}), heard: time.Now(), changed: make(chan struct{})}
	go l.feed()
	go l.drain()
	go func() {
		_, _ = proc.Wait()
		close(l.done)
	}()
	return l, nil
}

// tell wakes all who wait. Called with mu held.
func (l *link) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// until waits for something to be so, at most until late has something to say.
func (l *link) until(so func() bool, late <-chan time.Time) {
	for {
		l.mu.Lock()
		ok, changed := so(), l.changed
		l.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			return
		}
	}
}

// feed hands to the agent what was given.
func (l *link) feed() {
	for {
		l.until(func() bool { return len(l.in) > 0 || l.over }, nil)
		l.mu.Lock()
		over, b := l.over, l.in
		l.mu.Unlock()
		if over {
			return
		}
		n, err := l.sock.Write(b)
		l.mu.Lock()
		l.in = append([]byte(nil), l.in[n:]...)
		if err != nil {
			l.over = true
		}
		l.tell()
		l.mu.Unlock()
	}
}

// drain reads what the agent says.
func (l *link) drain() {
	buf := make([]byte, 64<<10)
	for {
		l.until(func() bool { return len(l.out) < maxHeld || l.over }, nil)
		n, err := l.sock.Read(buf)
		l.mu.Lock()
		l.out = append(l.out, buf[:n]...)
		if err != nil {
			l.over = true
		}
		over := l.over
		l.tell()
		l.mu.Unlock()
		if over {
			return
		}
	}
}

// give takes bytes that begin with number at. What is there already is skipped.
func (l *link) give(at int64, data []byte) Answer {
	late := time.NewTimer(giveWait)
	defer late.Stop()
	l.until(func() bool { return len(l.in) < maxHeld || l.over }, late.C)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = time.Now()
	if skip := l.given - at; skip >= 0 && skip < int64(len(data)) && !l.over {
		data = data[skip:]
		data = data[:min(len(data), max(maxHeld-len(l.in), 0))]
		l.in = append(l.in, data...)
		l.given += int64(len(data))
		l.tell()
	}
	return l.answer(nil)
}

// giveWait is how long give waits for room.
const giveWait = 5 * time.Second

// take returns bytes from number at on.
func (l *link) take(at int64, wait time.Duration) Answer {
	l.mu.Lock()
	l.heard = time.Now()
	if n := at - l.at; n > 0 && n <= int64(len(l.out)) {
		l.out = append([]byte(nil), l.out[n:]...)
		l.at = at
		l.tell()
	}
	l.mu.Unlock()
	late := time.NewTimer(min(wait, MaxWait))
	defer late.Stop()
	l.until(func() bool { return len(l.out) > 0 || l.over }, late.C)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = time.Now()
	return l.answer(l.out[:min(len(l.out), MaxTake)])
}

// answer is called with mu held.
func (l *link) answer(data []byte) Answer {
	a := Answer{Status: Live, Given: l.given, At: l.at, Data: append([]byte(nil), data...)}
	if l.over && len(data) == len(l.out) {
		a.Status = Over
	}
	return a
}

// end ends the link, and waits until the agent has taken note.
func (l *link) end() {
	l.mu.Lock()
	l.over = true
	l.tell()
	l.mu.Unlock()
	_ = l.sock.Close()
	late := time.NewTimer(endWait)
	defer late.Stop()
	select {
	case <-l.done:
	case <-late.C:
		_ = l.proc.Kill()
		<-l.done
	}
}

// endWait is how long that may take.
const endWait = 20 * time.Second

// idle is how long nobody has asked.
func (l *link) idle() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.heard)
}
