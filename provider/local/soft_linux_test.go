package local_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/local"
)

// TestConformanceDiskUser is the suite with plain directories.
func TestConformanceDiskUser(t *testing.T) {
	tier.Full(t, "TestConformanceDisk runs as root")
	linuxtest.Again(t, "^TestConformanceDisk$")
}

// TestSoft: who takes too much is noticed, and does not go on.
func TestSoft(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root has hard bounds; an ordinary user runs this test, too")
	}
	p := provider(t, config(t.TempDir()))
	s, err := p.Create(t.Context(), cove.NewID(), small(cove.MiB, 64))
	must(t, err)
	if i := s.Isolation(); i.Disk != cove.Soft || i.Files != cove.Soft {
		t.Errorf("the isolation is %+v", i)
	}
	for _, c := range []struct{ name, script string }{
		{"bytes", "head -c 1500000 /dev/zero > f; sleep 1000"},
		{"files", "i=0; while [ $i -lt 80 ]; do : > f$i; i=$((i + 1)); done; sleep 1000"},
		{"deep", "i=0; while [ $i -lt 300 ]; do mkdir d && cd d; i=$((i + 1)); done; sleep 1000"},
	} {
		name, script := c.name, c.script
		if name == "deep" { // in a larger one
			s, err = p.Create(t.Context(), cove.NewID(), small(100*cove.MiB, 1000))
			must(t, err)
		}
		program, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", script}})
		must(t, err)
		if r, err := program.Wait(t.Context()); err != nil || r.Outcome != cove.Killed {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		for what, err := range map[string]error{
			"write": s.Files().Write(t.Context(), "x", strings.NewReader("x"), 0), "mkdir": s.Files().Mkdir(t.Context(), "y"),
			"unpack": s.Files().Unpack(t.Context(), ".", strings.NewReader("")),
		} {
			wants(t, cove.Exhausted, err, what)
		}
		u, err := s.Usage(t.Context())
		must(t, err)
		if u.Files == 0 || u.Files > 300 || u.Disk > 3<<20 {
			t.Errorf("%s: the usage is %+v", name, u)
		}
		for info, err := range s.Files().List(t.Context(), ".", 1) {
			must(t, err)
			must(t, s.Files().Remove(t.Context(), info.Path))
		}
		ends(t, "the workspace can be written to", func() bool { return s.Files().Mkdir(t.Context(), "y") == nil })
		says(t, s)
		must(t, s.Files().Remove(t.Context(), "y"))
	}
	s, err = p.Create(t.Context(), cove.NewID(), small(cove.MiB, 64))
	must(t, err)
	// A program would be ended on the way. The sandbox may be, too.
	_ = s.Files().Write(t.Context(), "f", bytes.NewReader(make([]byte, 3<<20)), 0)
	m, _ := cove.As[cove.Mortal](s)
	<-m.Died()
	must(t, s.Destroy(t.Context()))
}

func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/f", make([]byte, 8192), 0o600))
	must(t, os.Link(dir+"/f", dir+"/g"))
	must(t, os.Symlink("/", dir+"/away"))
	must(t, os.MkdirAll(dir+"/a/b", 0o700))
	size, files, deep := local.Measure(dir, 1<<40, 1000)
	if files != 4 || size < 8192 || size > 8192+3*8192 || deep {
		t.Errorf("%d bytes in %d files, deep %t", size, files, deep)
	}
	if _, files, _ = local.Measure(dir, 1<<40, 1); files != 2 {
		t.Errorf("it counted %d files where 2 were enough", files)
	}
	if size, files, _ = local.Measure(filepath.Join(dir, "none"), 1, 1); size != 0 || files != 0 {
		t.Errorf("nothing has %d bytes in %d files", size, files)
	}
}
