package storetest

import (
	"iter"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
)

// failer is the part of *testing.T and *rapid.T that checks need.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// ok fails the test where something that must work did not.
func ok(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// fails wants an error of ours with one code and a message for the caller.
func fails(t failer, err error, want cove.Code) {
	t.Helper()
	if got := cove.CodeOf(err); got != want || cove.MessageOf(err) == "" {
		t.Fatalf("got error %v with code %q, want code %q and a message", err, got, want)
	}
}

// same compares what came out with what went in.
func same(t failer, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("mismatch (-want +got):\n%s", diff)
	}
}

// all reads a list to its end.
func all[T any](t failer, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var out []T
	for v, err := range seq {
		ok(t, err)
		out = append(out, v)
	}
	return out
}

// first returns the first error of a list.
func first[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

// letters joins ids, of one letter each, to a word.
func letters(list []cove.ID) string {
	var b strings.Builder
	for _, id := range list {
		b.WriteString(string(id))
	}
	return b.String()
}

func ids(sessions []*cove.Session) []cove.ID {
	out := []cove.ID{}
	for _, s := range sessions {
		out = append(out, s.ID)
	}
	return out
}

// together runs n calls that start at the same moment.
func together(n int, call func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = call(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// oneWinner wants one success and Conflict for everybody else. It returns who
// won.
func oneWinner(t failer, errs []error) int {
	t.Helper()
	winner := -1
	for i, err := range errs {
		if err != nil {
			fails(t, err, cove.Conflict)
			continue
		}
		if winner >= 0 {
			t.Fatalf("both %d and %d succeeded", winner, i)
		}
		winner = i
	}
	if winner < 0 {
		t.Fatalf("nobody succeeded")
	}
	return winner
}
