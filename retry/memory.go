package retry

import (
	"container/list"
	"context"
	"sync"

	"github.com/cove-sandbox/cove"
)

// maxMemory bounds what is remembered of open requests, in bytes.
const maxMemory = 16 << 20

// handle is what a caller holds as one session, whatever sessions it was.
type handle struct {
	turn chan struct{} // holds one token, for who opens

	mu      sync.Mutex
	request cove.OpenRequest // guarded by mu; opens the session again
	now     cove.ID          // guarded by mu; the newest session
	untold  bool             // guarded by mu; no answer has said yet that it is a new one
}

// tell reports whether the next answer is to say that the session is a new one.
func (h *handle) tell() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	untold := h.untold
	h.untold = false
	return untold
}

// memory knows which handle an id belongs to. It forgets what was not used for
// longest.
type memory struct {
	mu   sync.Mutex
	ids  map[cove.ID]*list.Element // guarded by mu
	used *list.List                // guarded by mu; of *entry, the last used first
	room int                       // guarded by mu
}

type entry struct {
	id     cove.ID
	handle *handle
	weight int
}

func newMemory(room int) *memory {
	return &memory{ids: map[cove.ID]*list.Element{}, used: list.New(), room: room}
}

// opened remembers the request that opened a session. Of a session that is
// opened again and again the newest counts.
func (m *memory) opened(id cove.ID, req cove.OpenRequest) {
	req.Spec = req.Spec.Clone()
	// The key stands for the session that is gone, and who looked at the
	// queue may have gone.
	req.IdempotencyKey, req.OnQueue = "", nil
	h := m.handle(id)
	if h == nil {
		h = &handle{turn: make(chan struct{}, 1), now: id}
		h.turn <- struct{}{}
	}
	h.mu.Lock()
	h.request = req
	h.mu.Unlock()
	m.put(&entry{id: id, handle: h, weight: weight(req.Spec)})
}

// follow makes the id of a new session another name of a handle.
func (m *memory) follow(h *handle, id cove.ID) {
	h.mu.Lock()
	h.now, h.untold = id, true
	w := weight(h.request.Spec)
	h.mu.Unlock()
	m.put(&entry{id: id, handle: h, weight: w})
}

func (m *memory) put(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(m.ids[e.id])
	m.ids[e.id] = m.used.PushFront(e)
	m.room -= e.weight
	for m.room < 0 && m.used.Len() > 1 {
		m.drop(m.used.Back())
	}
}

// drop forgets an entry. The caller holds mu.
func (m *memory) drop(at *list.Element) {
	if at == nil {
		return
	}
	e := m.used.Remove(at).(*entry) //nolint:forcetypeassert // the list holds no other
	delete(m.ids, e.id)
	m.room += e.weight
}

// handle returns the handle of an id, or nil.
func (m *memory) handle(id cove.ID) *handle {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.ids[id]
	if at == nil {
		return nil
	}
	m.used.MoveToFront(at)
	return at.Value.(*entry).handle //nolint:forcetypeassert // as above
}

// now returns the session that an id stands for today: itself, where nothing
// else is known.
func (m *memory) now(id cove.ID) cove.ID {
	h := m.handle(id)
	if h == nil {
		return id
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// forget drops an id and the newest session behind it, for one that was closed.
func (m *memory) forget(ids ...cove.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		m.drop(m.ids[id])
	}
}

// change remembers something else about how a session is to be opened.
func (m *memory) change(id cove.ID, set func(*cove.Spec)) {
	if h := m.handle(id); h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		set(&h.request.Spec)
	}
}

// renew opens a session in the place of one that is gone, unless somebody else
// has done so, and returns its id.
func (h *handle) renew(ctx context.Context, was cove.ID, open func(context.Context, cove.OpenRequest) (*cove.Session, error)) (cove.ID, error) {
	select {
	case <-h.turn:
	case <-ctx.Done():
		return "", cove.Wrap(cove.CodeOf(ctx.Err()), ctx.Err(), "%s", cove.MessageOf(ctx.Err()))
	}
	defer func() { h.turn <- struct{}{} }()
	h.mu.Lock()
	now, req := h.now, h.request
	req.Spec = req.Spec.Clone()
	h.mu.Unlock()
	if now != was {
		return now, nil
	}
	s, err := open(ctx, req)
	if err != nil {
		return "", err
	}
	return s.ID, nil
}

// leastWeight is what an entry takes beside the texts of its request.
const leastWeight = 1 << 10

// weight is about how many bytes of memory an entry takes.
func weight(s cove.Spec) int {
	w := leastWeight + len(s.Provider) + len(s.Template) + len(s.Flavor) + len(s.Project) + len(s.User) + len(s.Thread) + len(s.Policy) + 8*len(s.Ports)
	for _, m := range []map[string]string{s.Env, s.Metadata} {
		for k, v := range m {
			w += len(k) + len(v) + 64
		}
	}
	for _, v := range s.Volumes {
		w += len(v.Source) + len(v.Name) + len(v.Target) + 64
	}
	for _, names := range [][]string{s.Network.Allow, s.Network.Secrets} {
		for _, n := range names {
			w += len(n) + 32
		}
	}
	return w
}
