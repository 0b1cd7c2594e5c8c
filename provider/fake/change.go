package fake

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
)

// The methods of this file change the tree. They are called within do, take
// absolute names and give the errors that a kernel would.

// writable finds a place that may be changed. The directory above it exists.
func (t *tree) writable(name string, follow bool) (place, error) {
	p, err := t.walk(name, follow)
	switch {
	case err != nil:
		return p, err
	case p.on == nil:
		return p, syscall.EACCES
	case p.on.readOnly:
		return p, syscall.EROFS
	}
	return p, nil
}

func (t *tree) mkdir(name string) error {
	p, err := t.walk(name, true)
	if err != nil {
		return err
	}
	if _, err := t.lstat(p); err == nil {
		return syscall.EEXIST
	}
	return t.makeDir(p)
}

// makeDir makes a directory at a place where nothing is.
func (t *tree) makeDir(p place) error {
	switch {
	case p.on == nil:
		return syscall.EACCES
	case p.on.readOnly:
		return syscall.EROFS
	}
	if err := p.on.book.take(0, 1); err != nil {
		return err
	}
	if err := p.on.root.Mkdir(p.name, 0o755); err != nil {
		p.on.book.give(0, 1)
		return err
	}
	t.notify(cove.Created, p.abs)
	return nil
}

// mkdirAll makes a directory and the missing ones above it.
func (t *tree) mkdirAll(name string) error {
	p, rest, err := t.descend(name, true)
	if err == nil {
		fi, err := t.lstat(p)
		if err == nil && !fi.IsDir() {
			err = syscall.EEXIST
		}
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := t.makeDir(p); err != nil {
		return err
	}
	for _, part := range rest {
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			return syscall.ENOENT // nobody needs the dots of what is being made
		case len(part) > maxName:
			return syscall.ENAMETOOLONG
		}
		p = t.at(path.Join(p.abs, part))
		if err := t.makeDir(p); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes one file, link or empty directory.
func (t *tree) remove(name string) error {
	p, err := t.walk(name, false)
	if err != nil {
		return err
	}
	fi, err := t.lstat(p)
	if err != nil {
		return err
	}
	if t.isMount(p.abs) {
		return syscall.EBUSY
	}
	if p, err = t.writable(name, false); err != nil {
		return err
	}
	return t.drop(p, fi)
}

// drop deletes what is at p and settles the books.
func (t *tree) drop(p place, fi fs.FileInfo) error {
	if err := p.on.root.Remove(p.name); err != nil {
		return err
	}
	t.settle(p.on.book, fi)
	t.notify(cove.Removed, p.abs)
	return nil
}

// removeAll deletes a file or a whole directory.
func (t *tree) removeAll(name string) error {
	p, err := t.walk(name, false)
	if err != nil {
		return err
	}
	fi, err := t.lstat(p)
	if err != nil {
		return err
	}
	if t.isMount(p.abs) {
		return syscall.EBUSY
	}
	if p, err = t.writable(name, false); err != nil {
		return err
	}
	return t.dropAll(p, fi)
}

func (t *tree) dropAll(p place, fi fs.FileInfo) error {
	if fi.IsDir() {
		list, err := t.entries(p)
		if err != nil {
			return err
		}
		for _, e := range list {
			if err := t.dropAll(t.at(path.Join(p.abs, e.Name())), e); err != nil {
				return err
			}
		}
	}
	return t.drop(p, fi)
}

// rename moves within one mount of the host, as rename(2) does.
func (t *tree) rename(from, to string) error {
	src, err := t.writable(from, false)
	if err != nil {
		return err
	}
	if _, err := t.lstat(src); err != nil {
		return err
	}
	dst, err := t.writable(to, false)
	switch {
	case err != nil:
		return err
	case t.isMount(src.abs) || t.isMount(dst.abs):
		return syscall.EBUSY
	case src.abs == dst.abs:
		return nil
	case within(src.abs, dst.abs):
		return syscall.EINVAL
	case src.on.root != dst.on.root:
		return syscall.EXDEV
	}
	return t.moved(src, dst)
}

func (t *tree) moved(src, dst place) error {
	bytes, files, err := t.measure(src)
	if err != nil {
		return err
	}
	old, missing := t.lstat(dst)
	if src.on.book != dst.on.book {
		if err := dst.on.book.take(bytes, files); err != nil {
			return err
		}
	}
	if err := src.on.root.Rename(src.name, dst.name); err != nil {
		if src.on.book != dst.on.book {
			dst.on.book.give(bytes, files)
		}
		return err
	}
	if src.on.book != dst.on.book {
		src.on.book.give(bytes, files)
	}
	if missing == nil {
		t.settle(dst.on.book, old)
	}
	t.tell(cove.Change{Kind: cove.Removed, Path: src.abs, Moved: true})
	t.notify(cove.Created, dst.abs)
	return nil
}

// tag gives a file attributes. All together keep to the bounds of one call.
func (t *tree) tag(name string, meta map[string]string) error {
	p, err := t.existing(name)
	if err != nil {
		return err
	}
	fi, err := t.lstat(p)
	if err != nil {
		return err
	}
	id, _ := inodeOf(fi)
	all := maps.Clone(t.meta[id])
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, meta)
	if cove.CheckMeta(all) != nil {
		return syscall.ENOSPC
	}
	t.meta[id] = all
	t.attributes(p)
	return nil
}

// settle gives back what a removed file took. One with another name keeps its
// bytes; so does one that a program still has open, until it closes it.
func (t *tree) settle(book *ledger, fi fs.FileInfo) {
	id, names := inodeOf(fi)
	if names <= 1 || fi.IsDir() {
		delete(t.meta, id)
	}
	switch {
	case names > 1 && !fi.IsDir():
		book.give(0, 1)
	case t.open[id] > 0 && fi.Mode().IsRegular():
		book.give(0, 1)
		t.orphans[id] = book
	default:
		book.give(weight(fi), 1)
	}
}

// symlink makes a link; its target is only text here and is resolved by walk.
func (t *tree) symlink(target, name string) error {
	p, err := t.fresh(name)
	if err != nil {
		return err
	}
	if err := p.on.root.Symlink(target, p.name); err != nil {
		p.on.book.give(0, 1)
		return err
	}
	t.notify(cove.Created, p.abs)
	return nil
}

// link gives a file a second name on the same mount.
func (t *tree) link(from, name string) error {
	fi, src, err := t.stat(from, false)
	switch {
	case err != nil:
		return err
	case !fi.Mode().IsRegular():
		return syscall.EPERM
	}
	p, err := t.fresh(name)
	if err != nil {
		return err
	}
	err = syscall.EXDEV
	if src.on == p.on {
		err = p.on.root.Link(src.name, p.name)
	}
	if err != nil {
		p.on.book.give(0, 1)
		return err
	}
	t.notify(cove.Created, p.abs)
	return nil
}

// fresh finds a place where nothing is, and books one file for it.
func (t *tree) fresh(name string) (place, error) {
	p, err := t.writable(name, false)
	if err != nil {
		return p, err
	}
	if _, err := t.lstat(p); err == nil {
		return p, syscall.EEXIST
	}
	return p, p.on.book.take(0, 1)
}

func (t *tree) chmod(name string, mode fs.FileMode) error {
	p, err := t.existing(name)
	if err != nil {
		return err
	}
	mode = mode.Perm()
	if fi, err := t.lstat(p); err == nil && fi.IsDir() {
		mode |= 0o700 // or nobody could remove what is in it
	}
	t.attributes(p)
	return p.on.root.Chmod(p.name, mode)
}

func (t *tree) chtimes(name string, at time.Time) error {
	p, err := t.existing(name)
	if err != nil {
		return err
	}
	t.attributes(p)
	return p.on.root.Chtimes(p.name, at, at)
}

// attributes tells the watchers that a file's attributes change.
func (t *tree) attributes(p place) {
	t.tell(cove.Change{Kind: cove.Modified, Path: p.abs, Attributes: true})
}

func (t *tree) existing(name string) (place, error) {
	p, err := t.walk(name, true)
	if err != nil {
		return p, err
	}
	if _, err := t.lstat(p); err != nil {
		return p, err
	}
	return t.writable(name, true)
}
