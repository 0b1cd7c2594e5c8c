package daemon_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove/internal/daemon"
)

// reads says whether a connection gets a byte from the other side.
func reads(t *testing.T, l net.Listener, path string) bool {
	t.Helper()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("x"))
			_ = c.Close()
		}
	}()
	c, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	n, _ := io.ReadFull(c, make([]byte, 1))
	return n == 1
}

func TestSocketIsForItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	// What a killed server left is replaced.
	if err := os.WriteFile(path, []byte("stale"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := daemon.ListenSocket(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if !reads(t, l, path) {
		t.Error("its owner is refused")
	}
}

func TestSocketRefusesStrangers(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root is nobody's stranger; the owner of the socket is")
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := daemon.ListenSocketAs(path, os.Geteuid()+1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if got, root := reads(t, l, path), os.Geteuid() == 0; got != root {
		t.Errorf("served %v, root %v", got, root)
	}
}

func TestSocketInAPlaceThatIsNone(t *testing.T) {
	if _, err := daemon.ListenSocket(filepath.Join(t.TempDir(), "none", "s")); err == nil {
		t.Error("listens in a directory that does not exist")
	}
	full := filepath.Join(t.TempDir(), "dir")
	if err := os.MkdirAll(filepath.Join(full, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.ListenSocket(full); err == nil {
		t.Error("replaced a directory with files")
	}
}

func TestIdleIsWithoutRequestsAndSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := daemon.NewTraffic()
		release := make(chan struct{})
		h := tr.Watch(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		var sessions atomic.Int32
		sessions.Store(1)
		start := time.Now()
		ended := make(chan time.Duration, 1)
		go func() {
			if tr.AwaitIdle(t.Context(), time.Minute, func(context.Context) bool { return sessions.Load() > 0 }) {
				ended <- time.Since(start)
			}
		}()
		go func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		}()
		time.AfterFunc(90*time.Second, func() { close(release) })     // a request until 1:30
		time.AfterFunc(200*time.Second, func() { sessions.Store(0) }) // a session until 3:20
		if got := <-ended; got < 200*time.Second || got > 330*time.Second {
			t.Errorf("ended after %s", got)
		}
	})
}

func TestIdleEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if daemon.NewTraffic().AwaitIdle(ctx, time.Minute, func(context.Context) bool { return false }) {
			t.Error("idle too soon")
		}
	})
}

func TestLogIsBounded(t *testing.T) {
	h := newHome(t)
	l, err := daemon.OpenLog(h.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	block := []byte(strings.Repeat("x", 1<<20-1) + "\n")
	for range 20 {
		if _, err := l.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{h.Log(), h.Log() + ".1"} {
		info, err := os.Stat(name)
		if err != nil || info.Size() > daemon.MaxLog || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if names := entries(t, h.Dir()); len(names) != 2 {
		t.Errorf("files: %v", names)
	}
	if _, err := daemon.OpenLog(filepath.Join(h.Dir(), "none")); err == nil {
		t.Error("a log without its home")
	}
}

func TestComplaintIsFoundInALog(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"time=x level=INFO\n":             "",
		"cove: one\n  remedy\n":           "one; remedy",
		"cove: one\ncove: two\n":          "two",
		"x\ncove: two\n  cause: c\n  r\n": "two; cause: c; r",
	} {
		if got := daemon.Complaint(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
