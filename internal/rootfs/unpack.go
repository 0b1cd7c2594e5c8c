package rootfs

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds limits what one tree may become.
type Bounds struct {
	Entries int64
	Size    cove.Bytes
}

// DefaultBounds are those of every import.
var DefaultBounds = Bounds{Entries: 400_000, Size: 20 * cove.GiB}

// Names and links within a tree have bounds of their own.
const (
	mostName = 4096
	mostHops = 40
)

// Unpacker puts what tars hold into a tree, one over the other. It is for one
// goroutine.
type Unpacker struct {
	root   *os.Root
	bounds Bounds

	// Map, if set, says where an entry goes; "" leaves it out.
	Map func(name string) string
	// Tell, if set, is called with the bytes that were written so far.
	Tell func(written cove.Bytes)

	entries int64
	size    cove.Bytes
	left    int64 // entries that are nothing for a tree
	made    map[string]struct{}
	places  map[string]string // what directories are without links
}

// NewUnpacker returns an Unpacker for a tree. It writes nowhere else.
func NewUnpacker(root *os.Root, b Bounds) *Unpacker {
	return &Unpacker{root: root, bounds: b, made: map[string]struct{}{}, places: map[string]string{}}
}

// LeftOut returns how many devices, sockets and the like were left out.
func (u *Unpacker) LeftOut() int64 { return u.left }

// Layer unpacks a tar over what is there. Names that begin with .wh. take away
// what earlier layers have, as in images. Names that lead out of the tree are an
// error; links may say anything, since they are followed within the tree only.
// Nobody's rights are taken over: a file can be read by all, written by nobody
// but its owner, and run by all if anybody may, as who they are.
func (u *Unpacker) Layer(ctx context.Context, r io.Reader) error {
	u.made = map[string]struct{}{}
	in := tar.NewReader(r)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damaged(err)
		}
		if err := u.add(h, in); err != nil {
			return err
		}
	}
}

// damaged is the error of a tar that cannot be read on.
func damaged(err error) error {
	if _, ours := errors.AsType[*cove.Error](err); ours || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return cove.Wrap(cove.Invalid, err, "the archive is damaged or cut off").Remedy("make it again, and compare its checksum")
}

// add unpacks one entry.
func (u *Unpacker) add(h *tar.Header, in io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if err := u.count(); err != nil {
		return err
	}
	name, err := u.place(h.Name)
	if err != nil || name == "" {
		return err
	}
	dir, base := path.Split(name)
	if gone, ok := strings.CutPrefix(base, ".wh."); ok {
		return u.hide(path.Clean(dir), gone)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.dir(name)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return u.file(name, h.FileInfo().Mode(), h.ModTime, h.Size, in)
	case tar.TypeSymlink:
		return u.symlink(name, h.Linkname)
	case tar.TypeLink:
		return u.link(name, h.Linkname)
	default:
		u.left++
		return nil
	}
}

func (u *Unpacker) count() error {
	if u.entries++; u.entries > u.bounds.Entries {
		return cove.Errorf(cove.Exhausted, "it has more than %d files", u.bounds.Entries).Remedy("leave some out")
	}
	return nil
}

// place cleans a name; "" means the top or nothing.
func (u *Unpacker) place(name string) (string, error) {
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", cove.Errorf(cove.Invalid, "the archive has the name %.80q, which leads out of it", name)
		}
	}
	if len(name) > mostName || strings.ContainsRune(name, 0) {
		return "", cove.Errorf(cove.Invalid, "the archive has a name that is no name: %.80q", name)
	}
	if u.Map != nil && clean != "" {
		clean = u.Map(clean)
	}
	return clean, nil
}

// spot returns where a name is once all links on its way are followed, makes the
// directories above it, and remembers that this layer made it.
func (u *Unpacker) spot(name string) (string, error) {
	dir, base := path.Split(name)
	parent, err := u.resolve(path.Clean(dir))
	if err != nil {
		return "", err
	}
	at := path.Join(parent, base)
	for p := at; p != "."; p = path.Dir(p) {
		if _, ok := u.made[p]; ok {
			break
		}
		u.made[p] = struct{}{}
	}
	return at, nil
}

// resolve follows links as if the tree were the root of everything, and makes
// directories that are missing.
func (u *Unpacker) resolve(dir string) (string, error) {
	if at, ok := u.places[dir]; ok {
		return at, nil
	}
	at, hops, rest := ".", 0, strings.Split(dir, "/")
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		info, err := u.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := u.root.Mkdir(next, 0o755); err != nil {
				return "", unusable(next, err)
			}
			at = next
		case err != nil:
			return "", unusable(next, err)
		case info.IsDir():
			at = next
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := u.root.Readlink(next)
			if hops++; err != nil || hops > mostHops {
				return "", cove.Wrap(cove.Invalid, err, "the archive has links that lead in a circle, at %.80q", next)
			}
			if path.IsAbs(to) {
				at = "."
			}
			rest = append(strings.Split(to, "/"), rest...)
		default:
			return "", cove.Errorf(cove.Invalid, "the archive has something below %.80q, which is a file", next)
		}
	}
	u.places[dir] = at
	return at, nil
}

// unusable tells names that no file system takes from a file system that fails.
func unusable(name string, err error) error {
	if isNameError(err) {
		return cove.Wrap(cove.Invalid, err, "the archive has a name that no file can have: %.80q", name)
	}
	return err
}

// free makes sure that nothing is at a place.
func (u *Unpacker) free(at string) error {
	info, err := u.root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unusable(at, err)
	}
	if info.IsDir() || info.Mode()&fs.ModeSymlink != 0 {
		clear(u.places)
	}
	return u.root.RemoveAll(at)
}

func (u *Unpacker) dir(name string) error {
	at, err := u.spot(name)
	if err != nil {
		return err
	}
	if info, err := u.root.Lstat(at); err == nil && info.IsDir() {
		return nil
	}
	if err := u.free(at); err != nil {
		return err
	}
	if err := u.root.Mkdir(at, 0o755); err != nil {
		return unusable(at, err)
	}
	return u.root.Chmod(at, 0o755)
}

func (u *Unpacker) file(name string, mode fs.FileMode, changed time.Time, size int64, in io.Reader) error {
	if u.size += cove.Bytes(size); size < 0 || u.size > u.bounds.Size {
		return cove.Errorf(cove.Exhausted, "it has more than %s in its files", u.bounds.Size).Remedy("leave some out")
	}
	at, err := u.spot(name)
	if err != nil {
		return err
	}
	if err := u.free(at); err != nil {
		return err
	}
	// It is new, so that nothing is followed.
	f, err := u.root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return unusable(at, err)
	}
	_, err = io.CopyN(f, in, size)
	if err != nil {
		return errors.Join(damaged(err), f.Close())
	}
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	err = errors.Join(f.Chmod(perm), f.Close())
	if err == nil && changed.Unix() > 0 {
		err = u.root.Chtimes(at, changed, changed) // compiled Python names its source's
	}
	if u.Tell != nil {
		u.Tell(u.size)
	}
	return err
}

func (u *Unpacker) symlink(name, to string) error {
	if to == "" || len(to) >= mostName || strings.ContainsRune(to, 0) {
		return cove.Errorf(cove.Invalid, "the archive has a link that leads nowhere: %.80q", name)
	}
	at, err := u.spot(name)
	if err != nil {
		return err
	}
	if err := u.free(at); err != nil {
		return err
	}
	clear(u.places)
	return unusable(at, u.root.Symlink(to, at))
}

// link gives what is there a second name.
func (u *Unpacker) link(name, to string) error {
	from, err := u.place(to)
	if err != nil {
		return err
	}
	parent, err := u.resolve(path.Dir(from))
	if err != nil {
		return err
	}
	from = path.Join(parent, path.Base(from))
	at, err := u.spot(name)
	if err != nil || at == from {
		return err
	}
	info, err := u.root.Lstat(from)
	switch {
	case err == nil && info.Mode().IsRegular():
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		to, err := u.root.Readlink(from)
		if err != nil {
			return err
		}
		return u.symlink(name, to)
	default:
		return cove.Wrap(cove.Invalid, err, "the archive has a second name %.80q for a file that it has not", name)
	}
	if err := u.free(at); err != nil {
		return err
	}
	return unusable(at, u.root.Link(from, at))
}

// hide takes away what earlier layers have: one thing, or all that is in a
// directory.
func (u *Unpacker) hide(dir, gone string) error {
	parent, err := u.resolve(dir)
	if err != nil {
		return err
	}
	clear(u.places)
	if gone == ".wh..opq" {
		return u.hideBelow(parent)
	}
	if gone == "" || gone == "." || gone == ".." {
		return cove.Errorf(cove.Invalid, "the archive takes away something without a name")
	}
	return u.hideOne(path.Join(parent, gone))
}

// hideOne removes what this layer did not make itself.
func (u *Unpacker) hideOne(at string) error {
	if _, ours := u.made[at]; ours {
		return u.hideBelow(at)
	}
	return unusable(at, u.root.RemoveAll(at))
}

func (u *Unpacker) hideBelow(at string) error {
	info, err := u.root.Lstat(at)
	if err != nil || !info.IsDir() {
		return nil //nolint:nilerr // there is nothing below it
	}
	entries, err := fs.ReadDir(u.root.FS(), at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := u.hideOne(path.Join(at, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
