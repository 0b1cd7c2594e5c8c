//go:build linux

package agent

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// operation is what a request about files does. It answers itself where it has
// streams, and is answered with its result where it has none.
type operation struct {
	flows []protocol.Flow
	run   func(s *server, m *protocol.Message, f protocol.File)
}

func operations(kind protocol.Kind) (operation, bool) {
	in, out := protocol.Readable, protocol.Writable
	switch kind { //nolint:exhaustive // the others are not about files
	case protocol.KindStat:
		return operation{nil, (*server).stat}, true
	case protocol.KindRead:
		return operation{[]protocol.Flow{out}, (*server).read}, true
	case protocol.KindWrite:
		return operation{[]protocol.Flow{in}, (*server).write}, true
	case protocol.KindList:
		return operation{[]protocol.Flow{out}, (*server).list}, true
	case protocol.KindMkdir:
		return operation{nil, func(s *server, m *protocol.Message, f protocol.File) {
			err := allowed(f.Name, true)
			if err == nil {
				_, err = makeDirs(f.Name)
			}
			s.reply(m.ID, failure(err))
		}}, true
	case protocol.KindMove:
		return operation{nil, func(s *server, m *protocol.Message, f protocol.File) {
			err := cmp.Or(allowed(f.Name, false), allowed(f.To, false))
			if err == nil {
				err = unix.Rename(f.Name, f.To)
			}
			s.reply(m.ID, failure(err))
		}}, true
	case protocol.KindRemove:
		return operation{nil, (*server).remove}, true
	case protocol.KindArchive:
		return operation{[]protocol.Flow{out}, (*server).archive}, true
	case protocol.KindUnpack:
		return operation{[]protocol.Flow{in}, (*server).unpack}, true
	case protocol.KindWatch:
		return operation{[]protocol.Flow{out, in}, (*server).watch}, true
	case protocol.KindDial:
		return operation{nil, (*server).dial}, true
	case protocol.KindKills:
		return operation{nil, (*server).memoryKills}, true
	case protocol.KindUsage:
		return operation{nil, (*server).usage}, true
	}
	return operation{}, false
}

// file runs a request about files.
func (s *server) file(m *protocol.Message) {
	op, known := operations(m.Kind)
	f, err := protocol.DecodeFile(m.Body)
	if err != nil || !known || len(m.Streams) != len(op.flows) {
		s.malformed(m)
		return
	}
	for i, want := range op.flows {
		if m.Streams[i].Flow != want {
			s.malformed(m)
			return
		}
	}
	op.run(s, m, f)
}

// describe turns what the kernel says of a file into what the host is told.
func describe(name string, st *unix.Stat_t) protocol.Info {
	return protocol.Info{Path: name, Size: max(st.Size, 0), Mode: st.Mode, Modified: st.Mtim.Nano()}
}

// inspect describes a file in a directory without following it. name is its path.
func inspect(dir int, base, name string) (protocol.Entry, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return protocol.Entry{}, err
	}
	i := protocol.Entry{Info: describe(name, &st), UID: int64(st.Uid), GID: int64(st.Gid), Attrs: ownAttrs(name, st.Mode)}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		link, ok := linkAt(dir, base)
		if !ok {
			return i, unix.ENOENT // it was replaced while we looked
		}
		i.Link = link
	}
	return i, nil
}

func (s *server) stat(m *protocol.Message, f protocol.File) {
	at, err := resolve(f.Name, false)
	var i protocol.Entry
	if err == nil {
		i, err = inspect(at.dir, at.base, f.Name)
		at.close()
	}
	r := failure(err)
	if err == nil {
		r.Body = i.Encode()
	}
	s.reply(m.ID, r)
}

// openKind opens a file that must be of a kind; its name is its path without links.
// It never waits: a FIFO opens at once, and is not what was asked for.
func openKind(name string, kind uint32) (*os.File, error) {
	at, err := resolve(name, true)
	if err != nil {
		return nil, err
	}
	defer at.close()
	fd, err := unix.Openat(at.dir, at.base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := cmp.Or(ordinary(fd), unix.Fstat(fd, &st)); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	if st.Mode&unix.S_IFMT != kind {
		_ = unix.Close(fd)
		return nil, &failed{protocol.ReasonKind, unix.EINVAL, ""}
	}
	_ = unix.SetNonblock(fd, false)
	return os.NewFile(uintptr(fd), filepath.Join(at.real, at.base)), nil
}

func (s *server) read(m *protocol.Message, f protocol.File) {
	file, err := openKind(f.Name, unix.S_IFREG)
	if err != nil {
		s.reply(m.ID, failure(err))
		return
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(f.Offset, 0); err != nil {
		s.reply(m.ID, failure(err))
		return
	}
	s.reply(m.ID, protocol.Reply{})
	out := m.Streams[0].File("read")
	defer func() { _ = out.Close() }()
	most := f.Length
	if most == 0 {
		most = 1<<63 - 1
	}
	w := protocol.NewRecordWriter(out)
	finish(w, w.Copy(file, most))
}

// finish ends a stream of records, well or not.
func finish(w *protocol.RecordWriter, err error) {
	if err != nil {
		_ = w.Fail(failure(err))
		return
	}
	_ = w.End()
}

func (s *server) remove(m *protocol.Message, f protocol.File) {
	var st unix.Stat_t
	err := cmp.Or(allowed(f.Name, false), unix.Lstat(f.Name, &st)) // RemoveAll is content with what is missing
	if err == nil {
		err = os.RemoveAll(f.Name)
	}
	s.reply(m.ID, failure(err))
}

// makeDirs makes a directory and the missing ones above it, and returns those
// that it made, the topmost first.
func makeDirs(name string) (made []string, err error) {
	err = unix.Mkdir(name, 0o755)
	switch {
	case err == nil:
		return []string{name}, nil
	case err == unix.EEXIST: //nolint:errorlint // what the call returns
		var st unix.Stat_t
		if unix.Stat(name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return nil, nil
		}
		return nil, err
	case err != unix.ENOENT || name == "/": //nolint:errorlint // what the call returns
		return nil, err
	}
	made, err = makeDirs(filepath.Dir(name))
	if err == unix.EEXIST { //nolint:errorlint // what makeDirs returns
		err = unix.ENOTDIR
	}
	if err == nil {
		err = unix.Mkdir(name, 0o755)
	}
	if err != nil {
		unmake(made)
		return nil, err
	}
	return append(made, name), nil
}

// unmake takes back directories that nobody has put anything into.
func unmake(made []string) {
	for _, dir := range slices.Backward(made) {
		_ = unix.Rmdir(dir)
	}
}
