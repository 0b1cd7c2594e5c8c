package local

import (
	"context"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/provider/local/fence"
)

// step is how the layers of a workspace change.
type step string

const (
	stepCover   step = "cover" // freezes the upper layer below a new one
	stepTry     step = "try"   // the same, for a trial
	stepCommit  step = "commit"
	stepDiscard step = "discard"
)

// shelfNote is what the next process must know of a shelf. It is written before a
// step, and after some: until then, the list of mounts says how far it came.
type shelfNote struct {
	shelfState

	Step   step          `json:"step,omitempty"` // that may be under way
	Owner  uint32        `json:"owner,omitempty"`
	Bounds fence.Bounds  `json:"bounds"`
	Shared fence.Bounds  `json:"shared,omitzero"` // not written by older builds, which had each sandbox's own files take all of Bounds
	Lower  []layerNote   `json:"lower,omitempty"`
	Fresh  unix.Timespec `json:"fresh"`
}

// layerNote is one of the lower layers.
type layerNote struct {
	Store int    `json:"store"` // the number in the name of its descriptor
	Name  string `json:"name"`
	Owner uint32 `json:"owner,omitempty"`
}

// The names of descriptors. The own store has the number 0.
const namespaceFile = "namespace"

func storeFile(n int) string { return "store-" + strconv.Itoa(n) }

// noteLayers numbers the stores of layers, and adds those that are new to the
// files.
func noteLayers(layers []layer, number map[*store]int, files map[string]int) (notes []layerNote) {
	for _, l := range layers {
		n, known := number[l.store]
		if !known {
			n = len(number)
			number[l.store], files[storeFile(n)] = n, l.store.fd
		}
		notes = append(notes, layerNote{n, l.name, l.owner})
	}
	return notes
}

// readLayers is the inverse: each layer holds its store. It is false if a store
// is missing.
func readLayers(notes []layerNote, stores map[int]*store, files map[string]int) (layers []layer, ok bool) {
	for _, n := range notes {
		s := stores[n.Store]
		if s == nil {
			fd, ok := files[storeFile(n.Store)]
			if !ok {
				dropAll(layers)
				return nil, false
			}
			delete(files, storeFile(n.Store))
			s = newStore(fd)
			stores[n.Store] = s
		} else {
			s.hold()
		}
		layers = append(layers, layer{s, n.Name, n.Owner})
	}
	return layers, true
}

// write writes down what there is, and which step may be under way. The caller
// holds mu.
func (s *shelf) write(ctx context.Context, k step) error {
	if s.keep == nil {
		return nil
	}
	files := map[string]int{namespaceFile: s.namespace, storeFile(0): s.own.fd}
	n := &shelfNote{shelfState: s.state, Step: k, Owner: s.owner, Bounds: s.bounds, Shared: s.shared, Fresh: s.fresh}
	n.Lower = noteLayers(s.lower, map[*store]int{s.own: 0}, files)
	if err := s.keep(ctx, n, files); err != nil {
		s.noted = noted{} // whatever there is now
		return err
	}
	s.noted = noted{k, s.state}
	return nil
}

// rewrite writes down what there is.
func (s *shelf) rewrite(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return s.write(ctx, "")
}

// change is what a step makes of the workspace.
func (s *shelf) change(k step) change {
	if k == stepCover || k == stepTry {
		return change{
			upper: s.next(), lower: append([]layer{s.top()}, s.lower...), extra: s.state.Extra + layerDirs + workDirs,
			// An overlay may not be there with another whose lower layer it changes.
			over: k == stepTry && len(s.lower) == 0,
		}
	}
	c := change{upper: s.state.Below, lower: s.lower[1:], slack: layerDirs + workDirs}
	c.extra = s.state.Extra - c.slack
	if k == stepCommit {
		c.merge = s.state.Upper
	} else {
		c.erase = s.state.Upper
	}
	return c
}

// noted is what was written down of a shelf last.
type noted struct {
	step  step
	state shelfState
}

// known reports whether what was written down says enough for a step. What there
// was before a trial is there again without it, so that the note of a trial serves
// for its end and for the next one, whose number is another. That it is to be merged
// is written down in the store.
func (s *shelf) known(k step) bool {
	if s.noted.step != stepTry {
		return false
	}
	before := s.noted.state
	before.Next = s.state.Next
	return k == stepCommit || k == stepDiscard || k == stepTry && before == s.state
}

// take takes a step. The caller holds mu. errBusy means that nothing has changed.
func (s *shelf) take(ctx context.Context, k step) error {
	if !s.known(k) {
		if err := s.write(ctx, k); err != nil {
			return err
		}
	}
	c := s.change(k)
	if k == stepCover {
		// Who attaches puts a note right that is not the newest. That of a trial is
		// soon followed by another, and nobody waits for more than he must.
		defer func() { _ = s.write(context.WithoutCancel(ctx), "") }()
	}
	if err := s.show(ctx, c); err != nil {
		return err
	}
	old, stacked := s.state.Upper, len(s.lower) > 0
	s.took(k, c)
	if k == stepCover && stacked {
		s.tidy(ctx, old)
	}
	return nil
}

// took notes that a step was taken. The caller holds mu.
func (s *shelf) took(k step, c change) {
	switch k {
	case stepCover, stepTry:
		s.own.hold() // the upper layer is a lower one now
		s.state.Next++
		if k == stepTry {
			s.state.Below = s.state.Upper
		}
	case stepCommit, stepDiscard:
		s.lower[0].store.drop()
		s.state.Below = ""
	}
	s.lower, s.state.Upper, s.state.Extra = c.lower, c.upper, c.extra
	if k == stepCover {
		s.fresh = s.changed()
	}
}
