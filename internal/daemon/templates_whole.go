//go:build !lean

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/rootfs"
	"github.com/cove-sandbox/cove/internal/wire"
	"github.com/cove-sandbox/cove/provider/all"
)

// templates is the store of a COVE_HOME as providers see it.
type templates struct{ store *rootfs.Store }

// openTemplates opens the templates of a COVE_HOME, which need not exist. lasting
// says that sandboxes of an earlier process may be taken up.
func openTemplates(ctx context.Context, cfg config.Config, lasting bool) (*templates, error) {
	t := &templates{store: templateStore(cfg)}
	if lasting {
		if err := t.store.Inherit(ctx); err != nil {
			_ = t.store.Close() // the first error is the one to tell
			return nil, err
		}
	}
	return t, nil
}

// templateStore is the store of a COVE_HOME.
func templateStore(cfg config.Config) *rootfs.Store {
	lock := filepath.Join(cfg.Home, "providers", "local", "keeper.lock")
	return rootfs.New(rootfs.Config{Dir: filepath.Join(cfg.Home, "templates"), Held: func() bool { return locked(lock) }})
}

// locked reports whether a process holds a file: the keeper of sandboxes holds one
// for as long as it lives.
func locked(path string) bool {
	f, err := os.Open(path) //nolint:gosec // in COVE_HOME
	if err != nil {
		return !os.IsNotExist(err)
	}
	defer func() { _ = f.Close() }()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

// Close lets the trees go that sandboxes of this process had.
func (t *templates) Close() error { return t.store.Close() }

// Names implements [all.Templates].
func (t *templates) Names() (names []string) {
	list, _ := t.store.List() // what cannot be read is not ready
	for _, e := range list {
		if e.Ready && e.Name != rootfs.Base {
			names = append(names, e.Name)
		}
	}
	return names
}

// Lacking implements [all.Templates].
func (t *templates) Lacking() (words []string) {
	list, err := t.store.List()
	if err != nil {
		return []string{"templates cannot be read: " + cove.MessageOf(err)}
	}
	for _, e := range list {
		if tenant, _ := cove.SplitTemplate(e.Name); !e.Ready && tenant == "" { // every caller reads this
			words = append(words, fmt.Sprintf("template %s is not ready: %s; %s", e.Name, e.Why, e.Remedy))
		}
	}
	return words
}

// templateTime bounds the wait for a template: for another process that changes
// names, and for a first look at all its files.
const templateTime = 2 * time.Minute

// Get implements [all.Templates].
func (t *templates) Get(name string) (all.Template, error) {
	ctx, cancel := context.WithTimeout(context.Background(), templateTime)
	defer cancel()
	m, tree, err := t.store.Use(ctx, name)
	if errors.Is(err, context.DeadlineExceeded) {
		err = cove.Wrap(cove.Unavailable, err, "template %s could not be looked at within %s", name, templateTime).Remedy("end other commands that build or remove templates")
	}
	if err != nil {
		return all.Template{}, err
	}
	return all.Template{Name: m.Name, Digest: m.Digest, Kind: all.TemplateKind(m.Kind), Tree: tree, Env: m.Env, Path: m.Path, Preload: m.Preload}, nil
}

// wire is what the API tells of all templates, ready or not.
func (t *templates) wire() ([]wire.Template, error) {
	list, err := t.store.List()
	if err != nil {
		return nil, err
	}
	forms := make([]wire.Template, len(list))
	for i, e := range list {
		forms[i] = templateOf(e)
	}
	return forms, nil
}

// templateOf is the form of a template that travels.
func templateOf(e rootfs.Entry) wire.Template {
	tenant, _ := cove.SplitTemplate(e.Name)
	t := wire.Template{
		Name: e.Name, Shared: tenant == "", Kind: string(e.Kind), Digest: e.Digest, Source: e.Source, Size: e.Size, Files: e.Files, Packages: []wire.TemplatePackage{},
		Notes: e.Notes, Ready: e.Ready, Why: e.Why, Remedy: e.Remedy, Providers: []string{},
	}
	if !e.Created.IsZero() {
		t.CreatedAt = &e.Created
	}
	for _, p := range e.Packages {
		t.Packages = append(t.Packages, wire.TemplatePackage(p))
	}
	return t
}
