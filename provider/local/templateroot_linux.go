package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// Bounds of what a template adds to a root: each is a mount that every sandbox
// has, and a plan is sent in one packet.
const (
	mostShown = 128
	mostDepth = 6
)

// ownPlaces are those of a sandbox that no template can have.
var ownPlaces = []string{"dev", "mnt", "proc", "run", "sys", "tmp", strings.TrimPrefix(cove.WorkspacePath, "/")}

// ownSettings are names in a root that are the same in every sandbox.
var ownSettings = []string{"/etc/group", "/etc/hostname", "/etc/hosts", "/etc/mtab", "/etc/nsswitch.conf", "/etc/passwd", "/etc/resolv.conf", cove.HomePath}

// brokenTree says why nothing can be made from a template's directory.
func brokenTree(err error) error {
	return cove.Wrap(cove.Unavailable, err, "the files of the template cannot be shown: %s", err).Remedy("build it again with cove template build")
}

var errCrowded = errors.New("there is too much beside /usr")

// addLayer puts the files of a directory over those of a root.
func addLayer(r *fence.Root, tree string) error {
	l := &layering{root: r, left: mostShown}
	if err := l.add(tree, "/", 0); err != nil {
		return brokenTree(err)
	}
	return nil
}

// layering is a layer on its way into a root.
type layering struct {
	root *fence.Root
	left int // how much more may be shown
}

// add puts what is in a directory of the layer over what is at a path of the root.
func (l *layering) add(dir, at string, depth int) error {
	list, err := entries(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		path := filepath.Join(at, e.Name())
		if depth == 0 && slices.Contains(ownPlaces, e.Name()) || slices.Contains(ownSettings, path) {
			continue
		}
		if err := l.one(filepath.Join(dir, e.Name()), path, e, depth); err != nil {
			return err
		}
	}
	return nil
}

func (l *layering) one(source, path string, e os.DirEntry, depth int) error {
	if e.IsDir() && hasDir(l.root, path) {
		if depth == mostDepth {
			return errCrowded
		}
		return l.add(source, path, depth+1)
	}
	if l.left--; l.left < 0 {
		return errCrowded
	}
	at := slices.IndexFunc(l.root.Binds, func(b fence.Bind) bool { return b.Path == path })
	switch {
	case at >= 0 && l.root.Binds[at].Dir && e.IsDir():
		b := &l.root.Binds[at]
		b.Over = append([]string{source}, b.Over...)
		return nil
	case at >= 0 && l.root.Binds[at].Dir,
		e.IsDir() && slices.ContainsFunc(l.root.Links, func(k fence.Link) bool { return k.Path == path }):
		// It would hide what the host has there.
		return fmt.Errorf("%s is something else on this host than in the template", path)
	}
	l.root.Binds = slices.DeleteFunc(l.root.Binds, func(b fence.Bind) bool { return b.Path == path })
	l.root.Files = slices.DeleteFunc(l.root.Files, func(f fence.File) bool { return f.Path == path })
	l.root.Links = slices.DeleteFunc(l.root.Links, func(k fence.Link) bool { return k.Path == path })
	return show(l.root, source, path, e)
}

// show shows one file of a template at a path where nothing is. What is neither a
// file nor a directory nor a link is left out.
func show(r *fence.Root, source, path string, e os.DirEntry) error {
	switch kind := e.Type(); {
	case kind&os.ModeSymlink != 0:
		to, err := os.Readlink(source)
		if err != nil {
			return err
		}
		r.Links = append(r.Links, fence.Link{Path: path, To: to})
	case kind.IsDir() || kind.IsRegular():
		r.Binds = append(r.Binds, fence.Bind{Source: source, Path: path, Dir: kind.IsDir()})
	}
	return nil
}

// treeRoot describes a root that is a directory of a template, without a stage. Of
// the host nothing is shown but its devices.
func treeRoot(tree string) (fence.Root, error) {
	r := bareRoot("")
	list, err := entries(tree)
	if err == nil && len(list) > mostShown {
		err = errCrowded
	}
	for _, e := range list {
		if err != nil {
			break
		}
		if !slices.Contains(ownPlaces, e.Name()) {
			err = addTop(&r, filepath.Join(tree, e.Name()), "/"+e.Name(), e)
		}
	}
	if err != nil {
		return r, brokenTree(err)
	}
	return r, nil
}

// addTop shows what is at the top of a tree. What is empty stays a place that
// volumes can be put into.
func addTop(r *fence.Root, source, path string, e os.DirEntry) error {
	if !hasDir(r, path) {
		return show(r, source, path, e)
	}
	if !e.IsDir() {
		return nil // our own stays: who reads it expects a directory
	}
	if inside, err := entries(source); err != nil || len(inside) == 0 {
		return err
	}
	r.Binds = append(r.Binds, fence.Bind{Source: source, Path: path, Dir: true, Keep: hasBelow(r, path)})
	return nil
}

// hasBelow reports whether a root has something of its own in a directory.
func hasBelow(r *fence.Root, path string) bool {
	below := func(name string) bool { return strings.HasPrefix(name, path+"/") }
	return slices.ContainsFunc(r.Dirs, func(d fence.Dir) bool { return below(d.Path) }) ||
		slices.ContainsFunc(r.Links, func(l fence.Link) bool { return below(l.Path) }) ||
		slices.ContainsFunc(r.Files, func(f fence.File) bool { return below(f.Path) })
}

// entries is what is in a directory, as far as somebody could look at all of it.
func entries(dir string) ([]os.DirEntry, error) {
	f, err := os.Open(dir) //nolint:gosec // of a template, which the operator has
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	list, err := f.ReadDir(4 * mostShown)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(list, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}
