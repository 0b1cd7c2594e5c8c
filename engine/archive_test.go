package engine_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// TestADamagedArchiveKeepsTheSessionStopped, says so, and works again when the
// file is mended.
func TestADamagedArchiveKeepsTheSessionStopped(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	s := mustOpen(t, p, cove.Spec{})
	sh(t, p, s.ID, "seq 1 5000 > numbers; echo precious > file")
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.dir, "archives", string(s.ID)+".tar")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"the first header": append([]byte{good[0] ^ 1}, good[1:]...), "a file": bytes.Replace(good, []byte("4000\n"), []byte("4OOO\n"), 1),
		"cut off": good[:len(good)/2], "empty": {}, "its seal": append(append([]byte(nil), good[:len(good)-1]...), good[len(good)-1]^1),
		"missing": nil,
	} {
		if err := os.Remove(file); err != nil && name != "missing" {
			t.Fatal(err)
		}
		if name != "missing" {
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := p.Sessions().Start(t.Context(), s.ID)
		wantCode(t, err, cove.Unavailable, "")
		if text := cove.MessageOf(err); !strings.Contains(text, "cannot be read back") || cove.RemedyOf(err) == "" {
			t.Errorf("%s: the message is %q", name, text)
		}
		if got := state(t, p, s.ID); got != cove.Stopped {
			t.Errorf("%s: the session is %s", name, got)
		}
		if n := held(t, w.provider); n != 0 {
			t.Errorf("%s: %d sandboxes are left", name, n)
		}
		if err := os.WriteFile(file, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, p, s.ID, "cat file; tail -n 1 numbers"); got != "precious\n5000\n" {
		t.Errorf("after all the files hold %q", got)
	}
}

// TestAnArchiveHasNoMoreRoomThanTheWorkspace: a file that is nothing but a hole
// takes no room in the workspace, and the fake provider writes it as zeros.
func TestAnArchiveHasNoMoreRoomThanTheWorkspace(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	s := mustOpen(t, p, cove.Spec{Workspace: cove.Workspace{Size: 2 * cove.MiB, Files: 100}})
	sh(t, p, s.ID, "echo precious > file")
	boxes, err := filepath.Glob(filepath.Join(w.dir, "fake", "*", "*", "workspace", "file"))
	if err != nil || len(boxes) != 1 {
		t.Fatalf("the file is in %v (%v)", boxes, err)
	}
	hole := filepath.Join(filepath.Dir(boxes[0]), "hole")
	if err := os.WriteFile(hole, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(hole, 1<<43); err != nil {
		t.Fatal(err)
	}
	_, err = p.Sessions().Stop(t.Context(), s.ID)
	wantCode(t, err, cove.Exhausted, cove.ReasonWorkspaceFull)
	if text := cove.MessageOf(err); !strings.Contains(text, "runs on") || !strings.Contains(text, "more room") || !strings.Contains(cove.RemedyOf(err), "holes") {
		t.Errorf("the message is %q, %q", text, cove.RemedyOf(err))
	}
	if names := namesIn(t, filepath.Join(w.dir, "archives"), ""); len(names) != 0 {
		t.Errorf("%v is left", names)
	}
	if got := sh(t, p, s.ID, "cat file"); got != "precious\n" {
		t.Errorf("the file holds %q", got)
	}
	if err := os.Remove(hole); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Error(err)
	}
}

// fullDisk is full after some bytes.
type fullDisk struct {
	cove.Archives

	left int64
}

func (d fullDisk) Put(ctx context.Context, id cove.ID, r io.Reader) (cove.Bytes, error) {
	if _, err := io.CopyN(io.Discard, r, d.left); err == nil {
		return 0, cove.Wrap(cove.Exhausted, syscall.ENOSPC, "archives: the disk is full; free some space and try again")
	}
	return d.Archives.Put(ctx, id, r)
}

func TestADiskThatFillsUpWhileArchiving(t *testing.T) {
	w := newWorld(t)
	p := w.open(func(c *engine.Config) { c.Archives = fullDisk{c.Archives, 2000} }).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	sh(t, p, s.ID, "seq 1 5000 > numbers; echo precious > file")
	pr := background(t, p, s.ID, cove.ExecRequest{Line: "sleep 1000"})
	_, err := p.Sessions().Stop(t.Context(), s.ID)
	wantCode(t, err, cove.Exhausted, "")
	if text := cove.MessageOf(err); !strings.Contains(text, "runs on") || !strings.Contains(text, "disk is full") {
		t.Errorf("the message is %q", text)
	}
	if got := state(t, p, s.ID); got != cove.Running {
		t.Errorf("the session is %s", got)
	}
	if got := sh(t, p, s.ID, "cat file; tail -n 1 numbers"); got != "precious\n5000\n" {
		t.Errorf("the files hold %q", got)
	}
	if x, err := p.Processes(s.ID).Wait(t.Context(), pr.PID); err != nil || x.Outcome != cove.Killed {
		t.Errorf("its program ended as %+v (%v)", x, err)
	}
	if names := namesIn(t, filepath.Join(w.dir, "archives"), ""); len(names) != 0 {
		t.Errorf("%v is left", names)
	}
}

// TestAWorkspaceThatChangesWhileItIsSaved: programs that outlived theirs remove
// and write files all the time. A stop ends, with an archive that can be read or
// with an error that says what happened.
func TestAWorkspaceThatChangesWhileItIsSaved(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	for range 5 {
		s := mustOpen(t, p, cove.Spec{})
		sh(t, p, s.ID, "echo precious > file; mkdir d; for i in $(seq 1 200); do mkdir d/$i; echo $i > d/$i/f; done")
		sh(t, p, s.ID, "(while :; do rm -rf d; mkdir d; for i in 1 2 3 4 5; do mkdir d/$i; echo $i > d/$i/f; done; done) & exit 0")
		_, err := p.Sessions().Stop(t.Context(), s.ID)
		if err != nil {
			wantCode(t, err, cove.Conflict, "")
			if !strings.Contains(cove.MessageOf(err), "runs on") {
				t.Errorf("the message is %q", cove.MessageOf(err))
			}
		} else if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if got := sh(t, p, s.ID, "cat file"); got != "precious\n" {
			t.Errorf("the file holds %q", got)
		}
		if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
			t.Fatal(err)
		}
	}
}

// TestASandboxThatVanishesWhileItIsStopped is not told as stopped.
func TestASandboxThatVanishesWhileItIsStopped(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	s := mustOpen(t, p, cove.Spec{})
	if err := w.provider.Remove(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	_, err := p.Sessions().Stop(t.Context(), s.ID)
	wantCode(t, err, cove.Conflict, cove.ReasonNodeLost)
	if got := state(t, p, s.ID); got != cove.Failed {
		t.Errorf("the session is %s", got)
	}
}

// TestManyFilesThroughStopAndStart moves many files for real, and 100,000 that are
// only told of: what is between a sandbox and its archive holds none of them.
func TestManyFilesThroughStopAndStart(t *testing.T) {
	w := newWorld(t)
	crowds := &crowded{most: 100_000}
	if testing.Short() {
		crowds.most = 20_000
	}
	p := w.open(func(c *engine.Config) {
		crowds.Provider = c.Providers[0]
		c.Providers = []cove.Provider{crowds}
	}).As(boss)
	s := mustOpen(t, p, cove.Spec{})
	sh(t, p, s.ID, "for d in $(seq 1 20); do mkdir $d; for i in $(seq 1 50); do echo $i > $d/$i; done; done")
	for _, pretend := range []bool{false, true} {
		crowds.pretend = pretend
		if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if pretend {
			break
		}
		if u, err := p.Sessions().Usage(t.Context(), s.ID); err != nil || u.Files != 1020 {
			t.Errorf("%+v (%v), want 1020 files", u, err)
		}
	}
	if crowds.seen != crowds.most {
		t.Errorf("%d files came back, want %d", crowds.seen, crowds.most)
	}
	if crowds.peak > 128<<20 {
		t.Errorf("%d bytes were in use on the way", crowds.peak)
	}
}

// crowded makes sandboxes that pretend to have many files.
type crowded struct {
	cove.Provider

	pretend    bool
	most, seen int
	peak       uint64
}

func (c *crowded) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	s, err := c.Provider.Create(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	return crowd{s, c}, nil
}

type crowd struct {
	cove.Sandbox

	c *crowded
}

func (s crowd) Files() cove.Files { return crowdFiles{s.Sandbox.Files(), s.c} }

type crowdFiles struct {
	cove.Files

	c *crowded
}

func (f crowdFiles) Archive(ctx context.Context, dir string) (io.ReadCloser, error) {
	if !f.c.pretend {
		return f.Files.Archive(ctx, dir)
	}
	return bomb(func(out *tar.Writer) error {
		for i := range f.c.most {
			if err := out.WriteHeader(&tar.Header{Name: fmt.Sprintf("d%d/%d", i%100, i), Mode: 0o644}); err != nil {
				return err
			}
			if i%10_000 == 0 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				f.c.peak = max(f.c.peak, m.HeapInuse)
			}
		}
		return nil
	}), nil
}

func (f crowdFiles) Unpack(ctx context.Context, dir string, r io.Reader) error {
	if !f.c.pretend {
		return f.Files.Unpack(ctx, dir, r)
	}
	for in := tar.NewReader(r); ; f.c.seen++ {
		if _, err := in.Next(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// TestStrangeNamesComeBack: names that are hard to write down go through stop
// and start as they are.
func TestStrangeNamesComeBack(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	s := mustOpen(t, p, cove.Spec{})
	names := []string{
		strings.Repeat("n", 255), strings.Repeat("é", 127) + "x", "new\nline", "tab\tand\x01", "\xff\xfe invalid", " leading", "-dash", "'quote\"", "a\\b", "…", "\u202egpj.exe",
	}
	for i, name := range names {
		if err := p.Files(s.ID).Write(t.Context(), name, strings.NewReader(fmt.Sprint(i)), 0o644); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		r, err := p.Files(s.ID).Read(t.Context(), name, 0, 0)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		got, err := io.ReadAll(r)
		if _ = r.Close(); err != nil || string(got) != fmt.Sprint(i) {
			t.Errorf("%q holds %q (%v)", name, got, err)
		}
	}
	listed := 0
	for info, err := range p.Files(s.ID).List(t.Context(), ".", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(info.Path, cove.WorkspacePath+"/") {
			t.Errorf("a path is %q", info.Path)
		}
		listed++
	}
	if listed != len(names) {
		t.Errorf("%d files are listed, want %d", listed, len(names))
	}
}

// TestFilesBeyondTheBoundsAreReadBack: files that were saved come back although they take
// more than the workspace may have. There is room for them and for nothing else, also
// after a restart of the server, and the session can be stopped again.
func TestFilesBeyondTheBoundsAreReadBack(t *testing.T) {
	for name, less := range map[string]cove.Workspace{"bytes": {Size: cove.MiB, Files: 100}, "files": {Size: 2 * cove.MiB, Files: 50}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			e := w.open()
			s := mustOpen(t, e.As(boss), cove.Spec{Workspace: cove.Workspace{Size: 2 * cove.MiB, Files: 100}})
			sh(t, e.As(boss), s.ID, "mkdir d")
			for i := range 80 {
				content := strings.NewReader(strings.Repeat("x", 16<<10))
				if err := e.As(boss).Files(s.ID).Write(t.Context(), fmt.Sprintf("d/%d", i), content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := e.As(boss).Sessions().Stop(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
			w.shut(e, w.provider)
			rec, err := w.store.GetSession(t.Context(), s.ID)
			if err != nil {
				t.Fatal(err)
			}
			rec.Spec.Workspace.Size, rec.Spec.Workspace.Files = less.Size, less.Files
			if err := w.store.PutSession(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			e = w.open()
			for range 2 {
				p := e.As(boss)
				if _, err := p.Sessions().Start(t.Context(), s.ID); err != nil {
					t.Fatal(err)
				}
				if got := sh(t, p, s.ID, "ls d | wc -l; tail -c 3 d/79"); got != "80\nxxx" {
					t.Errorf("the files are %q", got)
				}
				if name == "bytes" {
					err = p.Files(s.ID).Write(t.Context(), "more", strings.NewReader(strings.Repeat("x", 64<<10)), 0o644)
				} else {
					err = p.Files(s.ID).Mkdir(t.Context(), "one/more")
				}
				wantCode(t, err, cove.Exhausted, cove.ReasonWorkspaceFull)
				e = w.again(e)
				p = e.As(boss)
				if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
					t.Fatal(err)
				}
			}
			if rec, err = w.store.GetSession(t.Context(), s.ID); err != nil || rec.Spec.Workspace.Size != less.Size {
				t.Errorf("the record has bounds of %v (%v)", rec.Spec.Workspace, err)
			}
		})
	}
}
