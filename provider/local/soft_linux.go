package local

import (
	"context"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// How often a directory is looked at that the kernel does not bound. A look may
// take a small part of the time only.
const (
	softInterval = time.Second
	softShare    = 20
	softPatience = 10 * time.Second
	softPrograms = 4096 // that are remembered
)

// softBounds watches the workspace of one sandbox. Who is over a bound has its
// programs ended at every look and can write nothing through [cove.Files]; who
// goes on to twice as much is ended.
type softBounds struct {
	s      *sandbox
	dir    string
	bounds fence.Bounds

	mu       sync.Mutex
	over     bool           // guarded by mu
	programs []cove.Process // guarded by mu; the newest last
}

// watch looks until the sandbox has ended.
func (b *softBounds) watch() {
	timer := time.NewTimer(softInterval)
	defer timer.Stop()
	for {
		select {
		case <-b.s.conn.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		b.act(b.look())
		timer.Reset(max(softInterval, softShare*time.Since(began)))
	}
}

// look counts what is there, as far as it matters.
func (b *softBounds) look() used {
	return measure(b.dir, used{bytes: 2 * b.bounds.Size, files: 2 * b.bounds.Files})
}

func (b *softBounds) act(u used) {
	over := u.bytes > b.bounds.Size || u.files > b.bounds.Files || u.deep
	b.mu.Lock()
	b.over = over
	var programs []cove.Process
	if over {
		programs, b.programs = b.programs, nil
	}
	b.mu.Unlock()
	if u.bytes > 2*b.bounds.Size || u.files > 2*b.bounds.Files {
		b.s.kill()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), softPatience)
	defer cancel()
	for _, p := range programs {
		_ = p.Kill(ctx) // who cannot be ended is found over the bounds again
	}
}

// full is the error of who is over the bounds, or nil.
func (b *softBounds) full() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		return nil
	}
	return cove.Errorf(cove.Exhausted, "the workspace is over its limit of %s and %d files", cove.Bytes(b.bounds.Size), b.bounds.Files).
		Reason(cove.ReasonWorkspaceFull).Remedy("remove files")
}

// bounded is a sandbox whose workspace is watched.
type bounded struct {
	cove.Sandbox

	b *softBounds
}

// Unwrap lets [cove.As] find the powers below.
func (l bounded) Unwrap() cove.Sandbox { return l.Sandbox }

// Start implements [cove.Sandbox].
func (l bounded) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	p, err := l.Sandbox.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	// One that has ended may have left others, which are ended with it.
	if l.b.programs = append(l.b.programs, p); len(l.b.programs) > softPrograms {
		l.b.programs = l.b.programs[1:]
	}
	return p, nil
}

// Files implements [cove.Sandbox].
func (l bounded) Files() cove.Files { return boundedFiles{l.Sandbox.Files(), l.b} }

type boundedFiles struct {
	cove.Files

	b *softBounds
}

// Write implements [cove.Files].
func (f boundedFiles) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error {
	if err := f.b.full(); err != nil {
		return err
	}
	return f.Files.Write(ctx, name, r, mode)
}

// Mkdir implements [cove.Files].
func (f boundedFiles) Mkdir(ctx context.Context, name string) error {
	if err := f.b.full(); err != nil {
		return err
	}
	return f.Files.Mkdir(ctx, name)
}

// Unpack implements [cove.Files].
func (f boundedFiles) Unpack(ctx context.Context, dir string, tar io.Reader) error {
	if err := f.b.full(); err != nil {
		return err
	}
	return f.Files.Unpack(ctx, dir, tar)
}
