//go:build linux

package warden_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/gvisor/warden"
)

// TestMain makes the test itself a warden where it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == warden.Word {
		os.Exit(play())
	}
	linuxtest.Main(m, map[string]linuxtest.Func{"tests": linuxtest.Tests})
}

func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func play() int {
	conn, err := warden.Conn(warden.SocketFD)
	if err == nil {
		err = warden.Serve(conn, &player{conn: conn, removed: map[string]chan struct{}{}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// player is a warden of sandboxes that are not there, and that do what their name
// says.
type player struct {
	conn *net.UnixConn

	mu      sync.Mutex
	removed map[string]chan struct{}
}

func (p *player) gone(id string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.removed[id] == nil {
		p.removed[id] = make(chan struct{})
	}
	return p.removed[id]
}

func (p *player) do(id string) error {
	switch {
	case id == "gone":
		return fmt.Errorf("state: %w", os.ErrNotExist)
	case id == "broken":
		return errors.New(strings.Repeat("it is broken ", 10_000))
	case id == "crash":
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(3)
	case id == "garbage":
		_, err := p.conn.Write([]byte("no answer"))
		return err
	case strings.HasPrefix(id, "hang"):
		<-p.gone(id)
		return errors.New("it was removed")
	}
	return nil
}

func (p *player) Enter(id string, program warden.Program, s warden.Streams) error {
	if err := p.do(id); err != nil {
		return err
	}
	in, err := io.ReadAll(s.In)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "%s %v %v %v %s", id, program.Argv, program.Env, program.Admin, in)
	_, more := io.WriteString(s.Err, "errors")
	return errors.Join(err, more)
}

func (p *player) Pause(id string) error  { return p.do(id) }
func (p *player) Resume(id string) error { return p.do(id) }

func (p *player) Checkpoint(id, image string) error {
	if image != "image" {
		return errors.New("no image")
	}
	return p.do(id)
}

func (p *player) Remove(id string) error {
	if strings.HasPrefix(id, "hang") {
		close(p.gone(id))
		return nil
	}
	return p.do(id)
}
