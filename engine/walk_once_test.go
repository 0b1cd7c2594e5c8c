package engine_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

// repeatable is something that a caller tries again with the same idempotency key
// when the server was killed in the middle of it.
type repeatable struct {
	do func(ctx context.Context, s *scene) error
	// count is how many of it there are afterwards.
	count func(t *testing.T, s *scene, w *world) int
	// may is what the repeat may be answered with where nothing tells what became
	// of the first request; "" for nothing but success.
	may cove.Code
}

func repeatables() map[string]repeatable {
	sessions := func(t *testing.T, s *scene, _ *world) int {
		return len(listed(t, s.p.Sessions().List(t.Context(), cove.SessionFilter{}))) - 1
	}
	return map[string]repeatable{
		"open": {do: opening(cove.OpenRequest{IdempotencyKey: "k"}), count: sessions},
		"fork": {do: func(ctx context.Context, s *scene) error {
			_, err := s.p.Snapshots().Fork(ctx, s.id, cove.ForkRequest{IdempotencyKey: "k"})
			return err
		}, count: sessions},
		"snapshot": {do: func(ctx context.Context, s *scene) error {
			_, err := s.p.Snapshots().Snapshot(ctx, s.id, cove.SnapshotRequest{IdempotencyKey: "k"})
			return err
		}, count: func(t *testing.T, s *scene, _ *world) int {
			return len(listed(t, s.p.Snapshots().List(t.Context(), cove.SnapshotFilter{})))
		}},
		"run": {do: func(ctx context.Context, s *scene) error {
			_, err := s.p.Runs().Submit(ctx, cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1", IdempotencyKey: "k"})
			return err
		}, count: func(t *testing.T, _ *scene, w *world) int {
			return len(listed(t, w.store.Runs(t.Context(), cove.RunFilter{})))
		}},
		"key": {do: func(ctx context.Context, s *scene) error {
			_, _, err := s.p.Admin().CreateKey(ctx, cove.KeyRequest{Scopes: []cove.Scope{cove.ScopeRead}, IdempotencyKey: "k"})
			return err
		}, count: func(t *testing.T, s *scene, _ *world) int { return len(listed(t, s.p.Admin().Keys(t.Context()))) }, may: cove.Conflict},
		"start": {do: func(ctx context.Context, s *scene) error {
			_, err := s.p.Processes(s.id).Start(ctx, cove.ExecRequest{Line: "echo ran >>f; echo ready; cat", KeepStdin: true, IdempotencyKey: "k"})
			return err
		}, count: timesRun, may: cove.Conflict},
	}
}

func listed[T any](t *testing.T, seq func(func(T, error) bool)) []T {
	t.Helper()
	var all []T
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// timesRun is how often the program that is started did something.
func timesRun(t *testing.T, s *scene, _ *world) int {
	t.Helper()
	for _, info := range listed(t, s.p.Processes(s.id).List(t.Context())) {
		for chunk, err := range s.p.Processes(s.id).Connect(t.Context(), info.PID, 0) {
			if err != nil || strings.Contains(string(chunk.Data), "ready") {
				break
			}
		}
	}
	r, err := s.p.Files(s.id).Read(t.Context(), "f", 0, 0)
	if err != nil {
		return 0
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "ran\n")
}

// TestWalkOnce stops the world at every step of what has an idempotency key, and
// repeats the request: there is one of it then, or the answer says that nobody
// knows.
func TestWalkOnce(t *testing.T) {
	for name, op := range repeatables() {
		t.Run(name, func(t *testing.T) {
			sure := 0
			for at := 1; ; at++ {
				w := newWorld(t)
				sc, release := interrupt(t, w, operation{name: name, prepare: prepared(), do: op.do}, at)
				t.Run(fmt.Sprintf("%d %s", at, sc.cut), func(t *testing.T) {
					if repeated(t, w, op, sc) {
						sure++
					}
				})
				release()
				if sc.cut == "" {
					break
				}
			}
			if sure < 2 && name != "key" { // whose secret is shown once
				t.Errorf("the repeat was answered with what there is at %d steps", sure)
			}
		})
	}
}

// repeated tries the request again on another server. It reports whether that was
// answered with what there is.
func repeated(t *testing.T, w *world, op repeatable, sc *scene) bool {
	t.Helper()
	w.t = t
	w.fake.Hook = nil
	e, err := w.tryOpen()
	if err != nil {
		t.Fatal(err)
	}
	defer w.shut(e, w.provider)
	sc.p = e.As(boss)
	var answers []cove.Code
	for range 3 {
		err := op.do(t.Context(), sc)
		if err != nil && (cove.CodeOf(err) != op.may || cove.ReasonOf(err) != cove.ReasonKeyReused || cove.RemedyOf(err) == "") {
			t.Errorf("the repeat: %v", err)
		}
		answers = append(answers, cove.CodeOf(err))
	}
	n := op.count(t, sc, w)
	unsure := slices.Contains(answers, op.may) && op.may != ""
	if n != 1 && (n != 0 || !unsure) {
		t.Errorf("there are %d of it after the answers %q", n, answers)
	}
	return !unsure
}
