package fake_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
)

func usage(t *testing.T, s cove.Sandbox) cove.Usage {
	t.Helper()
	u, err := s.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// The books are right whatever a program does with its files.
func TestBooks(t *testing.T) {
	s := sandbox(t, cove.Spec{Workspace: cove.Workspace{Size: cove.MiB, Files: 20}})
	for _, tc := range []struct {
		line  string
		bytes cove.Bytes
		files int64
	}{
		{`printf 12345 > f`, 5, 1},
		{`ln f g`, 5, 2},
		{`rm f`, 5, 1},
		{`printf 678 >> g`, 8, 1},
		{`printf x > g`, 1, 1},
		{`mkdir -p d/e; printf 22 > d/e/h; ln -s x d/l`, 3, 5},
		{`mv d /tmp/d`, 1, 1},
		{`mv /tmp/d .`, 3, 5},
		{`mv d/e/h g`, 2, 4},
		{`exec 3> open; printf 333 >&3; rm open; printf 4444 >&3`, 2, 4},
		{`exec 3> open; printf 333 >&3; mv g open; printf 4444 >&3`, 2, 4},
		{`printf abcdef > f; printf xy | dd of=f conv=notrunc 2>/dev/null`, 8, 5},
		{`rm -r d f open`, 0, 0},
		{`dd if=/dev/zero of=f bs=1M count=2 2>/dev/null; echo x > g; rm f g`, 0, 0},
		{`touch 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; mkdir d; ln -s a b; ln 1 21; echo > 22; mv 1 2; rm [0-9]*`, 0, 0},
	} {
		sh(t, s, tc.line)
		if u := usage(t, s); u.Disk != tc.bytes || u.Files != tc.files {
			t.Errorf("%s: %d bytes and %d files; want %d and %d", tc.line, u.Disk, u.Files, tc.bytes, tc.files)
		}
	}
	// While a program has it open, a removed file still takes its room.
	in, w := io.Pipe()
	p, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", "exec 3> f; head -c 600000 /dev/zero >&3; rm f; read x"}, Stdin: in})
	if err != nil {
		t.Fatal(err)
	}
	for usage(t, s).Files != 0 || usage(t, s).Disk != 600000 {
		sh(t, s, "sleep 0.001")
	}
	err = s.Files().Write(t.Context(), "g", bytes.NewReader(make([]byte, 600000)), 0o644)
	wants(t, cove.Exhausted, err)
	_ = w.Close()
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Files().Write(t.Context(), "g", bytes.NewReader(make([]byte, 600000)), 0o644); err != nil {
		t.Error(err)
	}
	if u := usage(t, s); u.Disk != 600000 || u.Files != 1 {
		t.Errorf("at the end the usage is %+v", u)
	}
}

func TestVolumesInOddPlaces(t *testing.T) {
	data, deep := t.TempDir(), t.TempDir()
	p := open(t, fake.Config{})
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{
		{Source: data, Target: "/tmp/in/side", Write: true}, {Source: deep, Target: "/mnt/deep/er"}, {Source: data, Target: "/mnt/copy"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := sh(t, s, `cd /tmp; echo x > in/side/f; cat /mnt/copy/f; ls /mnt /mnt/deep / | grep -c .; rm -r in; echo $?; mv in/side y; echo $?; mv in/side/f .; cat f; cp f in/side/; ln f in/side/g; echo $?; ln -s f in/side/l; cd /mnt/deep/er; pwd; touch z; echo $?; echo y > /mnt/new; echo $?`)
	if want := "x\n12\n1\n1\nx\n1\n/mnt/deep/er\n1\n1\n"; r.stdout != want {
		t.Errorf("gave %q; want %q\n%s", r.stdout, want, r.stderr)
	}
	whole, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{{Source: data, Target: "/tmp", Write: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if r := sh(t, whole, "cd /tmp; cat f; head -c 100000 /dev/zero > big; rm big; ls"); r.stdout != "x\nf\nl\n" {
		t.Errorf("a volume in the place of /tmp gives %q %q", r.stdout, r.stderr)
	}
	if err := whole.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	wants(t, cove.Invalid, s.Files().Move(t.Context(), "/tmp/f", "/tmp/in/side/moved"))
	wants(t, cove.Denied, s.Files().Write(t.Context(), "/mnt/copy/x", strings.NewReader(""), 0))
	if err := s.Files().Write(t.Context(), "/tmp/in/side/api", strings.NewReader("api"), 0); err != nil {
		t.Error(err)
	}
	wants(t, cove.Canceled, s.Files().Write(t.Context(), "/tmp/in/side/api", iotest.ErrReader(errors.New("broken")), 0))
	entries, err := os.ReadDir(data)
	if err != nil || len(entries) != 3 {
		t.Errorf("the host has %v, %v; want f, l and api", entries, err)
	}
	if err := os.Symlink("/etc", filepath.Join(data, "etc")); err != nil {
		t.Fatal(err)
	}
	_, err = read(t.Context(), s, "/tmp/in/side/etc/passwd")
	wants(t, cove.NotFound, err)
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Volumes: []cove.Volume{{Source: filepath.Join(data, "f"), Target: "/data"}}})
	wants(t, cove.Invalid, err)
	if n := len(ids(t, p)); n != 1 {
		t.Errorf("%d sandboxes are left; want 1", n)
	}
}

func TestWatchOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sandbox(t, cove.Spec{})
		n, lost := 0, false
		for c, err := range s.Files().Watch(t.Context(), ".") {
			if err != nil {
				t.Fatal(err)
			}
			switch c.Kind {
			case cove.Watching:
				sh(t, s, "i=0; while [ $i -lt 1200 ]; do : > f$i; i=$((i+1)); done")
			case cove.Overflow:
				lost = true
			case cove.Created, cove.Modified, cove.Removed:
				n++
			}
			if lost {
				break
			}
		}
		if n != 1024 {
			t.Errorf("%d changes came before the overflow; want 1024", n)
		}
	})
}

func TestFilesOnSimulatedPlaces(t *testing.T) {
	s := sandbox(t, cove.Spec{})
	f := s.Files()
	i, err := f.Stat(t.Context(), "/dev/null")
	if err != nil || i.Mode&os.ModeCharDevice == 0 {
		t.Errorf("stat /dev/null gives %+v, %v", i, err)
	}
	for i, err := range f.List(t.Context(), "/", 1) {
		if err != nil || !i.Mode.IsDir() {
			t.Errorf("the root holds %+v, %v", i, err)
		}
	}
	wants(t, cove.Denied, f.Mkdir(t.Context(), "/srv"))
	wants(t, cove.Denied, f.Remove(t.Context(), "/bin/sh"))
	wants(t, cove.Denied, f.Move(t.Context(), "/bin/sh", "sh"))
	wants(t, cove.Invalid, f.Move(t.Context(), "/tmp", "tmp"))
	_, err = read(t.Context(), s, "/bin/sh")
	wants(t, cove.Invalid, err)
	r, err := f.Archive(t.Context(), "/dev")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || len(b) > 10240 {
		t.Errorf("an archive of /dev has %d bytes, %v", len(b), err)
	}
	_ = r.Close()
}

func TestArchiveOfAFileThatShrinks(t *testing.T) {
	s := sandbox(t, cove.Spec{})
	if err := s.Files().Write(t.Context(), "a", bytes.NewReader(bytes.Repeat([]byte("x"), 1<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, s, "b", "removed")
	r, err := s.Files().Archive(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	in := tar.NewReader(r)
	h, err := in.Next()
	if err != nil || h.Name != "a" {
		t.Fatalf("%+v, %v", h, err)
	}
	sh(t, s, "echo short > a; rm b")
	n, err := io.Copy(io.Discard, in)
	if err != nil || n != 1<<20 {
		t.Errorf("the file has %d bytes, %v; the header promised 1 MiB", n, err)
	}
	if h, err := in.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after it comes %+v, %v", h, err)
	}
	_ = r.Close()
}

func TestUnpackSmallThings(t *testing.T) {
	s := sandbox(t, cove.Spec{Workspace: cove.Workspace{Files: 4}})
	archive := func(headers ...*tar.Header) io.Reader {
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		for _, h := range headers {
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
		}
		return &buf
	}
	f := s.Files()
	for name, tc := range map[string]struct {
		r    io.Reader
		code cove.Code
	}{
		"a file over a directory": {archive(&tar.Header{Name: "d/", Typeflag: tar.TypeDir}, &tar.Header{Name: "d", Typeflag: tar.TypeReg}), cove.Conflict},
		"the directory itself":    {archive(&tar.Header{Name: ".", Typeflag: tar.TypeSymlink, Linkname: "x"}), cove.Invalid},
		"a link without a target": {archive(&tar.Header{Name: "l", Typeflag: tar.TypeSymlink}), cove.Invalid},
		"a hard link to nothing":  {archive(&tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "none"}), cove.NotFound},
		"a hard link to a dir":    {archive(&tar.Header{Name: "d/", Typeflag: tar.TypeDir}, &tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "d"}), cove.Denied},
		"a reader that breaks":    {iotest.ErrReader(cove.Errorf(cove.Timeout, "slow")), cove.Timeout},
		"below a file":            {archive(&tar.Header{Name: "x", Typeflag: tar.TypeReg}, &tar.Header{Name: "x/y", Typeflag: tar.TypeReg}), cove.Invalid},
		"no room":                 {archive(&tar.Header{Name: "1/2/3/4/5", Typeflag: tar.TypeReg}), cove.Exhausted},
	} {
		if err := f.Unpack(t.Context(), "box", tc.r); cove.CodeOf(err) != tc.code {
			t.Errorf("%s gives %v; want %s", name, err, tc.code)
		}
		if r := sh(t, s, "rm -rf box"); r.ExitCode != 0 {
			t.Error(r.stderr)
		}
	}
	write(t, s, "file", "")
	wants(t, cove.Invalid, f.Unpack(t.Context(), "file/below", archive()))
	wants(t, cove.Invalid, f.Unpack(t.Context(), "", archive()))
}

func TestDeepTrees(t *testing.T) {
	s := sandbox(t, cove.Spec{})
	deep := strings.Repeat("d/", 200)
	write(t, s, deep+"f", "x")
	if r := sh(t, s, fmt.Sprintf("cat %sf; rm -r d; ls", deep)); r.stdout != "x" {
		t.Errorf("gave %q %q", r.stdout, r.stderr)
	}
}
