package e2bapi

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Bounds on the changes that wait for a client.
const (
	maxWaiting      = 262_144
	maxWaitingBytes = 64 << 20
	feedBatch       = 256 // in one piece of an answer

	maxFeeds           = 128 // of a sandbox
	maxAllWaitingBytes = 256 << 20
)

// watchMessage asks for the changes in a directory.
type watchMessage struct {
	Path         string `json:"path"`
	Recursive    bool   `json:"recursive"`
	IncludeEntry bool   `json:"includeEntry"`
}

// event is one change, with a name relative to the directory.
type event struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Entry *entry `json:"entry,omitempty"`
}

// change is an event with the whole name of its file, which may be there no more.
type change struct {
	event

	path string
	gone bool
}

// weight is about what a change takes in memory.
func (c change) weight() int {
	const beside = 96
	return len(c.Name) + len(c.path) + beside
}

// eventType is what clients call a change. One that moved is told by its old name, and
// created by its new one.
func eventType(ch cove.Change) string {
	switch {
	case ch.Kind == cove.Created:
		return "EVENT_TYPE_CREATE"
	case ch.Kind == cove.Removed && ch.Moved:
		return "EVENT_TYPE_RENAME"
	case ch.Kind == cove.Removed:
		return "EVENT_TYPE_REMOVE"
	case ch.Attributes:
		return "EVENT_TYPE_CHMOD"
	}
	return "EVENT_TYPE_WRITE"
}

// feed takes changes as fast as they come, so that none is lost because a client is
// slow, and holds a bounded number of them.
type feed struct {
	files cove.Files
	want  watchMessage
	dir   string       // as it was asked for
	real  string       // what that leads to
	ready chan nothing // closed when no change is missed any more
	poke  chan nothing // holds one when there is something to take
	over  chan nothing // closed when no more will come

	room *feedRoom
	id   cove.ID // of the sandbox

	mu    sync.Mutex
	queue []change // guarded by mu, as is all below
	bytes int      // what room was taken
	ended bool
	err   error
}

// feedRoom bounds what waits for all clients, and how many feeds a sandbox has. The zero
// value is ready.
type feedRoom struct {
	mu    sync.Mutex
	bytes int             // guarded by mu
	open  map[cove.ID]int // guarded by mu
}

// enter gives a sandbox one more feed.
func (r *feedRoom) enter(id cove.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[id] >= maxFeeds {
		return cove.Errorf(cove.Exhausted, "this sandbox is watched %d times already", maxFeeds).Remedy("stop watches that are no longer needed")
	}
	if r.open == nil {
		r.open = map[cove.ID]int{}
	}
	r.open[id]++
	return nil
}

func (r *feedRoom) leave(id cove.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[id]--; r.open[id] <= 0 {
		delete(r.open, id)
	}
}

// take reports whether there is room for so many bytes more; a negative number gives
// some back.
func (r *feedRoom) take(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > 0 && r.bytes+n > maxAllWaitingBytes {
		return false
	}
	r.bytes += n
	return true
}

// newFeed returns a feed of what changes in a directory; run fills it. It must be ended.
func (c *call) newFeed(ctx context.Context, want watchMessage) (*feed, error) {
	f, err := openFeed(ctx, c.files(), want)
	if err != nil {
		return nil, err
	}
	f.room, f.id = &c.h.feeds, c.id
	return f, f.room.enter(c.id)
}

// end gives back what the feed has taken. It is idempotent.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	f.ended = true
	f.room.take(-f.bytes)
	f.room.leave(f.id)
	f.queue, f.bytes = nil, 0
}

func openFeed(ctx context.Context, files cove.Files, want watchMessage) (*feed, error) {
	dir, err := inward(want.Path)
	if err != nil {
		return nil, err
	}
	f := &feed{files: files, want: want, dir: dir, real: dir, ready: make(chan nothing), poke: make(chan nothing, 1), over: make(chan nothing)}
	switch info, err := files.Stat(ctx, dir); {
	case err != nil:
		return nil, err
	case info.Mode&fs.ModeSymlink != 0:
		if info, err = behind(ctx, files, info); err != nil {
			return nil, err
		}
		f.real = info.Path
	}
	return f, nil
}

// run takes changes until ctx ends or nobody can follow any more.
func (f *feed) run(ctx context.Context) {
	defer close(f.over)
	begun := false
	for ch, err := range f.files.Watch(ctx, f.dir) {
		switch {
		case err != nil:
			f.fail(err)
			return
		case ch.Kind == cove.Watching:
			if !begun {
				begun = true
				close(f.ready)
			}
		case ch.Kind == cove.Overflow:
			f.fail(cove.Errorf(cove.Exhausted, "more changed than could be followed, and some changes were lost").
				Remedy("list the directory, and watch it again"))
			return
		default:
			if !f.push(ch) {
				return
			}
		}
	}
	if err := context.Cause(ctx); err != nil {
		f.fail(err)
		return
	}
	f.fail(cove.Errorf(cove.Unavailable, "the sandbox does not run any more"))
}

// begun waits until no change is missed any more, or tells why none will come. What is
// over by then may have begun, too: its changes are to be told first.
func (f *feed) begun(ctx context.Context) error {
	select {
	case <-f.ready:
	case <-f.over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-f.ready:
		return nil
	default:
		_, err := f.look(1)
		return err
	}
}

func (f *feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// push keeps a change for the client, and reports whether there was room.
func (f *feed) push(ch cove.Change) bool {
	name := f.relative(ch.Path)
	if !f.want.Recursive && strings.Contains(name, "/") {
		return true
	}
	one := change{event{Name: name, Type: eventType(ch)}, ch.Path, ch.Kind == cove.Removed}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	if n := one.weight(); len(f.queue) >= maxWaiting || f.bytes+n > maxWaitingBytes || !f.room.take(n) {
		f.err = cove.Errorf(cove.Exhausted, "the client is too slow for what changes here, and some changes were lost").
			Remedy("list the directory, and watch it again")
		return false
	}
	f.bytes += one.weight()
	f.queue = append(f.queue, one)
	select {
	case f.poke <- nothing{}:
	default:
	}
	return true
}

// relative is the name of a file within the directory. What is reached by another way
// than the one that was asked for keeps its whole name.
func (f *feed) relative(name string) string {
	for _, dir := range []string{f.real, f.dir} {
		if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(dir, "/")+"/"); ok {
			return rest
		}
	}
	return path.Clean(outward(name))
}

// look returns what waits, no more than most, and when nothing waits, why no more will
// come, if that is so. It waits on until it is dropped.
func (f *feed) look(most int) ([]change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(len(f.queue), most)
	if n == 0 {
		return nil, f.err
	}
	return f.queue[:n:n], nil
}

// drop gives up the first few of what waits. Only who looks drops.
func (f *feed) drop(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = min(n, len(f.queue)) // it may have ended
	given := 0
	for _, one := range f.queue[:n] {
		given += one.weight()
	}
	f.queue = f.queue[n:]
	f.bytes -= given
	f.room.take(-given)
	if len(f.queue) == 0 {
		f.queue = nil // and its memory
	}
}

// take is look for who gives up what it gets.
func (f *feed) take(most int) ([]change, error) {
	list, err := f.look(most)
	f.drop(len(list))
	return list, err
}

// told is what a client gets of a change: with a description of the file if it wants
// one and there still is one.
func (f *feed) told(ctx context.Context, one change) event {
	if !f.want.IncludeEntry || one.gone {
		return one.event
	}
	if info, err := f.files.Stat(ctx, one.path); err == nil {
		e := entryOf(ctx, f.files, info)
		one.Entry = &e
	}
	return one.event
}
