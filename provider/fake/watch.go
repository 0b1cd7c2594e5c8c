package fake

import (
	"sync"

	"github.com/cove-sandbox/cove"
)

// watchQueue is how many changes wait for a slow reader.
const watchQueue = 1024

// watch is one reader of changes.
type watch struct {
	dir  string
	poke chan struct{} // holds one when there is something to take
	gone chan struct{} // closed when the sandbox is gone

	mu    sync.Mutex
	queue []cove.Change
	lost  bool
	ended bool
}

func newWatch(dir string) *watch {
	return &watch{dir: dir, poke: make(chan struct{}, 1), gone: make(chan struct{})}
}

// notify tells the watchers of a change. Called with the tree held still.
func (t *tree) notify(kind cove.ChangeKind, abs string) {
	t.tell(cove.Change{Kind: kind, Path: abs})
}

// tell is notify for a change that is more than its kind.
func (t *tree) tell(c cove.Change) {
	for w := range t.watches {
		if c.Path != w.dir && within(w.dir, c.Path) {
			w.push(c)
		}
	}
}

// push adds a change; one that repeats the last is not news.
func (w *watch) push(c cove.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch n := len(w.queue); {
	case n > 0 && w.queue[n-1] == c:
		return
	case n >= watchQueue:
		w.lost = true
	default:
		w.queue = append(w.queue, c)
	}
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// take returns what has happened since the last call.
func (w *watch) take() []cove.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.queue
	if w.lost {
		list = append(list, cove.Change{Kind: cove.Overflow})
	}
	w.queue, w.lost = nil, false
	return list
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		close(w.gone)
	}
}

// lose tells the reader that something happened that the queue does not show.
func (w *watch) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = true
	select {
	case w.poke <- struct{}{}:
	default:
	}
}
