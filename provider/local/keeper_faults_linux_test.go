package local_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
)

// TestKeeperKilledWhileMaking is about a keeper that dies at any step of making a
// sandbox: it is made, or nothing of it is left, and the next has another keeper.
func TestKeeperKilledWhileMaking(t *testing.T) {
	dir := t.TempDir()
	p := provider(t, keeping(dir))
	must(t, create(t, p).Destroy(t.Context()))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if pid := keeperPID(dir); pid != 0 {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}()
	var made []cove.Sandbox
	for range 12 {
		s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{})
		if err == nil {
			made = append(made, s)
		} else {
			wants(t, cove.Unavailable, err, "create")
		}
	}
	close(stop)
	<-done
	for _, s := range made {
		must(t, s.Destroy(t.Context()))
	}
	ends(t, "nothing is left", func() bool { return len(ids(t, p)) == 0 })
	last := create(t, p)
	says(t, last)
	must(t, last.Destroy(t.Context()))
}

// stranger plays a keeper of another version.
func stranger(args []string) error {
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: filepath.Join(args[0], "keeper.sock")})
	if err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		return err
	}
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return err
		}
		if _, err := c.Read(make([]byte, 1024)); err == nil {
			_, _ = c.Write([]byte{0, 0, 99, 0, 0, 0}) // done, in protocol 99
		}
	}
}

// TestAnotherVersion is about what a keeper holds that nobody understands: it is
// ended, and who asks for it learns why.
func TestAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	out, say, err := os.Pipe()
	must(t, err)
	cmd := linuxtest.Start(t, linuxtest.Child{Name: "stranger", Args: []string{dir}}, say, os.Stderr)
	_ = say.Close()
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	p, err := local.New(keeping(dir))
	must(t, err)
	defer func() { must(t, p.Close()) }()
	_, err = p.Attach(t.Context(), cove.NewID())
	wants(t, cove.NotFound, err, "attach")
	if !strings.Contains(cove.MessageOf(err), "another version") {
		t.Errorf("the cause is not said: %v", err)
	}
	if state, _ := cmd.Process.Wait(); state != nil && state.Success() {
		t.Errorf("it ended as %v", state)
	}
	s := create(t, p)
	says(t, s)
	must(t, s.Destroy(t.Context()))
}
