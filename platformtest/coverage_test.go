package platformtest

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

func TestEveryMethodHasAVerbAndACall(t *testing.T) {
	if diff := cmp.Diff(cove.Verbs(), methods()); diff != "" {
		t.Errorf("the verbs and the methods of Platform differ (-verbs +methods):\n%s", diff)
	}
	if diff := cmp.Diff(cove.Verbs(), slices.Sorted(maps.Keys(calls()))); diff != "" {
		t.Errorf("the verbs and the rows of calls differ (-verbs +calls):\n%s", diff)
	}
}
