package local

import (
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/provider/local/fence"
)

// headStart is what was begun before there was a provider.
type headStart struct {
	room  *fence.Room
	drawn chan struct{} // closed when root and path are there
	root  fence.Root    // without a stage
	path  []string
}

// ahead is for the first provider that takes it.
var ahead atomic.Pointer[headStart]

// Ahead begins what the first sandbox of this process needs, as far as it is the
// same for all: its namespaces and its root. A program calls it that lives for one
// sandbox and has other things to do first; the next provider that is opened with
// Once takes it. Where nobody does, it ends with the process.
func Ahead() {
	if os.Geteuid() != 0 {
		return // a spawner has its own
	}
	a := &headStart{room: fence.Begin(host, true, unix.AT_FDCWD), drawn: make(chan struct{})}
	ahead.Store(a)
	if info, err := os.Stat(anyStage); err == nil && info.IsDir() {
		a.room.Build(func() fence.Root {
			<-a.drawn
			root := a.root
			root.Stage = anyStage
			return root
		})
	}
	lull()
	// The room waits for it, and where there is nobody else to do it, all that the
	// caller does first keeps both waiting.
	if runtime.GOMAXPROCS(0) > 2 {
		go a.draw()
		return
	}
	a.draw()
}

func (a *headStart) draw() {
	a.root, a.path = draw()
	close(a.drawn)
}

// anyStage is a directory of every host over which a root can be built, in mounts
// of its own: nothing of a root is shown from there.
const anyStage = "/sys"

// draw describes the root of sandboxes on this host, without a stage, and where
// interpreters are beside /usr.
func draw() (fence.Root, []string) {
	r := newRoot("/", "")
	path := addInterpreters(&r, "/", lookPath)
	var places []string
	for _, bin := range path {
		places = append(places, filepath.Dir(bin))
	}
	hideSettings(&r, "/", places...)
	return r, path
}
