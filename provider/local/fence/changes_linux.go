package fence

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// ChangeKind is how a file differs from the layers below.
type ChangeKind byte

// The kinds of changes.
const (
	Created ChangeKind = 1 + iota
	Modified
	Removed
)

// Change is one file that differs. All but Kind and Path are zero for one that
// was removed.
type Change struct {
	Kind     ChangeKind
	Path     string // from the top of the workspace
	Mode     uint32
	Size     int64
	Modified int64 // nanoseconds since 1970
	Link     string
}

func (c *Change) encode() []byte {
	var e protocol.Encoder
	e.Uint(uint64(c.Kind))
	e.Text(c.Path)
	e.Uint(uint64(c.Mode))
	e.Int(c.Size)
	e.Int(c.Modified)
	e.Text(c.Link)
	return e.Bytes()
}

// ReadChange reads the next of what a JobChanges wrote; [io.EOF] is the end of
// it, which is proper only if the job says so, too.
func ReadChange(r *bufio.Reader) (c Change, err error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return c, err
	}
	if n > maxEntry {
		return c, protocol.ErrMalformed
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return c, io.ErrUnexpectedEOF
	}
	d := protocol.NewDecoder(b)
	c.Kind, c.Path, c.Mode = ChangeKind(d.UpTo(uint64(Removed))), d.Text(longest), uint32(d.UpTo(1<<32-1)) //nolint:gosec // bounded
	c.Size, c.Modified, c.Link = d.Int(), d.Int(), d.Text(maxPath)
	return c, d.End()
}

// differ compares an upper layer with what is below.
type differ struct {
	t            Tools
	upper, lower int
	told         func(*Change) error
	one, two     []byte // for contents, once there are some to compare
}

// Changes tells how a layer differs, sorted by path, as a JobChanges writes it down,
// in this process, which must have the rights of who built the sandbox.
func (t Tools) Changes(j Job, files []int, told func(*Change) error) error {
	if err := j.check(1 + len(files)); err != nil {
		return err
	}
	upper, err := openDir(files[0], j.Name)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(upper) }()
	base, err := t.view(&j, files[1:])
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(base) }()
	d := &differ{t: t, upper: upper, lower: base, told: told}
	return d.walk()
}

// writeChanges does so for somebody else.
func (t Tools) writeChanges(j Job, out int, files []int) error {
	w := bufio.NewWriter(descriptor(out))
	err := t.Changes(j, files, func(c *Change) error {
		b := c.encode()
		if _, err := w.Write(binary.AppendUvarint(nil, uint64(len(b)))); err != nil {
			return err
		}
		_, err := w.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	return w.Flush()
}

// before writes down what a file of the lower layers holds.
func (t Tools) before(j *Job, out int, lower []int) error {
	base, err := t.view(j, lower)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(base) }()
	fd, err := below(base, j.Path, unix.O_RDONLY|unix.O_NONBLOCK)
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return unix.ENOENT
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO): // a link, a socket
		return unix.EINVAL
	case err != nil:
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	switch {
	case kindOf(&st) != unix.S_IFREG:
		return unix.EINVAL
	case st.Size > j.Bounds.Size:
		return unix.EFBIG
	}
	_, err = io.Copy(descriptor(out), io.LimitReader(descriptor(fd), st.Size))
	return err
}

// step is something to do in the order of paths.
type step struct {
	path string
	// below says that it is about what is in a directory: in both layers, or in
	// the upper or the lower one alone.
	below      bool
	up, low    bool // there is a directory
	hide       bool // what is below it counts for nothing, or all of it was removed
	now, was   unix.Stat_t
	here, once bool // it is in the upper layer, and was in the lower ones
}

// key orders steps as paths are: what is in a directory comes after those whose
// names go on with a smaller byte than the slash.
func (s *step) key() string {
	if s.below {
		return s.path + "/"
	}
	return s.path
}

// walk does the steps one after the other; those that one adds are below it.
func (d *differ) walk() error {
	left := []step{{path: ".", below: true, up: true, low: true}}
	for len(left) > 0 {
		s := left[0]
		left = left[1:]
		if !s.below {
			if err := d.file(&s); err != nil {
				return err
			}
			continue
		}
		more, err := d.directory(&s)
		if err != nil {
			return err
		}
		left = append(more, left...)
	}
	return nil
}

// list returns the names in a directory of a layer. What went is empty.
func list(root int, dir string) (fd int, all []string, err error) {
	fd, err = below(root, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return -1, nil, nil
	}
	if err != nil {
		return -1, nil, err
	}
	if all, err = names(fd); err != nil {
		_ = unix.Close(fd)
		return -1, nil, err
	}
	return fd, all, nil
}

// directory returns the steps of what is in a directory.
func (d *differ) directory(s *step) (steps []step, err error) {
	up, low := -1, -1
	var above, under []string
	defer func() {
		for _, fd := range []int{up, low} {
			if fd >= 0 {
				_ = unix.Close(fd)
			}
		}
	}()
	if s.up {
		if up, above, err = list(d.upper, s.path); err != nil {
			return nil, err
		}
	}
	if s.low {
		if low, under, err = list(d.lower, s.path); err != nil {
			return nil, err
		}
	}
	for _, n := range above {
		more, err := d.compare(path.Join(s.path, n), n, up, low)
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	if s.hide {
		more, err := hidden(s.path, low, under, above)
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	slices.SortFunc(steps, func(a, b step) int { return bytes.Compare([]byte(a.key()), []byte(b.key())) })
	return steps, nil
}

// hidden is what to do about the names of a lower directory that the upper one
// hides, and does not have.
func hidden(dir string, low int, under, above []string) (steps []step, err error) {
	for _, n := range under {
		if _, found := slices.BinarySearch(above, n); found {
			continue
		}
		was, ok, err := look(low, n)
		if err != nil {
			return nil, err
		}
		if ok {
			steps = append(steps, removed(path.Join(dir, n), &was)...)
		}
	}
	return steps, nil
}

// removed is what to do about a name that is gone.
func removed(name string, was *unix.Stat_t) []step {
	steps := []step{{path: name, once: true, was: *was}}
	if isDir(was) {
		steps = append(steps, step{path: name, below: true, low: true, hide: true})
	}
	return steps
}

// compare is what to do about a name of the upper layer.
func (d *differ) compare(name, n string, up, low int) ([]step, error) {
	now, ok, err := look(up, n)
	if err != nil || !ok {
		return nil, err
	}
	var was unix.Stat_t
	once := false
	if low >= 0 {
		if was, once, err = look(low, n); err != nil {
			return nil, err
		}
	}
	if isWhiteout(&now) {
		if !once {
			return nil, nil
		}
		return removed(name, &was), nil
	}
	steps := []step{{path: name, here: true, once: once, now: now, was: was}}
	if !isDir(&now) && !(once && isDir(&was)) {
		return steps, nil
	}
	in := step{path: name, below: true, up: isDir(&now), low: once && isDir(&was), hide: !isDir(&now)}
	if in.up && in.low {
		if in.hide, err = d.t.isOpaque(up, n); err != nil && !errors.Is(err, unix.ENOENT) {
			return nil, err
		}
	}
	return append(steps, in), nil
}

// file tells how one file differs, if it does.
func (d *differ) file(s *step) error {
	if len(s.path) > longest {
		return tooLong("describe", s.path)
	}
	c := Change{Kind: Created, Path: s.path}
	switch {
	case !s.here:
		c.Kind = Removed
		return d.told(&c)
	case s.once:
		differs, err := d.differs(s)
		if err != nil || !differs {
			return err
		}
		c.Kind = Modified
	}
	c.Mode, c.Size, c.Modified = s.now.Mode, s.now.Size, s.now.Mtim.Nano()
	if kindOf(&s.now) == unix.S_IFLNK {
		c.Link, _ = d.link(d.upper, s.path) // one that went points nowhere
	}
	return d.told(&c)
}

// differs reports whether a file that is in both is another one now.
func (d *differ) differs(s *step) (bool, error) {
	switch {
	case s.now.Mode != s.was.Mode:
		return true, nil
	case isDir(&s.now):
		return false, nil
	case kindOf(&s.now) == unix.S_IFLNK:
		one, err := d.link(d.upper, s.path)
		if err != nil {
			return true, nil //nolint:nilerr // it changes this very moment
		}
		two, err := d.link(d.lower, s.path)
		return one != two, err
	case kindOf(&s.now) != unix.S_IFREG:
		return false, nil
	case s.now.Size != s.was.Size || s.now.Mtim != s.was.Mtim:
		return true, nil
	}
	return d.contents(s.path)
}

func (d *differ) link(root int, name string) (string, error) {
	fd, err := below(root, name, unix.O_PATH)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	to := make([]byte, maxPath)
	n, err := unix.Readlinkat(fd, "", to)
	if err != nil {
		return "", os.NewSyscallError("readlinkat", err)
	}
	return string(to[:n]), nil
}

// contents reports whether two files of one size hold different bytes.
func (d *differ) contents(name string) (bool, error) {
	one, err := below(d.upper, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return true, nil // it changes this very moment
	}
	defer func() { _ = unix.Close(one) }()
	two, err := below(d.lower, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(two) }()
	if d.one == nil {
		d.one, d.two = make([]byte, piece), make([]byte, piece)
	}
	for {
		n, err := io.ReadFull(descriptor(one), d.one)
		m, other := io.ReadFull(descriptor(two), d.two)
		if n != m || !bytes.Equal(d.one[:n], d.two[:m]) {
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
