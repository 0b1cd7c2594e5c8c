package gvisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/template"
)

// base is what a sandbox is made from.
type base struct {
	name   string
	kind   template.Kind
	tree   string
	digest string
	env    map[string]string
}

// find finds what sandboxes can be made from.
func (h *hostSide) find(name string) (base, error) {
	if name == Base || name == "" {
		return base{name: Base, kind: template.KindHost}, nil
	}
	if h.cfg.Templates == nil {
		return base{}, h.unknown(name)
	}
	t, err := h.cfg.Templates.Get(name)
	if cove.CodeOf(err) == cove.NotFound {
		return base{}, h.unknown(name)
	}
	if err == nil {
		err = t.Check()
	}
	if err != nil {
		return base{}, err
	}
	if t.Kind == template.KindLayer {
		return base{}, cove.Errorf(cove.Unsupported, "template %.60q lies over the host's own files, which provider %s cannot show", t.Name, name).
			With("field", "template").Remedy("use the provider local for it, or build a template from an image")
	}
	return base{name: t.Name, kind: t.Kind, tree: t.Tree, digest: t.Digest, env: t.Environ()}, nil
}

// unknown says that nothing was built under a name.
func (h *hostSide) unknown(full string) error {
	tenant, asked := cove.SplitTemplate(full)
	return cove.InvalidField("template", "%.60q is unknown to provider %s; it has %s", asked, name, strings.Join(cove.VisibleTemplates(tenant, h.templates()), ", ")).
		Remedy("use one of these, or build it: cove template build %.60s", asked)
}

// templates are the names of those that can be used, the base first.
func (h *hostSide) templates() []string {
	names := []string{Base}
	if h.cfg.Templates == nil {
		return names
	}
	for _, name := range h.cfg.Templates.Names() {
		if _, err := h.find(name); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// lacking says which templates cannot be used here, and why.
func (h *hostSide) lacking() []string {
	if h.cfg.Templates == nil {
		return nil
	}
	notes := h.cfg.Templates.Lacking()
	for _, name := range cove.VisibleTemplates("", h.cfg.Templates.Names()) {
		if _, err := h.find(name); err != nil {
			notes = append(notes, cove.MessageOf(err))
		}
	}
	return notes
}

// ownPlaces are those of a sandbox that no template can have.
var ownPlaces = []string{"cove", "dev", "etc", "mnt", "proc", "run", "sys", "tmp", strings.TrimPrefix(cove.WorkspacePath, "/")}

// mostShown bounds what a template has at its top: each is a mount.
const mostShown = 64

var errCrowded = errors.New("there is too much beside /usr")

// drawTree is the root of a template that has all its programs.
func drawTree(tree string) (*drawing, error) {
	broken := func(err error) error {
		return cove.Wrap(cove.Unavailable, err, "the files of the template cannot be shown: %s", err).Remedy("build it again with cove template build")
	}
	list, err := os.ReadDir(tree)
	if err == nil && len(list) > mostShown {
		err = errCrowded
	}
	if err != nil {
		return nil, broken(err)
	}
	d := bare()
	for _, e := range list {
		source, path := filepath.Join(tree, e.Name()), "/"+e.Name()
		switch {
		case slices.Contains(ownPlaces, e.Name()):
		case e.Type()&os.ModeSymlink != 0:
			to, err := os.Readlink(source)
			if err != nil {
				return nil, broken(err)
			}
			if !d.has(path) {
				d.Links = append(d.Links, drawnLink{path, to})
			}
		case e.IsDir():
			if inside, err := os.ReadDir(source); err != nil || len(inside) == 0 {
				if err != nil {
					return nil, broken(err)
				}
				continue // it stays a place that volumes can be put into
			}
			if err := d.show(source, path); err != nil {
				return nil, broken(err)
			}
		}
	}
	c := &copying{d: d, room: mostCopied}
	c.add(filepath.Join(tree, "etc"), "/etc")
	return d, nil
}

// show shows a directory of a template. Homes are shown one by one, beside the one
// that is every sandbox's own.
func (d *drawing) show(source, path string) error {
	if path != filepath.Dir(cove.HomePath) {
		d.cover(path)
		d.Binds = append(d.Binds, bind{source, path})
		return nil
	}
	list, err := os.ReadDir(source)
	if err == nil && len(list) > mostShown {
		err = errCrowded
	}
	for _, e := range list {
		if at := filepath.Join(path, e.Name()); e.IsDir() && at != cove.HomePath {
			d.cover(at)
			d.Binds = append(d.Binds, bind{filepath.Join(source, e.Name()), at})
		}
	}
	return err
}

// cover makes a place for what is shown there, without what we have below.
func (d *drawing) cover(path string) {
	below := func(p string) bool { return strings.HasPrefix(p, path+"/") }
	d.Links = slices.DeleteFunc(d.Links, func(x drawnLink) bool { return below(x.Path) })
	if !d.has(path) {
		d.Dirs = append(d.Dirs, drawnDir{path, 0o755})
	}
}

// rootOf is the tree for sandboxes of a template; those with volumes have one of
// their own, with the targets in it.
func (h *hostSide) rootOf(b base, volumes []cove.Volume) (*root, error) {
	key := b.name + "\x00" + b.digest + "\x00" + b.tree
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.trees[key]; t != nil && len(volumes) == 0 {
		return t, nil
	}
	d := drawHost()
	if b.kind == template.KindTree {
		var err error
		if d, err = drawTree(b.tree); err != nil {
			return nil, err
		}
	}
	if err := d.addTargets(volumes); err != nil {
		return nil, err
	}
	t, err := h.roots.build(d)
	if err == nil && len(volumes) == 0 {
		h.trees[key] = t
	}
	return t, err
}
