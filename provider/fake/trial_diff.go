package fake

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// cloner copies a tree with modes, times and hard links.
type cloner struct {
	root  *os.Root
	links map[inode]string // where a file with many names is already
}

func (c *cloner) clone(dst, src string) error {
	fi, err := c.root.Lstat(src)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return c.cloneDir(dst, src, fi)
	}
	id, names := inodeOf(fi)
	if names > 1 {
		if first, ok := c.links[id]; ok {
			return c.root.Link(first, dst)
		}
		c.links[id] = dst
	}
	_, err = copyTree(c.root, dst, c.root, src)
	return err
}

func (c *cloner) cloneDir(dst, src string, fi fs.FileInfo) error {
	if err := c.root.Mkdir(dst, 0o700); err != nil {
		return err
	}
	list, err := namesIn(c.root, src)
	if err != nil {
		return err
	}
	for name := range list {
		if err := c.clone(path.Join(dst, name), path.Join(src, name)); err != nil {
			return err
		}
	}
	return errors.Join(c.root.Chmod(dst, fi.Mode().Perm()), c.root.Chtimes(dst, fi.ModTime(), fi.ModTime()))
}

// namesIn describes what a directory holds; what is missing or no directory
// holds nothing.
func namesIn(root *os.Root, dir string) (map[string]fs.FileInfo, error) {
	fi, err := root.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !fi.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	list, err := f.Readdir(-1)
	found := make(map[string]fs.FileInfo, len(list))
	for _, e := range list {
		found[e.Name()] = e
	}
	return found, err
}

// differ finds what changed between the workspace as it was and as it is.
type differ struct {
	t    *tree
	box  *os.Root
	list []cove.FileChange
}

// compare looks at one directory and goes down.
func (d *differ) compare(rel string) error {
	old, err := namesIn(d.box, path.Join(belowDir, rel))
	if err != nil {
		return err
	}
	now, err := namesIn(d.box, path.Join(workDir, rel))
	if err != nil {
		return err
	}
	all := maps.Clone(old)
	if all == nil {
		all = map[string]fs.FileInfo{}
	}
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := d.one(path.Join(rel, name), old[name], now[name]); err != nil {
			return err
		}
	}
	return nil
}

// one tells what happened to a name; nil is what is not there.
func (d *differ) one(rel string, old, now fs.FileInfo) error {
	c := cove.FileChange{Path: path.Join(cove.WorkspacePath, rel)}
	switch {
	case old == nil:
		c.Kind = cove.Created
	case now == nil:
		c.Kind = cove.Removed
	default:
		differs, err := d.differs(rel, old, now)
		if err != nil {
			return err
		}
		if differs {
			c.Kind = cove.Modified
		}
	}
	if now != nil {
		info := d.t.info(d.t.at(c.Path), now)
		c.Info = &info
	}
	if c.Kind != "" {
		d.list = append(d.list, c)
	}
	if old != nil && old.IsDir() || now != nil && now.IsDir() {
		return d.compare(rel)
	}
	return nil
}

func (d *differ) differs(rel string, old, now fs.FileInfo) (bool, error) {
	was, is := path.Join(belowDir, rel), path.Join(workDir, rel)
	switch {
	case old.Mode() != now.Mode():
		return true, nil
	case now.Mode()&fs.ModeSymlink != 0:
		a, err := d.box.Readlink(was)
		if err != nil {
			return false, err
		}
		b, err := d.box.Readlink(is)
		return a != b, err
	case !now.Mode().IsRegular():
		return false, nil
	case old.Size() != now.Size() || !old.ModTime().Equal(now.ModTime()):
		return true, nil
	}
	return d.contents(was, is)
}

// contents reports whether two files of one size hold different bytes.
func (d *differ) contents(one, two string) (bool, error) {
	a, err := d.box.Open(one)
	if err != nil {
		return false, err
	}
	defer func() { _ = a.Close() }()
	b, err := d.box.Open(two)
	if err != nil {
		return false, err
	}
	defer func() { _ = b.Close() }()
	left, right := make([]byte, chunkSize), make([]byte, chunkSize)
	for {
		n, err := io.ReadFull(a, left)
		m, other := io.ReadFull(b, right)
		if n != m || !bytes.Equal(left[:n], right[:m]) {
			return true, nil
		}
		if err != nil || other != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			return false, err
		}
	}
}
