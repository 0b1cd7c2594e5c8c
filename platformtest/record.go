package platformtest

import (
	"iter"
	"maps"
	"sync"

	"github.com/cove-sandbox/cove"
)

// record remembers which methods have worked at least once.
type record struct {
	mu     sync.Mutex
	worked map[cove.Verb]bool // guarded by mu
}

func (r *record) note(v cove.Verb, err error) {
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.worked == nil {
		r.worked = map[cove.Verb]bool{}
	}
	r.worked[v] = true
}

func (r *record) all() map[cove.Verb]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.worked)
}

// noted records a call that returns a value, and passes its answer on.
func noted[T any](r *record, v cove.Verb) func(T, error) (T, error) {
	return func(value T, err error) (T, error) {
		r.note(v, err)
		return value, err
	}
}

// done records a call that returns only an error.
func (r *record) done(v cove.Verb, err error) error {
	r.note(v, err)
	return err
}

// notedSeq records a sequence that yields something good or ends without error.
func notedSeq[T any](r *record, v cove.Verb, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for value, err := range seq {
			r.note(v, err)
			if !yield(value, err) || err != nil {
				return
			}
		}
		r.note(v, nil)
	}
}
