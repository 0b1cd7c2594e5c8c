package platformtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cove-sandbox/cove"
)

// must ends the test at an error.
func (r *rig) must(err error, what string) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
}

// wantCode checks the code of an error.
func wantCode(t *testing.T, err error, codes ...cove.Code) {
	t.Helper()
	if err == nil {
		t.Fatalf("it worked; want %v", codes)
	}
	if !slices.Contains(codes, cove.CodeOf(err)) {
		t.Fatalf("the code is %s, want %v: %v", cove.CodeOf(err), codes, err)
	}
}

// wantReason checks the code of an error and the finer word under it.
func wantReason(t *testing.T, err error, code cove.Code, reason string) {
	t.Helper()
	wantCode(t, err, code)
	if got := cove.ReasonOf(err); got != reason {
		t.Fatalf("the reason is %q, want %q: %v", got, reason, err)
	}
}

// wantRemedy checks that an error says what to do.
func wantRemedy(t *testing.T, err error) {
	t.Helper()
	if cove.RemedyOf(err) == "" {
		t.Errorf("nothing says what to do about: %v", err)
	}
}

// wantField checks the code of an error and the field it is about.
func wantField(t *testing.T, err error, code cove.Code, field string) {
	t.Helper()
	wantCode(t, err, code)
	if got := fmt.Sprint(detail(err, "field")); got != field {
		t.Fatalf("the field is %s, want %s: %v", got, field, err)
	}
}

// same compares two values and shows the difference. What is empty and what is
// not there are the same, since JSON cannot tell them apart.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func detail(err error, key string) any {
	if e, ok := errors.AsType[*cove.Error](err); ok {
		return e.Details[key]
	}
	return nil
}

// words reads a list of words from a detail, which is []any after JSON.
func words(err error, key string) []string {
	raw, _ := json.Marshal(detail(err, key)) // a detail that cannot be marshaled has no words
	var list []string
	_ = json.Unmarshal(raw, &list)
	return list
}

// number reads a number from a detail, which is float64 after JSON.
func number(err error, key string) float64 {
	raw, _ := json.Marshal(detail(err, key)) // as above
	var n float64
	_ = json.Unmarshal(raw, &n)
	return n
}

// ids returns the ids of sessions in order.
func ids(list []*cove.Session) []cove.ID {
	out := make([]cove.ID, len(list))
	for i, s := range list {
		out[i] = s.ID
	}
	return out
}
