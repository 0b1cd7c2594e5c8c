//go:build linux

package agent

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// doorPatience bounds what is waited for at a door; backOff is the pause after an
// accept that found no descriptor left.
const (
	doorPatience = 10 * time.Second
	backOff      = 20 * time.Millisecond
)

// errStranger is who comes through a door and is none of the host's.
var errStranger = errors.New("only root opens doors, or who started the agent")

// doors is the link of an agent that listens: always that of the host whose door
// opened last. When it ends, the server is told that its host has left.
type doors struct {
	listener *os.File
	parent   int // of doors that are not root's; 0: there are none

	mu      sync.Mutex
	changed *sync.Cond
	link    protocol.Link // nil while there is no host
	pid     int           // of its door
}

var _ protocol.Link = (*doors)(nil)

func newDoors(listener *os.File, parent int) *doors {
	d := &doors{listener: listener, parent: parent}
	d.changed = sync.NewCond(&d.mu)
	return d
}

// attend lets hosts in. What a program can do to it is to be turned away.
func (d *doors) attend() {
	rc, err := d.listener.SyscallConn()
	if err != nil {
		return
	}
	for {
		conn := -1
		var got error
		err := rc.Read(func(fd uintptr) bool {
			conn, _, got = unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return !errors.Is(got, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return // it is closed
		case got == nil:
			d.admit(conn)
		case !errors.Is(got, unix.EINTR) && !errors.Is(got, unix.ECONNABORTED):
			pause := time.NewTimer(backOff)
			<-pause.C
		}
	}
}

// admit makes who came the host, if he is one, in place of whoever was.
func (d *doors) admit(conn int) {
	p, err := passThrough(conn, d.parent)
	if err != nil {
		return
	}
	link := protocol.NewAgentFramed(p)
	d.mu.Lock()
	old := d.link
	d.link, d.pid = link, p.pid
	d.changed.Broadcast()
	d.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	go func() {
		p.outlive()
		_ = link.Close()
	}()
}

// host waits until there is one.
func (d *doors) host() protocol.Link {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.link == nil {
		d.changed.Wait()
	}
	return d.link
}

// door is the process that brought the host, which is no program; 0 if there is
// none.
func (d *doors) door() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pid
}

// Receive implements [protocol.Link]. It never fails.
func (d *doors) Receive() (*protocol.Message, error) {
	link := d.host()
	m, err := link.Receive()
	if err == nil {
		return m, nil
	}
	d.mu.Lock()
	if d.link == link {
		d.link, d.pid = nil, 0
	}
	d.mu.Unlock()
	return &protocol.Message{Kind: protocol.KindLeave}, nil
}

// Send implements [protocol.Link]. What is for a host that is gone is lost, or
// comes to one that did not ask for it and drops it.
func (d *doors) Send(m *protocol.Message) error {
	d.mu.Lock()
	link := d.link
	d.mu.Unlock()
	if link == nil {
		closeStreams(m)
		return os.ErrClosed
	}
	return link.Send(m)
}

// Relayed implements [protocol.Link].
func (d *doors) Relayed() bool { return true }

// Renew implements [protocol.Link].
func (d *doors) Renew() {
	d.mu.Lock()
	link := d.link
	d.mu.Unlock()
	if link != nil {
		link.Renew()
	}
}

// Close implements [protocol.Link].
func (d *doors) Close() error { return d.listener.Close() }

// Leave implements [protocol.Link].
func (d *doors) Leave() error { return d.Close() }
