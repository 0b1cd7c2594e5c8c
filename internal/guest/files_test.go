//go:build linux

package guest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

func content(t testing.TB, c *guestAt, name string) (string, error) {
	t.Helper()
	r, err := c.Files().Read(t.Context(), name, 0, 0)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	_ = r.Close()
	return string(b), err
}

func TestFiles(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		ctx, f := t.Context(), c.Files()
		for _, name := range []string{"a/b/c", "new\nline", "bad\xff", " x ", "-rf", strings.Repeat("n", 255)} {
			if err := f.Write(ctx, name, strings.NewReader(name), 0); err != nil {
				t.Fatal(err)
			}
			if text, err := content(t, c, name); text != name || err != nil {
				t.Errorf("%q: %q, %v", name, text, err)
			}
			if i, err := f.Stat(ctx, name); err != nil || i.Mode != 0o644 || int(i.Size) != len(name) || i.Path != c.dir+"/"+name {
				t.Errorf("%+v, %v", i, err)
			}
		}
		run(t, c, sh("mkfifo fifo; ln -s a link; mkdir -m 1700 sticky"))
		for name, mode := range map[string]fs.FileMode{"fifo": fs.ModeNamedPipe | 0o644, "link": fs.ModeSymlink | 0o777, "sticky": fs.ModeDir | fs.ModeSticky | 0o700, "/dev/null": fs.ModeDevice | fs.ModeCharDevice | 0o666} {
			if i, err := f.Stat(ctx, name); err != nil || i.Mode != mode {
				t.Errorf("%s: %s, %v; want %s", name, i.Mode, err, mode)
			}
		}
		_, err := content(t, c, "fifo")
		wants(t, cove.Invalid, err, "reading a FIFO")
		_, err = content(t, c, "a")
		wants(t, cove.Invalid, err, "reading a directory")
		_, err = f.Archive(ctx, "fifo")
		wants(t, cove.Invalid, err, "an archive of a FIFO")
		wants(t, cove.Invalid, f.Write(ctx, "a", strings.NewReader("x"), 0), "writing to a directory")
		wants(t, cove.Invalid, f.Write(ctx, "a/b/c/d", strings.NewReader("x"), 0), "writing below a file")
		wants(t, cove.Conflict, f.Mkdir(ctx, "a/b/c"), "a directory where a file is")
		wants(t, cove.Invalid, f.Mkdir(ctx, "a/b/c/d/e"), "a directory below a file")
		wants(t, cove.Invalid, f.Remove(ctx, "."), "removing the workspace")
		wants(t, cove.NotFound, f.Remove(ctx, "none"), "removing nothing")
		wants(t, cove.Invalid, f.Remove(ctx, ""), "removing no name")
		wants(t, cove.Invalid, f.Move(ctx, "a", "a/inside"), "moving into itself")
		wants(t, cove.Invalid, f.Move(ctx, "a", "\x00"), "moving to NUL")
		broken := errors.New("broken")
		if err := f.Write(ctx, "half/file", io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)), 0); !errors.Is(err, broken) {
			t.Errorf("a reader that fails gives %v", err)
		}
		_, err = f.Stat(ctx, "half")
		wants(t, cove.NotFound, err, "what was half written")
		var names []string
		for i, err := range f.List(ctx, "a", 9) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, strings.TrimPrefix(i.Path, c.dir))
		}
		if d := cmp.Diff([]string{"/a/b", "/a/b/c"}, names); d != "" {
			t.Error(d)
		}
	})
}

func TestFilesWithoutRoom(t *testing.T) {
	c := connect(t, place{namespaces: true})
	run(t, c, sh("mkdir small && mount -t tmpfs -o size=64k,nr_inodes=4 tmpfs small"))
	err := c.Files().Write(t.Context(), "small/x", bytes.NewReader(make([]byte, 1<<20)), 0)
	if wants(t, cove.Exhausted, err, "too much"); cove.ReasonOf(err) != cove.ReasonWorkspaceFull {
		t.Errorf("reason %q", cove.ReasonOf(err))
	}
	wants(t, cove.Exhausted, c.Files().Mkdir(t.Context(), "small/1/2/3/4"), "too many")
	wants(t, cove.NotFound, func() error { _, err := c.Files().Stat(t.Context(), "small/1"); return err }(), "what was half made")
	wants(t, cove.Exhausted, c.Files().Unpack(t.Context(), "small", bytes.NewReader(pack(t, &tar.Header{Name: "x", Size: 1 << 20, Typeflag: tar.TypeReg}))), "an archive")
	wants(t, cove.Invalid, c.Files().Move(t.Context(), "small", "/tmp/elsewhere"), "moving a mount")
}

// pack makes an archive of headers, with zeros as content.
func pack(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range headers {
		h.Mode |= 0o644
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestArchives(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		ctx, f := t.Context(), c.Files()
		run(t, c, sh("mkdir -p in/d/e; echo content > in/d/f; ln -s d/f in/l; ln in/d/f in/hard; mkfifo in/fifo; chmod 755 in/hard"))
		r, err := f.Archive(ctx, "in")
		if err != nil {
			t.Fatal(err)
		}
		whole, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		if err := f.Unpack(ctx, "out", bytes.NewReader(whole)); err != nil {
			t.Fatal(err)
		}
		if _, out, _ := run(t, c, sh("cd out; find . | sort; cat l; stat -c %a hard")); out != ".\n./d\n./d/e\n./d/f\n./fifo\n./hard\n./l\ncontent\n755\n" {
			t.Errorf("unpacked: %q", out)
		}
		run(t, c, sh("ln -s .. out/up; ln -s d out/toward"))
		for name, h := range map[string]*tar.Header{
			"absolute":           {Name: "/x", Typeflag: tar.TypeReg},
			"dots":               {Name: "a/../../x", Typeflag: tar.TypeReg},
			"hard link out":      {Name: "x", Linkname: "../in/d/f", Typeflag: tar.TypeLink},
			"device":             {Name: "x", Typeflag: tar.TypeChar},
			"through a link out": {Name: "up/x", Typeflag: tar.TypeReg},
			"through a link":     {Name: "toward/x", Typeflag: tar.TypeReg},
			"through a file":     {Name: "hard/x", Typeflag: tar.TypeReg},
			"link to a link":     {Name: "x", Linkname: "up/in/d/f", Typeflag: tar.TypeLink},
			"file for the top":   {Name: "./", Typeflag: tar.TypeSymlink, Linkname: "d"},
			"file over a dir":    {Name: "d", Typeflag: tar.TypeReg},
		} {
			err := f.Unpack(ctx, "out", bytes.NewReader(pack(t, h)))
			wants(t, cove.Invalid, err, name)
			if _, err := f.Stat(ctx, "x"); cove.CodeOf(err) != cove.NotFound {
				t.Errorf("%s left something outside: %v", name, err)
			}
		}
		if err := f.Unpack(ctx, "out", bytes.NewReader(pack(t, &tar.Header{Name: "hard/", Typeflag: tar.TypeDir}, &tar.Header{Name: "hard", Typeflag: tar.TypeDir}))); err != nil {
			t.Errorf("a directory over a file: %v", err)
		}
		wants(t, cove.Invalid, f.Unpack(ctx, "out", strings.NewReader("this is not an archive")), "no archive")
		wants(t, cove.Conflict, f.Unpack(ctx, "in/d/f", bytes.NewReader(whole)), "unpacking into a file")
		gone, cancel := context.WithCancel(ctx)
		r, err = f.Archive(gone, "/usr/bin")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
			t.Errorf("an archive whose context ended: %v", err)
		}
		_ = r.Close()
	})
}

func TestWatch(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		run(t, c, sh("mkdir -p old/deep"))
		const many = 1000
		seen := map[string]bool{}
		var after []cove.Change
		for change, err := range c.Files().Watch(ctx, ".") {
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case change.Kind == cove.Watching:
				run(t, c, sh(fmt.Sprintf("i=0; mkdir -p new/er; while [ $i -lt %d ]; do echo x > new/er/f$i; i=$((i+1)); done; mv old moved; echo x > moved/deep/f; rm -r moved; touch end", many)))
			case change.Kind == cove.Overflow:
				t.Error("a thousand changes are no overflow")
			case change.Kind == cove.Created && strings.Contains(change.Path, "/new/er/f"):
				seen[change.Path] = true
			case strings.HasSuffix(change.Path, "/end"):
				cancel()
			default:
				change.Path = strings.TrimPrefix(change.Path, c.dir)
				after = append(after, change)
			}
		}
		if len(seen) != many {
			t.Errorf("saw %d files, want %d", len(seen), many)
		}
		var told strings.Builder
		for _, a := range after {
			told.WriteString(string(a.Kind) + " " + a.Path + "\n")
		}
		for _, want := range []string{"created /new\n", "removed /old\n", "created /moved\n", "removed /moved\n"} {
			if !strings.Contains(told.String(), want) {
				t.Errorf("nobody said: %s", want)
			}
		}
		for _, err := range c.Files().Watch(t.Context(), "new/er/f1") {
			wants(t, cove.Invalid, err, "watching a file")
		}
		for range c.Files().Watch(t.Context(), "new") {
			break
		}
	})
}

// listenAlone listens on a port of an address that is free on the other
// loopback, and stays so: others on this host take ports, too.
func listenAlone(t *testing.T, address string, family int, other unix.Sockaddr) net.Listener {
	t.Helper()
	const tries = 20
	for range tries {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			return nil // no such loopback here
		}
		t.Cleanup(func() { l.Close() })
		port := l.Addr().(*net.TCPAddr).Port
		switch to := other.(type) {
		case *unix.SockaddrInet4:
			to.Port = port
		case *unix.SockaddrInet6:
			to.Port = port
		}
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return l // there is only one
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		if err := unix.Bind(fd, other); !errors.Is(err, unix.EADDRINUSE) {
			return l
		}
	}
	t.Fatal("no port is free on both loopbacks")
	return nil
}

func TestDial(t *testing.T) {
	everywhere(t, func(t *testing.T, c *guestAt) {
		for _, l := range []net.Listener{
			listenAlone(t, "127.0.0.1:0", unix.AF_INET6, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}),
			listenAlone(t, "[::1]:0", unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
		} {
			if l == nil {
				continue
			}
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
			conn, err := c.Dial(t.Context(), l.Addr().(*net.TCPAddr).Port)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, "echo"); err != nil {
				t.Error(err)
			}
			if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Error(err)
			}
			if b, err := io.ReadAll(conn); string(b) != "echo" || err != nil {
				t.Errorf("%q, %v", b, err)
			}
			_ = conn.Close()
		}
	})
}
