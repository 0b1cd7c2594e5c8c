package fake

import (
	"context"
	"io/fs"
	"os"
	"sync"

	"github.com/cove-sandbox/cove"
)

// spare is a directory that waits for its id. It has an id of its own until
// then; List leaves it out, unless the process that made it is gone.
type spare struct {
	p    *Provider
	dir  cove.ID
	mold cove.Mold

	mu   sync.Mutex
	used bool
	warm *sandbox // what programs were started in; nil if there are none
}

// Prepare implements [cove.Preparer].
func (l preparing) Prepare(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	p := l.Provider
	if err := p.enter(ctx, "prepare", ""); err != nil {
		return nil, err
	}
	if !p.caps.Ready {
		return nil, cove.Errorf(cove.Unavailable, "provider %s is not ready: %s", p.cfg.Name, p.caps.Why).Remedy("%s", p.caps.Remedy)
	}
	if err := p.known("template", m.Template); err != nil {
		return nil, err
	}
	if _, ok := p.caps.Workspaces[m.Workspace]; !ok {
		return nil, cove.InvalidField("workspace", "%.40q is unknown; use memory or disk", string(m.Workspace))
	}
	if err := p.delay(ctx); err != nil {
		return nil, err
	}
	s := &spare{p: p, dir: cove.NewID(), mold: m}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, cove.Errorf(cove.Unavailable, "provider %s is closed", p.cfg.Name)
	}
	if err := s.furnish(); err != nil {
		return nil, after(p.makeError(s.dir, err), p.erase(string(s.dir)))
	}
	p.spares[s.dir] = s
	return s, nil
}

// furnish does what every sandbox needs.
func (s *spare) furnish() error {
	if err := s.p.root.Mkdir(string(s.dir), 0o700); err != nil {
		return err
	}
	box, err := s.p.root.OpenRoot(string(s.dir))
	if err != nil {
		return err
	}
	_, err = s.p.furnish("")(box)
	return after(err, box.Close())
}

// use reports whether the spare was still to be had.
func (s *spare) use() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.used
	s.used = true
	return first
}

// Claim implements [cove.Spare].
func (s *spare) Claim(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if !s.use() {
		return nil, cove.Errorf(cove.Conflict, "the spare is used up")
	}
	p := s.p
	spec, err := p.admit(ctx, "claim", id, spec)
	if err == nil && (spec.Template != s.mold.Template || spec.Workspace.Kind != s.mold.Workspace) {
		err = cove.Errorf(cove.Invalid, "the spec does not fit the spare; create a sandbox instead")
	}
	if err != nil {
		return nil, after(err, s.free())
	}
	if spec.Snapshot != "" || len(spec.Volumes) > 0 && s.isWarm() {
		if err := s.free(); err != nil {
			return nil, err
		}
		return p.create(id, spec, p.furnish(spec.Snapshot))
	}
	if err := s.rename(id); err != nil {
		return nil, after(p.makeError(id, err), s.free())
	}
	if warm := s.take(); warm != nil {
		return p.adopt(warm, id, spec)
	}
	return p.finish(id, spec, func(*os.Root) (bool, error) { return true, nil })
}

// rename gives the directory its id, unless that is taken.
func (s *spare) rename(id cove.ID) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if _, err := s.p.root.Lstat(string(id)); err == nil {
		return fs.ErrExist
	}
	if err := s.p.root.Rename(string(s.dir), string(id)); err != nil {
		return err
	}
	delete(s.p.spares, s.dir)
	return nil
}

// Discard implements [cove.Spare].
func (s *spare) Discard(context.Context) error {
	if !s.use() {
		return nil
	}
	return s.free()
}

func (s *spare) free() error {
	s.stop()
	s.p.mu.Lock()
	closed := s.p.closed // Close frees the spares itself
	delete(s.p.spares, s.dir)
	s.p.mu.Unlock()
	if closed {
		return nil
	}
	return s.p.erase(string(s.dir))
}
