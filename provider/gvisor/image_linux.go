package gvisor

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// aheadSource is what an interpreter runs that waits in an image.
//
//go:embed ahead.py
var aheadSource string

// Of images of sandboxes in which an interpreter has imported its modules.
const (
	warmDir    = "warm"          // of the provider's directory
	aheadName  = "cove-ahead"    // the interpreter is kept as
	aheadReady = "+"             // what it says when all is imported
	aheadTime  = 2 * time.Minute // for all of it
	imageRetry = 5 * time.Minute // after one could not be made
	mostImages = 4
	// aheadTape is what its agent remembers of what it writes. Who takes it reads all.
	aheadTape = 256 * cove.KiB
)

// interpreter is one that somebody wants with modules imported.
type interpreter struct {
	program string
	env     map[string]string
	modules []string
}

func (i interpreter) equal(other interpreter) bool {
	return i.program == other.program && maps.Equal(i.env, other.env) && slices.Equal(i.modules, other.modules)
}

// image is a sandbox that was booted and has an interpreter that waits, or is to be
// one. The images' lock guards it.
type image struct {
	of      interpreter
	used    time.Time // last
	digest  string    // of the template
	host    string    // what the host's programs were
	dir     string    // "" while there is none
	making  bool
	retryAt time.Time
}

// images are those that spares are restored from, by their mold. They are no older
// than the provider: nothing of what is in one can have changed but the template and
// the host's programs.
type images struct {
	over chan struct{} // closed with the provider

	mu  sync.Mutex
	all map[cove.Mold]*image
}

func newImages() *images {
	return &images{over: make(chan struct{}), all: map[cove.Mold]*image{}}
}

// want says that spares of a mold should have an interpreter.
func (s *images) want(m cove.Mold, of interpreter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if i := s.all[m]; i != nil && i.of.equal(of) {
		i.used = now
		return
	}
	s.drop(m)
	if len(s.all) >= mostImages {
		oldest := m
		for other, i := range s.all {
			if last := s.all[oldest]; last == nil || i.used.Before(last.used) {
				oldest = other
			}
		}
		s.drop(oldest)
	}
	s.all[m] = &image{of: of, used: now}
}

// drop forgets an image. Who is restoring it fails, and makes a sandbox anew. The
// caller holds mu.
func (s *images) drop(m cove.Mold) {
	if i := s.all[m]; i != nil {
		delete(s.all, m)
		if i.dir != "" {
			_ = os.RemoveAll(i.dir) // else with the provider's next start
		}
	}
}

// find returns the image of a mold; dir is "" where there is none. mine says that the
// caller is to have it made.
func (s *images) find(m cove.Mold, digest string) (dir string, of interpreter, mine *image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.all[m]
	if i == nil {
		return "", of, nil
	}
	host := hostPrint()
	if i.dir != "" && (i.digest != digest || i.host != host) {
		again := i.of
		s.drop(m)
		i = &image{of: again, used: time.Now()}
		s.all[m] = i
	}
	if i.dir != "" {
		return i.dir, i.of, nil
	}
	if i.making || time.Now().Before(i.retryAt) {
		return "", of, nil
	}
	i.making, i.digest, i.host = true, digest, host
	return "", i.of, i
}

// made notes what became of an image that was to be made.
func (s *images) made(m cove.Mold, i *image, dir string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i.making = false
	if err != nil || s.all[m] != i {
		_ = os.RemoveAll(dir)
		i.retryAt = time.Now().Add(imageRetry)
		return
	}
	i.dir = dir
}

// bad forgets an image that cannot be restored.
func (s *images) bad(m cove.Mold, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.all[m]; i != nil && i.dir == dir {
		i.dir, i.retryAt = "", time.Now().Add(imageRetry)
		_ = os.RemoveAll(dir)
	}
}

// close removes all of them. Nobody uses one any more.
func (s *images) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for m, i := range s.all {
		delete(s.all, m)
		if i.dir != "" {
			errs = append(errs, os.RemoveAll(i.dir))
		}
	}
	return errors.Join(errs...)
}

// sweepImages removes those of an earlier process.
func (h *hostSide) sweepImages() error {
	dir := filepath.Join(h.cfg.Dir, warmDir)
	list, err := os.ReadDir(dir)
	if err != nil {
		return diskError(err, "the directory of provider "+name+" cannot be read")
	}
	var errs []error
	for _, e := range list {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}

// develop makes an image in the background. It takes from nobody: until it is there,
// spares are booted.
func (p *Provider) develop(m cove.Mold, o order, i *image) {
	if err := p.books.Enter(); err != nil {
		return
	}
	go func() {
		defer p.books.Leave()
		ctx, cancel := context.WithTimeout(context.Background(), aheadTime)
		defer cancel()
		go func() {
			defer cancel()
			select {
			case <-p.images.over:
			case <-ctx.Done():
			}
		}()
		dir := filepath.Join(o.h.cfg.Dir, warmDir, string(cove.NewID()))
		p.images.made(m, i, dir, o.h.expose(ctx, o, i.of, dir))
	}()
}

// expose writes the image of a sandbox in which an interpreter waits.
func (h *hostSide) expose(ctx context.Context, o order, of interpreter, dir string) (err error) {
	built, err := h.make(ctx, string(cove.NewID()), wish{base: o.base, places: placesOf(o.spec)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, built.drop(ctx)) }()
	opts := built.options(o.spec, o.base.env)
	opts.Memory = keptPart * aheadTape
	conn, err := built.begin(ctx, opts, false)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := wait(ctx, conn, of); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return diskError(err, "an image of a sandbox cannot be written")
	}
	return h.run.checkpoint(ctx, built.name, dir)
}

// keptPart is what of the memory the agent may have for what one program writes.
const keptPart = 16

// wait starts an interpreter, and returns when it waits.
func wait(ctx context.Context, conn *guest.Conn, of interpreter) error {
	ready := &signal{done: make(chan struct{})}
	p, err := conn.Start(ctx, cove.Command{
		Argv: slices.Concat([]string{of.program, "-I", "-c", aheadSource}, of.modules), Env: of.env, Dir: "/",
		Stdin: idle(ctx.Done()), Stdout: ready, Keep: aheadName,
	})
	if err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = p.Wait(ctx)
	}()
	select {
	case <-ready.done:
		return nil
	case <-over:
		return errors.Join(ctx.Err(), errors.New("the interpreter ended"))
	}
}

// signal is written to once.
type signal struct {
	once sync.Once
	done chan struct{}
}

// Write implements [io.Writer].
func (s *signal) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(aheadReady)) {
		s.once.Do(func() { close(s.done) })
	}
	return len(b), nil
}

// idle is an input that nothing comes from.
type idle <-chan struct{}

// Read implements [io.Reader].
func (i idle) Read([]byte) (int, error) {
	<-i
	return 0, io.EOF
}
