package engine

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on the lists of files that wait for their next page.
const (
	maxListings = 4 // of one session
	listingTime = 10 * time.Second
)

// listing is a list of files of which some were read. It costs the session a stream, and
// the sandbox the names of the directories that it is in.
type listing struct {
	dir    string
	depth  int
	at     int // how many were read
	next   func() (cove.FileInfo, error, bool)
	stop   func()
	cancel context.CancelFunc // ends a read
	ahead  []cove.FileInfo    // one that was read and belongs to the next page, or none
	timer  *time.Timer        // ends it; nil while a page is read
}

// filePage is a part of a list of files.
type filePage struct {
	files []cove.FileInfo
	more  bool
}

var _ cove.FilePager = files{}

// ListPage implements [cove.FilePager]. Between two pages the list stays open for a
// while, so that the files before a page are read once.
func (f files) ListPage(ctx context.Context, dir string, depth, skip, limit int) ([]cove.FileInfo, bool, error) {
	p, err := act(ctx, f.v, f.at(cove.FileList, dir), func(ctx context.Context, st *step) (filePage, error) {
		switch {
		case depth < 1 || depth > cove.MaxListDepth:
			return filePage{}, cove.InvalidField("depth", "%d is out of range; use 1 to %d", depth, cove.MaxListDepth)
		case skip < 0 || limit < 1:
			return filePage{}, cove.InvalidField("limit", "%d files after %d; use a limit of 1 or more, and skip none or some", limit, skip)
		}
		t, err := tree(st, &dir)
		if err != nil {
			return filePage{}, err
		}
		defer st.lease.leave()
		if g := st.lease.takeListing(dir, depth, skip); g != nil {
			if p, err := g.page(ctx, st.lease, skip, limit); err == nil {
				return p, nil
			}
		}
		return newListing(ctx, t, dir, depth).page(ctx, st.lease, skip, limit)
	})
	return p.files, p.more, err
}

// newListing begins a list that outlives the call.
func newListing(ctx context.Context, t cove.Files, dir string, depth int) *listing {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := &listing{dir: dir, depth: depth, cancel: cancel}
	g.next, g.stop = iter.Pull2(t.List(ctx, dir, depth))
	return g
}

// page reads up to a page, and the page. Then the list waits for a request for the next one,
// unless it has ended.
func (g *listing) page(ctx context.Context, l *lease, skip, limit int) (p filePage, err error) {
	keep := context.AfterFunc(ctx, g.cancel)
	for len(p.files) < limit {
		info, err, ok := g.read()
		if err != nil || !ok {
			keep()
			g.end()
			return p, err
		}
		if g.at++; g.at > skip {
			p.files = append(p.files, info)
		}
	}
	info, err, more := g.read()
	p.more = more && err == nil
	if err != nil || !p.more || !keep() {
		g.end()
		return p, err
	}
	g.ahead = []cove.FileInfo{info}
	l.keepListing(g)
	return p, nil
}

func (g *listing) read() (info cove.FileInfo, err error, ok bool) {
	if len(g.ahead) > 0 {
		info, g.ahead = g.ahead[0], nil
		return info, nil, true
	}
	info, err, ok = g.next()
	return info, err, ok
}

// end closes the list. The caller took it out of the lease, or never put it there.
func (g *listing) end() {
	g.cancel()
	g.stop()
}

// takeListing returns a list that is at a place, which is the caller's from then on; nil
// where there is none.
func (l *lease) takeListing(dir string, depth, at int) *listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, g := range l.listings {
		if g.dir == dir && g.depth == depth && g.at == at {
			g.timer.Stop()
			l.listings = slices.Delete(l.listings, i, i+1)
			return g
		}
	}
	return nil
}

// keepListing keeps a list for its next page. An older one at the same place ends, and so
// does the oldest of too many.
func (l *lease) keepListing(g *listing) {
	old := l.takeListing(g.dir, g.depth, g.at)
	l.mu.Lock()
	if old == nil && len(l.listings) == maxListings {
		old = l.listings[0]
		old.timer.Stop()
		l.listings = slices.Delete(l.listings, 0, 1)
	}
	gone := l.sandbox == nil
	if !gone {
		g.timer = time.AfterFunc(listingTime, func() { l.dropListing(g) })
		l.listings = append(l.listings, g)
	}
	l.mu.Unlock()
	if old != nil {
		old.end()
	}
	if gone {
		g.end()
	}
}

// dropListing ends a list, unless a request took it.
func (l *lease) dropListing(g *listing) {
	l.mu.Lock()
	i := slices.Index(l.listings, g)
	if i >= 0 {
		l.listings = slices.Delete(l.listings, i, i+1)
	}
	l.mu.Unlock()
	if i >= 0 {
		g.end()
	}
}

// dropListings ends all of them.
func (l *lease) dropListings() {
	l.mu.Lock()
	all := l.listings
	l.listings = nil
	l.mu.Unlock()
	for _, g := range all {
		g.timer.Stop()
		g.end()
	}
}
