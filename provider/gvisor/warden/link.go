//go:build linux

package warden

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// errEnded is what calls end with when their warden did.
var errEnded = errors.New("the warden ended")

// endPatience is the time a warden has to end by itself.
const endPatience = 2 * time.Second

// link is one life of the process.
type link struct {
	conn    *net.UnixConn
	cmd     *exec.Cmd
	said    *saying
	done    chan struct{} // closed when the process was reaped
	writing sync.Mutex

	mu      sync.Mutex
	waiting map[uint64]chan answer // nil when it is over
	last    uint64
}

// start starts a process.
func start(path string, flags []string) (*link, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	l := &link{conn: ours, said: &saying{}, done: make(chan struct{}), waiting: map[uint64]chan answer{}}
	// It ends with the connection, and no context of one call may end it.
	l.cmd = exec.CommandContext(context.Background(), path, append([]string{Word}, flags...)...) //nolint:gosec // the operator named it, or it is our own
	l.cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	l.cmd.Dir = "/"
	l.cmd.Stderr = l.said
	l.cmd.ExtraFiles = []*os.File{theirs} // SocketFD
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	l.cmd.WaitDelay = endPatience
	if err := l.cmd.Start(); err != nil {
		_ = ours.Close()
		return nil, err
	}
	go l.read()
	return l, nil
}

// pair returns the two ends of a connection.
func pair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "warden")
	if ours, err = Conn(fds[0]); err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// Conn makes a connection of a descriptor, which it takes over.
func Conn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "warden")
	defer func() { _ = f.Close() }()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("descriptor %d is no socket of this machine", fd)
	}
	return conn, nil
}

// read hands out answers until there are no more, and reaps the process then.
func (l *link) read() {
	defer close(l.done)
	buf := make([]byte, maxMessage+1)
	for {
		var a answer
		files, err := receive(l.conn, buf, &a)
		closeAll(files)
		if err != nil {
			break
		}
		l.mu.Lock()
		c := l.waiting[a.ID]
		delete(l.waiting, a.ID)
		l.mu.Unlock()
		if c != nil {
			c <- a
		}
	}
	l.mu.Lock()
	waiting := l.waiting
	l.waiting = nil // from here on it takes no calls
	l.mu.Unlock()
	_ = l.conn.Close()
	late := time.AfterFunc(endPatience, func() { _ = l.cmd.Process.Kill() })
	_ = l.cmd.Wait() // how it ended makes no difference
	late.Stop()
	for _, c := range waiting {
		close(c)
	}
}

// over reports whether the process ended, or is about to.
func (l *link) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting == nil
}

// call sends a request and waits for its answer.
func (l *link) call(ctx context.Context, r request, files []*os.File) (answer, error) {
	c := make(chan answer, 1)
	l.mu.Lock()
	if l.waiting == nil {
		l.mu.Unlock()
		return answer{}, l.ended()
	}
	l.last++
	r.ID = l.last
	l.waiting[r.ID] = c
	l.mu.Unlock()

	l.writing.Lock()
	err := send(l.conn, r, files...)
	l.writing.Unlock()
	if err != nil {
		l.forget(r.ID)
		if !errors.Is(err, errTooLong) {
			_ = l.conn.Close() // it does not read, or is not there
		}
		return answer{}, err
	}
	select {
	case a, ok := <-c:
		if !ok {
			return answer{}, l.ended()
		}
		return a, nil
	case <-ctx.Done():
		l.forget(r.ID)
		return answer{}, ctx.Err()
	}
}

// forget drops the answer to a call, should it come.
func (l *link) forget(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

// ended is what calls end with when the process did, with what it said of it.
func (l *link) ended() error {
	<-l.done
	if words := l.said.text(); words != "" {
		return fmt.Errorf("%w: %s", errEnded, words)
	}
	return errEnded
}

// close ends the process and waits for it.
func (l *link) close() {
	_ = l.conn.Close()
	<-l.done
}

// saying is the beginning of what the process says; the rest is dropped.
type saying struct {
	mu   sync.Mutex
	said []byte
}

var _ io.Writer = (*saying)(nil)

// Write implements [io.Writer].
func (s *saying) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, b[:min(len(b), maxFault-len(s.said))]...)
	return len(b), nil
}

func (s *saying) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.said)
}
