//go:build linux

package guest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// TestBuild shows that the executable that make build makes has a lean agent
// inside that works.
func TestBuild(t *testing.T) {
	tier.Full(t, "every test of provider/local uses the agent; this one builds it for other machines")
	program.Watch(t)
	file := filepath.Join(t.TempDir(), "cove")
	if out, err := exec.CommandContext(t.Context(), "../../scripts/build.sh", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// An executable names what it was built from.
	name := []byte("path\tgithub.com/cove-sandbox/cove/cmd/cove-agent\n")
	for at := 1; ; {
		// Its header, up to where it says that it is an executable.
		next := bytes.Index(whole[at:], []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"))
		if next < 0 {
			t.Fatal("no agent is inside")
		}
		at += next
		if bytes.Contains(whole[at:], name) && bytes.Index(whole, name) > at {
			whole = whole[at:]
			break
		}
		at++
	}
	path, err := guest.Load(whole)
	if err != nil {
		t.Fatal(err)
	}
	c := startExecutable(t, path)
	p, err := c.Start(t.Context(), sh("exit 5"))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || r.ExitCode != 5 {
		t.Errorf("%+v, %v", r, err)
	}
}
