package local

import (
	"sync"
	"time"
)

// gate keeps calls out for the moment in which there is no workspace, and the
// workspace in place while calls use it. The zero value is open.
type gate struct {
	mu     sync.Mutex
	inside int           // guarded by mu; short calls
	users  int           // guarded by mu; what uses the workspace until somebody ends it
	shut   chan struct{} // guarded by mu; nil while it is open, closed when it opens again
	left   chan struct{} // guarded by mu; closed by the last call that leaves
}

// enter waits until the gate is open, and passes it.
func (g *gate) enter() (leave func()) {
	for {
		g.mu.Lock()
		shut := g.shut
		if shut == nil {
			g.inside++
			g.mu.Unlock()
			return g.leave
		}
		g.mu.Unlock()
		<-shut
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.inside == 0 && g.left != nil {
		close(g.left)
		g.left = nil
	}
}

// use is enter for what takes as long as somebody wants: nobody waits for it.
func (g *gate) use() (end func()) {
	defer g.enter()()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.users--
	})
}

// close shuts the gate when all calls have left. It is false, and the gate open,
// if that takes too long. One at a time may close it.
func (g *gate) close(patience time.Duration) bool {
	g.mu.Lock()
	if g.users > 0 {
		g.mu.Unlock()
		return false
	}
	g.shut = make(chan struct{})
	if g.inside == 0 {
		g.mu.Unlock()
		return true
	}
	left := make(chan struct{})
	g.left = left
	g.mu.Unlock()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-left:
	case <-late.C:
	}
	g.mu.Lock()
	empty := g.inside == 0 && g.users == 0
	g.left = nil
	g.mu.Unlock()
	if !empty {
		g.open()
	}
	return empty
}

// open lets calls pass again.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}
