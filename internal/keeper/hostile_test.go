//go:build linux

package keeper_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/keeper"
)

// say sends a packet and returns the code of the answer; 255 is the end.
func say(t *testing.T, c *net.UnixConn, packet []byte, files ...int) byte {
	t.Helper()
	var oob []byte
	if len(files) > 0 {
		oob = keeper.Rights(files...)
	}
	if _, _, err := c.WriteMsgUnix(packet, oob, nil); err != nil {
		return 255
	}
	buf := make([]byte, 64<<10)
	n, err := c.Read(buf)
	if err != nil || n == 0 {
		return 255
	}
	return keeper.CodeOf(buf[:n])
}

func TestMalformed(t *testing.T) {
	r, _ := pipe(t)
	fd := int(r.Fd())
	hello := keeper.Hello(keeper.Protocol)
	for name, test := range map[string]struct {
		first  []byte
		packet []byte
		files  []int
		want   byte
	}{
		"no hello":            {packet: keeper.Ask(keeper.KindPut, "box", ""), want: keeper.CodeWrong},
		"another version":     {packet: keeper.Hello(keeper.Protocol + 1), want: keeper.CodeVersion},
		"nonsense":            {packet: []byte("nonsense"), want: keeper.CodeWrong},
		"nonsense later":      {first: hello, packet: []byte{200, 1, 2}, want: keeper.CodeWrong},
		"too long":            {first: hello, packet: make([]byte, 190<<10), want: 255},
		"files without names": {first: hello, packet: keeper.Ask(keeper.KindPut, "box", ""), files: []int{fd}, want: keeper.CodeWrong},
		"names without files": {first: hello, packet: keeper.Ask(keeper.KindPut, "box", "", "a"), want: keeper.CodeWrong},
		"a name twice":        {first: hello, packet: keeper.Ask(keeper.KindPut, "box", "", "a", "a"), files: []int{fd, fd}, want: keeper.CodeWrong},
		"no sandbox":          {first: hello, packet: keeper.Ask(keeper.KindPut, "", ""), want: keeper.CodeWrong},
		"no program":          {first: hello, packet: keeper.Ask(keeper.KindKeep, "box", ""), want: keeper.CodeWrong},
		"a stream of no kind": {first: hello, packet: keeper.Ask(keeper.KindKeep, "box", "p", "middle"), files: []int{fd}, want: keeper.CodeWrong},
		"files for nothing":   {first: hello, packet: keeper.Ask(keeper.KindDrop, "box", "", "a"), files: []int{fd}, want: keeper.CodeWrong},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			stop, _, err := keeper.Serve(dir)
			must(t, err)
			defer stop()
			c, err := keeper.Raw(dir)
			must(t, err)
			defer func() { _ = c.Close() }()
			if test.first != nil {
				if got := say(t, c, test.first); got != 0 {
					t.Fatalf("hello gives %d", got)
				}
			}
			if got := say(t, c, test.packet, test.files...); got != test.want {
				t.Errorf("it gives %d, want %d", got, test.want)
			}
			_ = c.Close()
			next, err := keeper.Connect(t.Context(), dir) // it serves the next
			must(t, err)
			must(t, next.Close())
		})
	}
}

// TestHelloTwice is about a kind of request that comes at the wrong time.
func TestHelloTwice(t *testing.T) {
	dir := t.TempDir()
	stop, _, err := keeper.Serve(dir)
	must(t, err)
	defer stop()
	c, err := keeper.Connect(t.Context(), dir)
	must(t, err)
	put(t, c, "box")
	out, _ := pipe(t)
	must(t, c.Keep(t.Context(), "box", "p", nil, keeper.Streams{In: -1, Out: int(out.Fd()), Err: -1}))
	must(t, c.Close())
	raw, err := keeper.Raw(dir)
	must(t, err)
	defer func() { _ = raw.Close() }()
	if got := say(t, raw, keeper.Hello(keeper.Protocol)); got != 0 {
		t.Errorf("hello gives %d", got)
	}
	if got := say(t, raw, keeper.Ask(keeper.KindHello, "box", "p")); got != keeper.CodeWrong {
		t.Errorf("a second hello gives %d", got)
	}
}

func TestOneServerAtATime(t *testing.T) {
	t.Cleanup(keeper.Hurry(5*time.Second, 20*time.Millisecond, time.Second, time.Second))
	dir, c := serve(t)
	put(t, c, "box")
	if _, err := keeper.Connect(t.Context(), dir); !errors.Is(err, keeper.ErrBusy) {
		t.Errorf("a second server gets %v", err)
	}
	must(t, c.Close())
	again, err := keeper.Connect(t.Context(), dir)
	must(t, err)
	if names, err := again.List(t.Context()); err != nil || len(names) != 1 {
		t.Errorf("the next server finds %v, %v", names, err)
	}
	must(t, again.Close())
}

func TestIdle(t *testing.T) {
	t.Cleanup(keeper.Hurry(10*time.Millisecond, time.Second, 10*time.Millisecond, time.Second))
	dir := t.TempDir()
	_, done, err := keeper.Serve(dir)
	must(t, err)
	<-done
	if _, err := keeper.Connect(t.Context(), dir); !errors.Is(err, keeper.ErrNone) {
		t.Errorf("after its end: %v", err)
	}
	stop, _, err := keeper.Serve(dir)
	must(t, err)
	defer stop()
	c, err := keeper.Connect(t.Context(), dir)
	must(t, err)
	put(t, c, "box")
	if _, _, err := keeper.Serve(dir); err == nil || !strings.Contains(err.Error(), "another keeper") {
		t.Errorf("a second keeper gives %v", err)
	}
	must(t, c.Close())
}

// TestUnreachable is about a keeper whose socket is gone, or all of its directory:
// nobody will ever free what it holds.
func TestUnreachable(t *testing.T) {
	t.Cleanup(keeper.HurryLooks(5 * time.Millisecond))
	t.Run("socket", func(t *testing.T) {
		unreachable(t, func(dir string) error { return os.Remove(filepath.Join(dir, "keeper.sock")) })
	})
	t.Run("directory", func(t *testing.T) { unreachable(t, os.RemoveAll) })
}

func unreachable(t *testing.T, remove func(dir string) error) {
	t.Helper()
	dir := t.TempDir()
	_, done, err := keeper.Serve(dir)
	must(t, err)
	c, err := keeper.Connect(t.Context(), dir)
	must(t, err)
	r, w := pipe(t)
	must(t, c.Put(t.Context(), "box", keeper.Holding{Files: map[string]int{"w": int(w.Fd())}}))
	must(t, w.Close())
	must(t, remove(dir))
	if _, err := c.List(t.Context()); err != nil {
		t.Errorf("while a server is served: %v", err)
	}
	must(t, c.Close())
	<-done
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("what it held is open: %d, %v", n, err)
	}
}

func TestSquatted(t *testing.T) {
	t.Run("a file", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "keeper.sock"), nil, 0o600))
		if _, _, err := keeper.Serve(dir); err == nil || !strings.Contains(err.Error(), "no socket") {
			t.Errorf("it gives %v", err)
		}
		_, err := keeper.Launch(t.Context(), dir, "/proc/self/exe", nil)
		if err == nil || !strings.Contains(err.Error(), "no socket") {
			t.Errorf("who launches it hears %v", err)
		}
	})
	t.Run("a socket of nobody", func(t *testing.T) {
		dir := t.TempDir()
		l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: filepath.Join(dir, "keeper.sock")})
		must(t, err)
		l.SetUnlinkOnClose(false)
		must(t, l.Close())
		if _, err := keeper.Connect(t.Context(), dir); !errors.Is(err, keeper.ErrNone) {
			t.Errorf("it gives %v", err)
		}
		stop, _, err := keeper.Serve(dir)
		must(t, err)
		stop()
	})
	t.Run("another user", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can be another user")
		}
		dir := t.TempDir()
		l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: filepath.Join(dir, "keeper.sock")})
		must(t, err)
		defer func() { _ = l.Close() }()
		must(t, os.Chmod(filepath.Join(dir, "keeper.sock"), 0o777))
		for _, d := range []string{dir, filepath.Dir(dir)} {
			must(t, os.Chmod(d, 0o755))
		}
		must(t, unix.Setresuid(-1, 65534, 0))
		defer func() { must(t, unix.Setresuid(-1, 0, 0)) }()
		_, err = keeper.Connect(t.Context(), dir)
		if err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("a keeper of another user gives %v", err)
		}
	})
	t.Run("no directory", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "none")
		if _, _, err := keeper.Serve(dir); err == nil {
			t.Error("it is served")
		}
		if _, err := keeper.Connect(t.Context(), dir); err == nil {
			t.Error("it is connected to")
		}
		if err := keeper.Evict(t.Context(), dir); err == nil {
			t.Error("it is evicted")
		}
	})
}

// TestProcess is a keeper as it is in life.
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	c, err := keeper.Launch(ctx, dir, "/proc/self/exe", nil)
	must(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "keeper.lock"))
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		must(t, unix.Kill(pid, sig))
	}
	info, err := os.Stat(filepath.Join(dir, "keeper.sock"))
	must(t, err)
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may use the socket: %v", info.Mode())
	}
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("its session is %d, %v", sid, err)
	}
	r, w := pipe(t)
	must(t, c.Put(ctx, "box", keeper.Holding{Files: map[string]int{"w": int(w.Fd())}}))
	must(t, w.Close())
	must(t, c.Close())
	c, err = keeper.Connect(ctx, dir)
	must(t, err)
	must(t, keeper.Evict(ctx, dir))
	<-c.Done()
	if _, err := c.List(ctx); !errors.Is(err, keeper.ErrGone) {
		t.Errorf("a keeper that is gone says %v", err)
	}
	must(t, c.Close())
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("what it held is open: %d, %v", n, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "kept", "out-1"), []byte("left"), 0o600))
	c, err = keeper.Launch(ctx, dir, "/proc/self/exe", nil)
	must(t, err)
	if left, _ := os.ReadDir(filepath.Join(dir, "kept")); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	must(t, c.Close()) // which ends it
	if _, err := keeper.Connect(ctx, dir); !errors.Is(err, keeper.ErrNone) {
		t.Errorf("after its end: %v", err)
	}
	if err := keeper.Evict(ctx, dir); !errors.Is(err, keeper.ErrNone) {
		t.Errorf("evicting nobody gives %v", err)
	}
}

func TestNotAKeeper(t *testing.T) {
	t.Cleanup(keeper.HurryAnswers(100 * time.Millisecond))
	dir := t.TempDir()
	if _, err := keeper.Launch(t.Context(), dir, "/bin/true", nil); !errors.Is(err, keeper.ErrGone) {
		t.Errorf("what ends at once gives %v", err)
	}
	if _, err := keeper.Launch(t.Context(), dir, filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not there gives %v", err)
	}
}

// TestNonsense is about a keeper that is none.
func TestNonsense(t *testing.T) {
	t.Cleanup(keeper.HurryAnswers(50 * time.Millisecond))
	for name, test := range map[string]struct {
		hello, then []byte
		want        error
	}{
		"silent":           {want: keeper.ErrGone},
		"nonsense":         {hello: []byte("nonsense"), want: keeper.ErrGone},
		"another version":  {hello: keeper.Say(0, keeper.Protocol+1), want: keeper.ErrVersion},
		"says version":     {hello: keeper.Say(keeper.CodeVersion, 9), want: keeper.ErrVersion},
		"does not know it": {hello: keeper.Say(keeper.CodeWrong, 0), want: keeper.ErrVersion},
		"silent later":     {hello: keeper.Say(0, keeper.Protocol)},
		"nonsense later":   {hello: keeper.Say(0, keeper.Protocol), then: []byte("nonsense")},
		"names, no files":  {hello: keeper.Say(0, keeper.Protocol), then: keeper.Say(0, 0, "link", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			must(t, err)
			done := make(chan struct{})
			go func() {
				defer close(done)
				buf := make([]byte, 4<<10)
				for _, answer := range [][]byte{test.hello, test.then, test.then, test.then} {
					if n, err := unix.Read(fds[1], buf); err != nil || n == 0 {
						return
					}
					if answer != nil {
						_ = unix.Sendmsg(fds[1], answer, nil, nil, unix.MSG_NOSIGNAL)
					}
				}
			}()
			c, err := keeper.Greet(t.Context(), fds[0])
			if !errors.Is(err, test.want) {
				t.Errorf("it gives %v", err)
			}
			if c != nil {
				if _, err := c.Get(t.Context(), "box"); err == nil {
					t.Error("it has something")
				}
				if _, _, err := c.Look(t.Context(), "box", "p"); err == nil {
					t.Error("it has a program")
				}
				for _, err := range c.Follow(t.Context(), "box", "p", 0) {
					if err == nil {
						t.Error("it has output")
					}
				}
				must(t, c.Close())
			}
			_ = unix.Shutdown(fds[1], unix.SHUT_RDWR)
			<-done
			_ = unix.Close(fds[1])
		})
	}
}

func TestCanceled(t *testing.T) {
	_, c := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Put(ctx, "box", keeper.Holding{}); !errors.Is(err, context.Canceled) {
		t.Errorf("it gives %v", err)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(keeper.Hello(1))
	f.Add(keeper.Ask(keeper.KindPut, "box", "p", "a"))
	f.Add(keeper.Say(0, 1, "x"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = keeper.DecodeRequest(b), keeper.DecodeAnswer(b)
	})
}
