//go:build linux

package guest_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// TestUsageOfAPart is about a workspace whose file system has other files, too.
func TestUsageOfAPart(t *testing.T) {
	c := connect(t, place{framed: true}, func(o *guest.Options) { o.Shared = true })
	before, err := c.Usage(t.Context())
	if err != nil || before.Files != 0 || before.Disk != 0 {
		t.Errorf("an empty workspace uses %+v, %v", before, err)
	}
	const script = "head -c 1000000 /dev/zero > f; ln f g; ln -s / l; mkdir -p d/e; echo x > d/e/x; mkfifo p; mkdir m; cd d; for i in $(seq 200); do mkdir n; cd n; done"
	if r, _, errs := run(t, c, sh(script)); r.ExitCode != 0 {
		t.Fatal(errs)
	}
	u, err := c.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// f, g, l, d, e, x, p, m, and what is not too deep.
	if want := int64(8 + 127); u.Files != want {
		t.Errorf("there are %d files; want %d", u.Files, want)
	}
	if u.Disk < 1_000_000 || u.Disk >= 2*cove.Bytes(1_000_000) {
		t.Errorf("they have %d bytes", u.Disk)
	}
	c.Adopt(guest.Options{Dir: c.dir + "/none", Shared: true})
	if _, err := c.Usage(t.Context()); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("a workspace that is not there gives %v", err)
	}
}

// TestKills: an agent that sees its control group answers with a count, as does one that
// does not.
func TestKills(t *testing.T) {
	c := connect(t, place{})
	if n, err := c.Kills(t.Context()); err != nil || n < 0 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := c.Usage(t.Context()); err != nil {
		t.Errorf("the connection does not go on: %v", err)
	}
}
