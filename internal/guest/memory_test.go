//go:build linux

package guest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove"
)

// TestMemoryWatch is about an agent that bounds the memory where no kernel does.
// The kernel here is told to say what the test wants.
func TestMemoryWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "meminfo")
	use := func(memory cove.Bytes) {
		t.Helper()
		if err := os.WriteFile(file, fmt.Appendf(nil, "MemTotal: 1 kB\nAnonPages: %d kB\n", memory/cove.KiB), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	use(0)
	h := build(t, func(s *stage) { s.Memory = file })
	c, _ := h.enter()
	if err := c.Bound(t.Context(), cove.GiB); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 4)
	start := func(cmd cove.Command) cove.Process {
		t.Helper()
		cmd.Stdout = lines{seen}
		p, err := c.Start(t.Context(), cmd)
		if err != nil {
			t.Fatal(err)
		}
		<-seen
		return p
	}
	const large = "import time\nx = b'x' * (64 << 20)\nprint('there', flush=True)\ntime.sleep(1000)"
	small, big := start(sh("echo there; exec sleep 1000")), start(cove.Command{Argv: []string{"python3", "-c", large}})
	r, out, errs := run(t, c, sh("exit 3"))
	if r.ExitCode != 3 {
		t.Errorf("%+v, %q, %q", r, out, errs)
	}
	// Below the bound nobody is killed, and above it the largest is, first.
	use(cove.GiB - cove.MiB)
	if r, _, _ := run(t, c, sh("sleep 0.2; exit 4")); r.ExitCode != 4 {
		t.Errorf("below the bound: %+v", r)
	}
	use(cove.GiB + 20*cove.MiB)
	if r, err := big.Wait(t.Context()); err != nil || r.Outcome != cove.OutOfMemory || r.ExitCode != 137 || r.Signal != "KILL" {
		t.Errorf("the large one ended as %+v, %v", r, err)
	}
	// It did not help, as with files in memory; who could remove them may run.
	if r, _, _ := run(t, c, sh("sleep 0.2; exit 6")); r.ExitCode != 6 {
		t.Errorf("with what nobody gives back: %+v", r)
	}
	// If it is too much, it goes on, and the agent stays.
	use(2 * cove.GiB)
	if r, err := small.Wait(t.Context()); err != nil || r.Outcome != cove.OutOfMemory {
		t.Errorf("the small one ended as %+v, %v", r, err)
	}
	// The next host finds the bound, and can lift it.
	second, _ := h.enter()
	if r, _, _ := run(t, second, sh("exec sleep 1000")); r.Outcome != cove.OutOfMemory {
		t.Errorf("for the next host: %+v", r)
	}
	if err := second.Bound(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if r, _, _ := run(t, second, sh("sleep 0.2; exit 5")); r.ExitCode != 5 {
		t.Errorf("without a bound: %+v", r)
	}
	wants(t, cove.Unsupported, second.Bound(t.Context(), -1), "less than nothing")
}
