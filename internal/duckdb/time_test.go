package duckdb_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// within is a context that ends after a while.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// bubble has a helper with tables in it, for as long as f runs.
func bubble(t *testing.T, in *puppet, f func(t *testing.T, h *duckdb.Helper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h, err := duckdb.New(cove.Tool{}, duckdb.Limits{}).Open(t.Context(), in, options)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close(context.Background())
		if _, err := h.Load(t.Context(), orders); err != nil {
			t.Fatal(err)
		}
		f(t, h)
	})
}

// TestStopped: a question that takes too long is stopped, and the tables stay.
func TestStopped(t *testing.T) {
	var stopped ask.Stop
	in := &puppet{play: honest(ask.VerbQuery, func(q *part, r *ask.Request) {
		if r.ID != 3 {
			q.behave(r)
			return
		}
		stopped = *q.next().Stop
		<-time.After(time.Second)
		q.say(r, ask.Answer{Fault: &ask.Fault{Kind: ask.Stopped, Message: "stopped"}})
	})}
	bubble(t, in, func(t *testing.T, h *duckdb.Helper) {
		began := time.Now()
		_, err := h.Query(within(t, 10*time.Second), question)
		wantType(t, err, cove.RunTimeout)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 11*time.Second || stopped.ID != 3 || !h.Alive() {
			t.Errorf("got %v after %s, %+v was stopped, alive: %v", err, took, stopped, h.Alive())
		}
		if rows, err := h.Query(t.Context(), question); err != nil || !rows.Loaded { // nobody was told of it yet
			t.Errorf("the next question: %+v, %v", rows, err)
		}
		if rows, err := h.Query(t.Context(), question); err != nil || rows.Loaded || in.started() != 1 {
			t.Errorf("the one after: %+v, %v", rows, err)
		}
	})
}

// TestKilled: one that cannot be stopped is killed two seconds later, and the tables
// are loaded again.
func TestKilled(t *testing.T) {
	for name, deaf := range map[string]func(q *part, r *ask.Request){
		"silence":       func(q *part, _ *ask.Request) { <-q.killed },
		"half a frame":  func(q *part, _ *ask.Request) { q.raw("00000100{"); <-q.killed },
		"half a length": func(q *part, _ *ask.Request) { q.raw("000"); <-q.killed },
		"a late answer": func(q *part, r *ask.Request) { <-q.killed; q.behave(r) },
	} {
		t.Run(name, func(t *testing.T) {
			in := &puppet{play: honest(ask.VerbQuery, func(q *part, r *ask.Request) {
				if q.number == 1 {
					deaf(q, r)
					return
				}
				q.behave(r)
			})}
			bubble(t, in, func(t *testing.T, h *duckdb.Helper) {
				began := time.Now()
				_, err := h.Query(within(t, 10*time.Second), question)
				wantType(t, err, cove.RunTimeout)
				if took := time.Since(began); took != 12*time.Second || h.Alive() {
					t.Errorf("got %v after %s, alive: %v", err, took, h.Alive())
				}
				if rows, err := h.Query(t.Context(), question); err != nil || !rows.Loaded || in.started() != 2 {
					t.Errorf("the next question: %+v, %v", rows, err)
				}
			})
		})
	}
}

// TestStoppedOtherwise: an answer to the stop that is none, and an end, are the end.
func TestStoppedOtherwise(t *testing.T) {
	for name, answer := range map[string]func(q *part){
		"garbage": func(q *part) { q.raw("so sorry") },
		"the end": func(q *part) { q.result.ExitCode = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			in := &puppet{play: honest(ask.VerbQuery, func(q *part, _ *ask.Request) {
				q.next()
				answer(q)
			})}
			bubble(t, in, func(t *testing.T, h *duckdb.Helper) {
				began := time.Now()
				_, err := h.Query(within(t, time.Second), question)
				wantType(t, err, cove.RunTimeout)
				if took := time.Since(began); took != time.Second || h.Alive() {
					t.Errorf("got %v after %s, alive: %v", err, took, h.Alive())
				}
			})
		})
	}
}

// TestTheCallerMayLeave: it is not told of a timeout then, and the helper stays.
func TestTheCallerMayLeave(t *testing.T) {
	in := &puppet{play: honest(ask.VerbQuery, func(q *part, r *ask.Request) {
		q.next()
		q.say(r, ask.Answer{Fault: &ask.Fault{Kind: ask.Stopped}})
	})}
	bubble(t, in, func(t *testing.T, h *duckdb.Helper) {
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if _, err := h.Query(ctx, question); !errors.Is(err, context.Canceled) || !h.Alive() {
			t.Errorf("got %v, alive: %v", err, h.Alive())
		}
	})
}

// TestSlowStarts: what comes before a question has times of its own, and says which
// was over.
func TestSlowStarts(t *testing.T) {
	for _, c := range []struct {
		verb ask.Verb
		says string
		took time.Duration
	}{
		{ask.VerbOpen, "longer than 30s to start", 30 * time.Second},
		{ask.VerbLoad, "longer than 1m0s to load the tables", time.Minute},
		{ask.VerbDescribe, "longer than 1m0s to look into the files", time.Minute},
	} {
		t.Run(string(c.verb), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := &puppet{play: honest(c.verb, func(q *part, _ *ask.Request) { <-q.killed })}
				began := time.Now()
				h, err := duckdb.New(cove.Tool{}, duckdb.Limits{}).Open(t.Context(), in, options)
				if c.verb == ask.VerbLoad {
					_, err = h.Load(t.Context(), orders)
				} else if c.verb == ask.VerbDescribe {
					_, err = h.Describe(t.Context(), orders, 1)
				}
				wantType(t, err, cove.RunUnavailable, c.says)
				if took := time.Since(began); took != c.took || cove.CodeOf(err) != cove.Timeout {
					t.Errorf("got %v after %s", err, took)
				}
			})
		})
	}
}

// TestImmortal: nobody waits longer than it takes to give up for what cannot be
// killed, and it is not used again.
func TestImmortal(t *testing.T) {
	in := &puppet{}
	in.play = honest(ask.VerbQuery, func(q *part, r *ask.Request) {
		if q.number > 1 {
			q.behave(r)
			return
		}
		q.immortal.Store(true)
		<-q.killed
	})
	bubble(t, in, func(t *testing.T, h *duckdb.Helper) {
		began := time.Now()
		_, err := h.Query(within(t, time.Second), question)
		wantType(t, err, cove.RunTimeout)
		if took := time.Since(began); took != 8*time.Second || h.Alive() {
			t.Errorf("got %v after %s, alive: %v", err, took, h.Alive())
		}
		if rows, err := h.Query(t.Context(), question); err != nil || !rows.Loaded || in.started() != 2 {
			t.Errorf("the next question: %+v, %v", rows, err)
		}
		in.end()
	})
}
