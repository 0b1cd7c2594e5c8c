package providertest

import (
	"context"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func escapeTests() []test {
	return []test{{"battery", breakOut}}
}

// breakOut runs the abuse battery; each attack by each way in is a test of its
// own. The attacker is the executable of the tests, whose TestMain must begin
// with [escape.Summoned].
func breakOut(e *env) {
	e.needs("a boundary", e.caps.Isolation.Boundary != cove.BoundaryNone)
	// It makes a hundred sandboxes, which takes some providers a second each.
	ctx, cancel := context.WithTimeout(e.Context(), 5*patience)
	defer cancel()
	for f, err := range escape.Run(ctx, e.p, escape.Options{}) {
		e.must(err, "run the battery")
		e.Run(f.Attack+"/"+string(f.Via), func(t *testing.T) {
			switch {
			case f.Skipped != "":
				t.Skipf("%s: %s", f.Try, f.Skipped)
			case f.GotThrough():
				t.Errorf("this got through: %s: %s", f.Try, f.Detail)
			default:
				t.Logf("%s: stopped by %s", f.Try, f.By)
			}
		})
	}
	equal(e, len(e.ids()), 0, "the number of sandboxes")
}
