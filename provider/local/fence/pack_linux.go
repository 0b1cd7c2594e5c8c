package fence

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// A tree is written down as
//
//	magic
//	entries, directories before what is in them: a length and the fields of [entry];
//	  after a regular file its pieces: a length, an offset, and so many bytes;
//	  a piece of no length is the last
//	an entry of no length, and how many there were
//
// Holes of files have no piece.
const magic = "cove tree 1\n"

// Bounds of what is written down.
const (
	maxEntry = 1 << 20
	piece    = 256 << 10
)

// entry is one file of a tree.
type entry struct {
	path       string // from the top of the tree, which is "."
	mode       uint32
	size       int64
	seconds    int64 // of the last change
	nanos      int64
	link       string // where a symbolic link points
	same       string // the path of an entry that is the same file
	attributes []attribute
}

func (t *entry) encode() []byte {
	var e protocol.Encoder
	e.Text(t.path)
	e.Uint(uint64(t.mode))
	e.Int(t.size)
	e.Int(t.seconds)
	e.Int(t.nanos)
	e.Text(t.link)
	e.Text(t.same)
	e.Uint(uint64(len(t.attributes)))
	for _, a := range t.attributes {
		e.Text(a.name)
		e.Text(a.value)
	}
	return e.Bytes()
}

func decodeEntry(b []byte) (t entry, err error) {
	d := protocol.NewDecoder(b)
	t.path, t.mode = d.Text(longest), uint32(d.UpTo(1<<32-1)) //nolint:gosec // bounded
	t.size, t.seconds, t.nanos = d.Int(), d.Int(), d.Int()
	t.link, t.same = d.Text(maxPath), d.Text(longest)
	for range d.UpTo(maxEntries) {
		t.attributes = append(t.attributes, attribute{d.Text(maxPath), d.Text(maxAttributes)})
	}
	return t, d.End()
}

// inode tells files apart.
type inode struct{ dev, ino uint64 }

// packer writes a tree down.
type packer struct {
	root  int
	out   *bufio.Writer
	known map[inode]string // files that have more names
	count uint64
	bytes int64
	buf   []byte
}

// pack writes a tree down, whoever changes it meanwhile, and returns how many
// bytes of files there were. What cannot be written down is an error.
func pack(root int, w io.Writer) (int64, error) {
	p := &packer{root: root, out: bufio.NewWriterSize(w, piece), known: map[inode]string{}, buf: make([]byte, piece)}
	if _, err := p.out.WriteString(magic); err != nil {
		return 0, err
	}
	if err := p.one("."); err != nil {
		return p.bytes, err
	}
	for left := []string{"."}; len(left) > 0; {
		dir := left[len(left)-1]
		dirs, err := p.directory(dir)
		if err != nil {
			return p.bytes, err
		}
		left = append(left[:len(left)-1], dirs...)
	}
	p.number(0)
	p.number(p.count)
	return p.bytes, p.out.Flush()
}

// directory writes down what is in a directory, and returns the directories.
func (p *packer) directory(dir string) (dirs []string, err error) {
	fd, err := below(p.root, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil // it went
	}
	if err != nil {
		return nil, err
	}
	list, err := names(fd)
	_ = unix.Close(fd)
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		name := path.Join(dir, n)
		if len(name) > longest {
			return nil, tooLong("write down", name)
		}
		if err := p.one(name); err != nil {
			return nil, err
		}
		if st, ok, err := p.look(name); err == nil && ok && isDir(&st) {
			dirs = append(dirs, name)
		}
	}
	return dirs, nil
}

// look describes a file by its path.
func (p *packer) look(name string) (st unix.Stat_t, ok bool, err error) {
	fd, err := below(p.root, name, unix.O_PATH)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return st, false, nil
	}
	if err != nil {
		return st, false, err
	}
	defer func() { _ = unix.Close(fd) }()
	return st, true, os.NewSyscallError("fstat", unix.Fstat(fd, &st))
}

// one writes an entry down.
func (p *packer) one(name string) error {
	fd, err := below(p.root, name, unix.O_PATH)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil // it went
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	e := entry{path: name, mode: st.Mode, seconds: st.Mtim.Sec, nanos: st.Mtim.Nsec}
	switch kindOf(&st) {
	case unix.S_IFDIR, unix.S_IFREG:
		return p.opened(&e, &st)
	case unix.S_IFLNK:
		n, err := unix.Readlinkat(fd, "", p.buf)
		if err != nil {
			return os.NewSyscallError("readlinkat", err)
		}
		e.link = string(p.buf[:n])
	case unix.S_IFIFO, unix.S_IFSOCK:
	default:
		if !isWhiteout(&st) {
			return &os.PathError{Op: "write down", Path: name, Err: errors.New("it is a device")}
		}
	}
	return p.entry(&e)
}

// opened writes down what must be opened for it.
func (p *packer) opened(e *entry, st *unix.Stat_t) error {
	id := inode{st.Dev, st.Ino} //nolint:unconvert,nolintlint // 32 bits on some machines
	if !isDir(st) && st.Nlink > 1 {
		if e.same = p.known[id]; e.same != "" {
			return p.entry(e)
		}
	}
	fd, err := below(p.root, e.path, unix.O_RDONLY|unix.O_NONBLOCK)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // it went
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if kindOf(&now) != kindOf(st) {
		return nil // another one has its name by now
	}
	if e.attributes, _, err = attributes(fd); err != nil {
		return err
	}
	if isDir(&now) {
		return p.entry(e)
	}
	e.size = now.Size
	if now.Nlink > 1 {
		p.known[inode{now.Dev, now.Ino}] = e.path //nolint:unconvert,nolintlint // 32 bits on some machines
	}
	if err := p.entry(e); err != nil {
		return err
	}
	return p.content(fd, e.size)
}

// content writes the pieces of a file.
func (p *packer) content(fd int, size int64) error {
	for at := int64(0); at < size; {
		data, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // nothing but a hole
		}
		if err != nil {
			return os.NewSyscallError("lseek", err)
		}
		hole, err := unix.Seek(fd, data, unix.SEEK_HOLE)
		if errors.Is(err, unix.ENXIO) {
			break // it shrank
		}
		if err != nil {
			return os.NewSyscallError("lseek", err)
		}
		if at, err = p.extent(fd, data, min(hole, size)); err != nil {
			return err
		}
	}
	p.number(0)
	return nil
}

// extent writes what is between two offsets, and returns how far it came.
func (p *packer) extent(fd int, from, to int64) (int64, error) {
	for from < to {
		n, err := unix.Pread(fd, p.buf[:min(int64(len(p.buf)), to-from)], from)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return from, os.NewSyscallError("pread", err)
		}
		if n == 0 {
			return to, nil // it shrank
		}
		p.number(uint64(n))    //nolint:gosec // a count
		p.number(uint64(from)) //nolint:gosec // an offset
		if _, err := p.out.Write(p.buf[:n]); err != nil {
			return from, err
		}
		from += int64(n)
		p.bytes += int64(n)
	}
	return to, nil
}

func (p *packer) entry(e *entry) error {
	b := e.encode()
	if len(b) > maxEntry {
		return &os.PathError{Op: "write down", Path: e.path, Err: unix.E2BIG}
	}
	p.count++
	p.number(uint64(len(b)))
	_, err := p.out.Write(b)
	return err
}

// number writes one; an error stays in the writer.
func (p *packer) number(n uint64) {
	_, _ = p.out.Write(binary.AppendUvarint(nil, n))
}
