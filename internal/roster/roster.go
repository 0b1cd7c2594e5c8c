package roster

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Roster is the books of one provider: B is its sandbox and S its spare, both
// pointers.
type Roster[B, S comparable] struct {
	name string
	busy sync.WaitGroup // calls that make or end something

	mu     sync.Mutex
	closed bool                      // guarded by mu, like all that follows
	boxes  map[cove.ID]B             // nil for one that is being made
	taking map[cove.ID]chan struct{} // those that are taken up; closed when that is done
	spares map[S]bool
}

// New returns the empty books of a provider of that name.
func New[B, S comparable](name string) *Roster[B, S] {
	return &Roster[B, S]{name: name, boxes: map[cove.ID]B{}, taking: map[cove.ID]chan struct{}{}, spares: map[S]bool{}}
}

// Enter begins a call that Close waits for; Leave ends it.
func (r *Roster[B, S]) Enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return r.closedError()
	}
	r.busy.Add(1)
	return nil
}

// Leave ends a call that Enter began.
func (r *Roster[B, S]) Leave() { r.busy.Done() }

// Open is the error of a provider that was closed, or nil.
func (r *Roster[B, S]) Open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return r.closedError()
	}
	return nil
}

func (r *Roster[B, S]) closedError() error { return Closed(r.name) }

// Closed is the error of a provider that was closed.
func Closed(name string) error { return cove.Errorf(cove.Unavailable, "provider %s is closed", name) }

// Reserve takes an id for a sandbox that is to be made. taken is asked whether
// somebody else has it; nil: nobody could.
func (r *Roster[B, S]) Reserve(id cove.ID, taken func() bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return r.closedError()
	}
	if _, known := r.boxes[id]; known || taken != nil && taken() {
		return cove.Errorf(cove.Conflict, "sandbox %s exists already", id)
	}
	var making B
	r.boxes[id] = making
	return nil
}

// Release gives up an id that was reserved.
func (r *Roster[B, S]) Release(id cove.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.boxes, id)
}

// Put writes a sandbox down under the id that was reserved for it. Once the
// provider is closed, it is the caller's to end.
func (r *Roster[B, S]) Put(id cove.ID, box B) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return r.closedError()
	}
	r.boxes[id] = box
	return nil
}

// Drop strikes a sandbox out, unless another has its id by now.
func (r *Roster[B, S]) Drop(id cove.ID, box B) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.boxes[id] == box {
		delete(r.boxes, id)
	}
}

// Get returns a sandbox. One that is being made is known, and nil.
func (r *Roster[B, S]) Get(id cove.ID) (box B, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	box, known = r.boxes[id]
	return box, known
}

// IDs are those on the roster, and others that are not.
func (r *Roster[B, S]) IDs(others ...cove.ID) []cove.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := slices.Collect(maps.Keys(r.boxes))
	for _, id := range others {
		if _, known := r.boxes[id]; !known {
			ids = append(ids, id)
		}
	}
	return ids
}

// All are the sandboxes that are made.
func (r *Roster[B, S]) All() []B {
	r.mu.Lock()
	defer r.mu.Unlock()
	var making B
	return slices.DeleteFunc(slices.Collect(maps.Values(r.boxes)), func(b B) bool { return b == making })
}

// TakeUp finds a sandbox, or has the caller take up one that an earlier process
// left: ours is true then, and the caller says with TookUp what came of it. Who
// comes meanwhile waits. there is asked, at most once in a turn, whether there is
// one to be taken up; nil: it shows when it is tried. Neither box nor ours means
// that there is none, or that it is being made.
func (r *Roster[B, S]) TakeUp(ctx context.Context, id cove.ID, there func() bool) (box B, ours bool, err error) {
	for {
		var wait <-chan struct{}
		if box, wait, ours = r.takeUp(id, there); wait == nil {
			return box, ours, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return box, false, ctx.Err()
		}
	}
}

func (r *Roster[B, S]) takeUp(id cove.ID, there func() bool) (box B, wait <-chan struct{}, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.taking[id]; other != nil {
		return box, other, false
	}
	box, known := r.boxes[id]
	if known || there != nil && !there() {
		return box, nil, false
	}
	r.taking[id], r.boxes[id] = make(chan struct{}), box
	return box, nil, true
}

// TookUp ends what TakeUp began: box is what was taken up, nil if nothing was.
func (r *Roster[B, S]) TookUp(id cove.ID, box B) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var none B
	if box == none {
		delete(r.boxes, id)
	} else {
		r.boxes[id] = box
	}
	close(r.taking[id])
	delete(r.taking, id)
}

// Keep writes a spare down. Once the provider is closed, it is the caller's to end.
func (r *Roster[B, S]) Keep(spare S) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return r.closedError()
	}
	r.spares[spare] = true
	return nil
}

// Use strikes a spare out: it has become a sandbox, or has ended.
func (r *Roster[B, S]) Use(spare S) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.spares, spare)
}

// Close closes the books, waits for those who entered, and returns what is left in
// them. hurry is called before the wait, if it is not nil. Only the first call is
// the first.
func (r *Roster[B, S]) Close(hurry func()) (boxes []B, spares []S, first bool) {
	if !r.shut() {
		return nil, nil, false
	}
	if hurry != nil {
		hurry()
	}
	// Nothing is added any more. What is being made finds us closed at its end.
	r.busy.Wait()
	boxes = r.All()
	r.mu.Lock()
	defer r.mu.Unlock()
	return boxes, slices.Collect(maps.Keys(r.spares)), true
}

func (r *Roster[B, S]) shut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.closed
	r.closed = true
	return first
}

// List yields what list returns, as a provider's List does.
func List(list func() ([]cove.ID, error)) iter.Seq2[cove.ID, error] {
	return func(yield func(cove.ID, error) bool) {
		ids, err := list()
		if err != nil {
			yield("", err)
			return
		}
		for _, id := range ids {
			if !yield(id, nil) {
				return
			}
		}
	}
}
