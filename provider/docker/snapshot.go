//go:build linux

package docker

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
)

const (
	snapshotDir    = "snapshots"
	snapshotSuffix = ".tar"
	draftPrefix    = ".draft-"
)

// archive is the files of a snapshot; nil is none.
type archive struct{ io.ReadCloser }

// unpack gives an empty workspace its files.
func (a *archive) unpack(ctx context.Context, f cove.Files) error {
	if a == nil {
		return nil
	}
	return f.Unpack(ctx, ".", a)
}

func (a *archive) close() {
	if a != nil {
		_ = a.Close()
	}
}

func (p *Provider) snapshotFile(name cove.ID) string {
	return filepath.Join(p.cfg.Dir, snapshotDir, string(name)+snapshotSuffix)
}

// saved opens a snapshot; nil if none is named.
func (p *Provider) saved(name cove.ID) (*archive, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(p.snapshotFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cove.Errorf(cove.NotFound, "snapshot %s does not exist", name)
	}
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "snapshot %s cannot be read", name)
	}
	return &archive{f}, nil
}

// RemoveSnapshot implements [cove.SnapshotKeeper].
func (p *Provider) RemoveSnapshot(ctx context.Context, name cove.ID) error {
	if err := ctx.Err(); err != nil || !name.Valid() {
		return err
	}
	if err := os.Remove(p.snapshotFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cove.Wrap(cove.Unavailable, err, "snapshot %s cannot be removed", name)
	}
	return nil
}

// layered is a sandbox whose files can be saved and doubled.
type layered struct {
	cove.Sandbox

	s *sandbox
}

var (
	_ cove.Snapshotter = layered{}
	_ cove.Forker      = layered{}
)

// Unwrap lets [cove.As] find the powers below.
func (l layered) Unwrap() cove.Sandbox { return l.Sandbox }

// Snapshot implements [cove.Snapshotter].
func (l layered) Snapshot(ctx context.Context, name cove.ID) (cove.Bytes, error) {
	if !name.Valid() {
		return 0, cove.InvalidField("snapshot", "%.60q is not an id", string(name))
	}
	if l.s.isGone() {
		return 0, l.s.goneError()
	}
	p := l.s.p
	if err := p.books.Enter(); err != nil {
		return 0, err
	}
	defer p.books.Leave()
	r, err := l.Files().Archive(ctx, ".")
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()
	return p.save(name, l.s.bounded(r))
}

// bounded is a reader that has no more than a workspace should: where the engine does
// not bound one, it must not fill our disk.
func (s *sandbox) bounded(r io.Reader) io.Reader {
	if !s.shares() {
		return r
	}
	size, _ := s.note.Spec.Room()
	return &bounded{r, size, int64(2 * size)} // with the names of many small files
}

type bounded struct {
	io.Reader

	size cove.Bytes // of the workspace, as it was asked for
	left int64
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, cove.Errorf(cove.Exhausted, "the workspace has much more than the %s that were asked for", b.size).Reason(cove.ReasonWorkspaceFull).Remedy("remove files")
	}
	return n, err
}

// save writes a snapshot, which appears whole or not at all.
func (p *Provider) save(name cove.ID, r io.Reader) (cove.Bytes, error) {
	dir := filepath.Join(p.cfg.Dir, snapshotDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, unsaved(name, err)
	}
	draft, err := os.CreateTemp(dir, draftPrefix+"*")
	if err != nil {
		return 0, unsaved(name, err)
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	size, err := io.Copy(draft, r)
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return 0, unsaved(name, err)
	}
	// A link fails where there is one already; to rename would replace it.
	if err := os.Link(draft.Name(), p.snapshotFile(name)); errors.Is(err, fs.ErrExist) {
		return 0, cove.Errorf(cove.Conflict, "snapshot %s exists already", name)
	} else if err != nil {
		return 0, unsaved(name, err)
	}
	return cove.Bytes(size), nil
}

// dropDrafts removes the snapshots that an earlier process was killed over.
func (p *Provider) dropDrafts() {
	dir := filepath.Join(p.cfg.Dir, snapshotDir)
	list, _ := os.ReadDir(dir) // none where there is no directory
	for _, entry := range list {
		if info, err := entry.Info(); err == nil && strings.HasPrefix(entry.Name(), draftPrefix) && info.ModTime().Before(p.began) {
			_ = os.Remove(filepath.Join(dir, entry.Name())) // the next process tries again
		}
	}
}

func unsaved(name cove.ID, err error) error {
	if own, ok := errors.AsType[*cove.Error](err); ok {
		return own
	}
	return cove.Wrap(cove.Unavailable, err, "snapshot %s cannot be written", name).Remedy("make room in the provider's directory")
}

// Fork implements [cove.Forker]: the files go from one to the other, and are
// written down nowhere.
func (l layered) Fork(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if l.s.isGone() {
		return nil, l.s.goneError()
	}
	p := l.s.p
	if err := p.books.Enter(); err != nil {
		return nil, err
	}
	defer p.books.Leave()
	f, caps, spec, err := p.admit(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	if err := p.books.Reserve(id, nil); err != nil {
		return nil, err
	}
	made, err := p.make(ctx, f, prefix+string(id), spec.Template, p.shapeOf(f, spec), spec.Volumes)
	if err != nil {
		p.books.Release(id)
		return nil, err
	}
	files, err := l.Files().Archive(ctx, ".")
	if err != nil {
		p.books.Release(id)
		return nil, p.undoMade(ctx, made, err)
	}
	defer func() { _ = files.Close() }()
	return p.settle(ctx, made, id, spec, caps, &archive{files})
}
