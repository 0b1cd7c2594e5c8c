package e2bapi

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on the watchers that are asked for changes now and then.
const (
	maxWatchers    = 64 // of a sandbox
	maxAllWatchers = 1024
	watcherIdle    = 5 * time.Minute // without a question
	maxEvents      = 50_000          // in one answer
	tellTime       = 5 * time.Second // to describe the files of one answer; the others wait for the next
)

// watchers are the watches of clients that ask for changes instead of waiting for them.
// They are this process's own, as those of envd are a sandbox's. The zero value is
// ready.
type watchers struct {
	mu   sync.Mutex
	byID map[string]*watcher
}

// watcher is one of them.
type watcher struct {
	session cove.ID
	feed    *feed
	turn    chan nothing // holds one; taken by who is being answered
	stop    context.CancelFunc
	idle    *time.Timer
}

// watcherMessage names a watcher.
type watcherMessage struct {
	ID string `json:"watcherId"`
}

// eventsMessage is what has happened since the last question.
type eventsMessage struct {
	Events []event `json:"events"`

	from *watcher
}

// settle implements [settled]. What a client did not get waits for its next question.
func (m eventsMessage) settle(arrived bool) {
	if arrived {
		m.from.feed.drop(len(m.Events))
	}
	m.from.turn <- nothing{}
}

// add keeps a watcher under an id, unless there are too many.
func (w *watchers) add(one *watcher, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := 0
	for _, other := range w.byID {
		if other.session == one.session {
			same++
		}
	}
	if same >= maxWatchers || len(w.byID) >= maxAllWatchers {
		return cove.Errorf(cove.Exhausted, "there are too many watchers already").Remedy("remove those that are no longer needed")
	}
	if w.byID == nil {
		w.byID = map[string]*watcher{}
	}
	w.byID[id] = one
	one.idle = time.AfterFunc(watcherIdle, func() { w.remove(one.session, id) })
	return nil
}

// get returns a watcher of a sandbox, which is asked for from now on.
func (w *watchers) get(session cove.ID, id string) (*watcher, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.byID[id]
	if one == nil || one.session != session {
		return nil, cove.Errorf(cove.NotFound, "watcher %q is not there", clip(id)).
			Remedy("make a new one: nobody asked this one for %s, or the server was started again", watcherIdle)
	}
	one.idle.Reset(watcherIdle)
	return one, nil
}

// remove ends a watcher of a sandbox, and reports whether there was one.
func (w *watchers) remove(session cove.ID, id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.byID[id]
	if one == nil || one.session != session {
		return false
	}
	delete(w.byID, id)
	one.idle.Stop()
	one.stop()
	one.feed.end()
	return true
}

// createWatcher begins to follow changes for a client that will ask for them.
func (c *call) createWatcher(ctx context.Context, in watchMessage) (watcherMessage, error) {
	f, err := c.newFeed(ctx, in)
	if err != nil {
		return watcherMessage{}, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(c.r.Context()))
	release := func() {}
	if c.h.cfg.Watch != nil {
		life, release = c.h.cfg.Watch(life, c.who)
	}
	one := &watcher{session: c.id, feed: f, stop: stop, turn: make(chan nothing, 1)}
	one.turn <- nothing{}
	id := c.h.marked(rand.Text())
	if err := c.h.watches.add(one, id); err != nil {
		f.end()
		stop()
		release()
		return watcherMessage{}, err
	}
	go func() {
		defer release()
		f.run(life)
	}()
	if err := f.begun(ctx); err != nil {
		c.h.watches.remove(c.id, id)
		return watcherMessage{}, err
	}
	return watcherMessage{id}, nil
}

// watcherEvents answers with what has happened since the last question.
func (c *call) watcherEvents(ctx context.Context, in watcherMessage) (eventsMessage, error) {
	w, err := c.h.watches.get(c.id, in.ID)
	if err != nil {
		return eventsMessage{}, err
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
		return eventsMessage{}, context.Cause(ctx)
	}
	out, err := w.tell(ctx)
	if err != nil {
		w.turn <- nothing{}
		if ctx.Err() == nil {
			c.h.watches.remove(c.id, in.ID)
		}
	}
	return out, err
}

// tell makes an answer of what waits. The caller has the turn, which is given back when
// the answer is settled.
func (w *watcher) tell(ctx context.Context) (eventsMessage, error) {
	list, err := w.feed.look(maxEvents)
	if err != nil {
		return eventsMessage{}, err
	}
	out := eventsMessage{Events: make([]event, 0, len(list)), from: w}
	began := time.Now()
	for _, one := range list {
		if len(out.Events) > 0 && time.Since(began) > tellTime {
			break
		}
		out.Events = append(out.Events, w.feed.told(ctx, one))
	}
	return out, context.Cause(ctx)
}

func (c *call) removeWatcher(_ context.Context, in watcherMessage) (nothing, error) {
	if !c.h.watches.remove(c.id, in.ID) {
		return nothing{}, cove.Errorf(cove.NotFound, "watcher %q is not there", clip(in.ID))
	}
	return nothing{}, nil
}
