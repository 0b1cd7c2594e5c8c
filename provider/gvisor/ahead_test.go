//go:build linux

package gvisor_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/kernel"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/provider/gvisor"
)

// imported are modules that no driver imports by itself.
var imported = []string{"decimal", "sqlite3", "no_such_module"}

var bounds = cove.Resources{Memory: cove.GiB, PIDs: 64}

var aheadMold = cove.Mold{Provider: "gvisor", Template: "base", Workspace: cove.WorkspaceMemory}

// ahead starts interpreters in a spare that have imported modules, and in the sandbox
// that it becomes nothing at all.
type ahead struct{ cove.Spare }

func (a ahead) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	p, ok := a.Spare.(cove.SparePreloader)
	if !ok {
		return nil, cove.Errorf(cove.Internal, "the spare imports nothing ahead")
	}
	return p.StartPreloaded(ctx, cmd, bounds, imported)
}

// prepareAhead prepares spares until one has an interpreter.
func prepareAhead(t *testing.T, p cove.Provider) (cove.Spare, cove.Kernel) {
	t.Helper()
	prepare, _ := cove.As[cove.Preparer](p)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		s, err := prepare.Prepare(t.Context(), aheadMold)
		if err != nil {
			t.Fatal(err)
		}
		k, err := kernel.New().Open(t.Context(), ahead{s}, cove.KernelSpec{Language: "python", Dir: "/", Warm: true})
		if err == nil {
			return s, k
		}
		if cove.CodeOf(err) != cove.Unsupported {
			t.Fatal(err)
		}
		if err := s.Discard(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("no spare has an interpreter")
	return nil, nil
}

func claim(t *testing.T, s cove.Spare) cove.Sandbox {
	t.Helper()
	box, err := s.Claim(t.Context(), cove.NewID(), cove.Spec{Template: "base", Resources: bounds, Workspace: cove.Workspace{Kind: cove.WorkspaceMemory}})
	if err != nil {
		t.Fatal(err)
	}
	destroyLater(t, box)
	return box
}

// says runs code, and returns what it printed.
func says(t *testing.T, k cove.Kernel, code string) string {
	t.Helper()
	var out strings.Builder
	r, err := k.Run(t.Context(), cove.KernelRun{Code: code, Limits: cove.Limits{Wall: time.Minute}, OnOutput: func(c cove.Chunk) { out.Write(c.Data) }})
	if err != nil || r.Error != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return out.String()
}

func outputOf(t *testing.T, box cove.Sandbox, script string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := box.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// shellOnce is shell in a sandbox that is not needed any more.
func shellOnce(t *testing.T, box cove.Sandbox, script, want string) {
	t.Helper()
	if got := outputOf(t, box, script); got != want {
		t.Errorf("%s says %q, want %q", script, got, want)
	}
	if err := box.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAhead: interpreters of an image have what was imported, and nothing else in
// common.
func TestAhead(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("there is no python3")
	}
	c := config(t)
	p, err := gvisor.New(c)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, p)
	var draws []string
	for range 2 {
		s, k := prepareAhead(t, p)
		box := claim(t, s)
		if err := k.Adopt(t.Context(), cove.WorkspacePath, map[string]string{"MINE": "yes"}); err != nil {
			t.Fatal(err)
		}
		const look = `import os, random, resource, sys
print([m in sys.modules for m in ("decimal", "sqlite3", "no_such_module")], sys.argv, os.getcwd(), os.listdir("."), os.environ["MINE"])
print(resource.getrlimit(resource.RLIMIT_NPROC), "ahead" in globals(), "seen" in globals())
seen = 1`
		want := "[True, True, False] [''] /workspace [] yes\n(64, 64) False False\n"
		if got := says(t, k, look); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
		draws = append(draws, says(t, k, "print(random.random(), os.urandom(8))"))
		if got := says(t, k, "print('x' * 3_000_000)"); len(got) != 3_000_001 {
			t.Errorf("%d bytes came", len(got))
		}
		says(t, k, "open('left', 'w').close()")
		if err := k.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := outputOf(t, box, "ls; cat /proc/[0-9]*/comm | grep -c python"); got != "left\n0\n" {
			t.Errorf("left are %q", got)
		}
	}
	if draws[0] == draws[1] {
		t.Errorf("both drew %s", draws[0])
	}
}

// TestAheadUser is [TestAhead] as an ordinary user.
func TestAheadUser(t *testing.T) {
	linuxtest.NeedRoot(t)
	for variable, path := range map[string]string{runscVariable: os.Getenv(runscVariable), agentVariable: program.Agent(t)} {
		t.Setenv(variable, shared(t, path))
	}
	linuxtest.Again(t, "^TestAhead$")
}

// TestImages: there are as many as may be, those that were wanted last, and one that
// is wanted otherwise is another.
func TestImages(t *testing.T) {
	images := gvisor.NewImages()
	mold := func(i int) cove.Mold { return cove.Mold{Template: strconv.Itoa(i)} }
	for i := range 6 {
		if !images.Want(mold(i), "numpy") || images.Want(mold(i), "numpy") {
			t.Errorf("image %d is to be made once", i)
		}
		images.Want(mold(0), "numpy")
	}
	for i, want := range []bool{true, false, false, true, true, true} {
		if got := images.Has(mold(i)); got != want {
			t.Errorf("image %d: %v", i, got)
		}
	}
	if !images.Want(mold(0), "pandas") {
		t.Error("it has other modules, and is not made again")
	}
}

// TestAheadUnwanted: nothing of an interpreter is in a sandbox that did not ask for
// one, in a copy of a sandbox that has one, or after the server that had it; and an
// image that cannot be read is no harm.
func TestAheadUnwanted(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("there is no python3")
	}
	c := config(t)
	p, err := gvisor.New(c)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := prepareAhead(t, p)
	const pythons = "cat /proc/[0-9]*/comm | grep -c python"
	s, err := p.Prepare(t.Context(), aheadMold)
	if err != nil {
		t.Fatal(err)
	}
	shellOnce(t, claim(t, s), pythons, "0\n")
	box := claim(t, first)
	if got := outputOf(t, box, pythons); got != "1\n" {
		t.Errorf("%q wait for somebody", got)
	}
	fork, _ := cove.As[cove.Forker](box)
	twin, err := fork.Fork(t.Context(), cove.NewID(), cove.Spec{Resources: bounds})
	if err != nil {
		t.Fatal(err)
	}
	shellOnce(t, twin, pythons, "0\n")
	list, err := filepath.Glob(filepath.Join(c.Dir, "warm", "*"))
	if err != nil || len(list) != 1 {
		t.Fatalf("there are %v: %v", list, err)
	}
	if err := os.Truncate(filepath.Join(list[0], "checkpoint.img"), 100); err != nil {
		t.Fatal(err)
	}
	if s, err = p.Prepare(t.Context(), aheadMold); err != nil {
		t.Fatal(err)
	}
	shellOnce(t, claim(t, s), "echo hello", "hello\n")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := gvisor.New(c)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, again)
	if box, err = again.Attach(t.Context(), box.ID()); err != nil {
		t.Fatal(err)
	}
	destroyLater(t, box)
	if got := outputOf(t, box, pythons); got != "0\n" {
		t.Errorf("%q have outlived the server", got)
	}
	if list, err = filepath.Glob(filepath.Join(c.Dir, "warm", "*")); err != nil || len(list) != 0 {
		t.Errorf("images are left: %v, %v", list, err)
	}
}
