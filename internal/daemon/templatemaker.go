//go:build !lean

package daemon

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/rootfs"
)

// maxBuildFiles bounds what a build is made from.
const maxBuildFiles = cove.GiB

// templateMaker keeps the templates of a COVE_HOME for the engine.
type templateMaker struct {
	all  *templates
	cfg  config.Config
	turn chan struct{} // holds one while something is built
}

// maker returns what keeps the templates.
func maker(t *templates, cfg config.Config) cove.TemplateMaker {
	return &templateMaker{all: t, cfg: cfg, turn: make(chan struct{}, 1)}
}

// Templates implements [cove.TemplateMaker].
func (m *templateMaker) Templates(context.Context) ([]cove.Template, error) {
	list, err := m.all.wire()
	if err != nil {
		return nil, err
	}
	forms := make([]cove.Template, len(list))
	for i, w := range list {
		forms[i] = w.Cove()
	}
	return forms, nil
}

// HasTemplate implements [cove.TemplateMaker].
func (m *templateMaker) HasTemplate(name string) (bool, error) { return m.all.store.Has(name) }

// BuildTemplate implements [cove.TemplateMaker]. One is built at a time.
func (m *templateMaker) BuildTemplate(ctx context.Context, req cove.TemplateRequest) (_ *cove.Template, err error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	default:
		return nil, cove.Errorf(cove.Exhausted, "another template is being built").Remedy("try again when that is done").With("retry_after", 10)
	}
	dir, err := m.unpacked(ctx, req.Files)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := BuildTemplate(ctx, m.cfg, TemplateBuild{
		Name: req.Name, Dockerfile: filepath.Join(dir, "Dockerfile"), Origin: "Dockerfile that was sent", Log: &told{to: req.OnOutput},
	})
	if err != nil {
		return nil, err
	}
	return new(w.Cove()), nil
}

// unpacked returns a directory with the files of a tar.
func (m *templateMaker) unpacked(ctx context.Context, files io.Reader) (dir string, err error) {
	builds := filepath.Join(m.cfg.Home, "builds")
	if err := os.MkdirAll(builds, 0o700); err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the files of the build have no place")
	}
	if dir, err = os.MkdirTemp(builds, "build-"); err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the files of the build have no place")
	}
	made := dir
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(made))
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "the files of the build have no place")
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	bounds := rootfs.DefaultBounds
	bounds.Size = min(bounds.Size, maxBuildFiles)
	if err := rootfs.NewUnpacker(root, bounds).Layer(ctx, files); err != nil {
		return "", err
	}
	if info, err := root.Lstat("Dockerfile"); err != nil || !info.Mode().IsRegular() {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", cove.Wrap(cove.Unavailable, err, "the Dockerfile cannot be read")
		}
		return "", cove.InvalidField("files", "have no Dockerfile at their top")
	}
	return dir, nil
}

// told hands what a build tells to who listens.
type told struct {
	to  func(cove.Chunk)
	all int64
}

// Write implements [io.Writer].
func (t *told) Write(p []byte) (int, error) {
	if t.to != nil && len(p) > 0 {
		t.to(cove.Chunk{Stream: cove.Stdout, Offset: t.all, Data: append([]byte(nil), p...)})
	}
	t.all += int64(len(p))
	return len(p), nil
}

// TagTemplate implements [cove.TemplateMaker].
func (m *templateMaker) TagTemplate(ctx context.Context, name, as string) (*cove.Template, error) {
	made, err := m.all.store.Tag(ctx, name, as)
	if err != nil {
		return nil, err
	}
	return new(templateOf(rootfs.Entry{Manifest: made, Ready: true}).Cove()), nil
}

// RemoveTemplate implements [cove.TemplateMaker].
func (m *templateMaker) RemoveTemplate(ctx context.Context, name string) error {
	_, err := m.all.store.Remove(ctx, name)
	return err
}
