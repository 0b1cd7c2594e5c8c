//go:build linux

package agent

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// maxWatched bounds the directories of one watch.
const maxWatched = 16 << 10

const watchMask = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_DELETE |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK | unix.IN_DONT_FOLLOW

// watcher follows a directory and all below it.
type watcher struct {
	file  *os.File
	fd    int
	out   *protocol.RecordWriter
	paths map[int]string
	last  protocol.Change
	draft uint32 // what the kernel calls the last move of a draft
}

// watch tells the host of changes until it closes the second stream.
func (s *server) watch(m *protocol.Message, f protocol.File) {
	w, err := newWatcher(f.Name)
	if err != nil {
		s.reply(m.ID, failure(err))
		return
	}
	defer func() { _ = w.file.Close() }()
	out, stop := m.Streams[0].File("watch"), m.Streams[1].File("stop")
	defer func() { _, _ = out.Close(), stop.Close() }()
	w.out = protocol.NewRecordWriter(out)
	s.reply(m.ID, protocol.Reply{})
	go func() {
		_, _ = stop.Read(make([]byte, 1))
		_ = w.file.Close()
		_ = out.Close()
	}()
	finish(w.out, w.run())
}

func newWatcher(name string) (*watcher, error) {
	dir, err := openKind(name, unix.S_IFDIR)
	if err != nil {
		return nil, err
	}
	_ = dir.Close()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	w := &watcher{file: os.NewFile(uintptr(fd), "inotify"), fd: fd, paths: map[int]string{}}
	if err := w.add(dir.Name(), nil); err != nil {
		_ = w.file.Close()
		return nil, err
	}
	return w, nil
}

// add watches a directory and those below it. found is called for what is in
// it already; nil means that nobody wants to know.
func (w *watcher) add(dir string, found func(string) error) error {
	if len(w.paths) >= maxWatched {
		return unix.ENOSPC
	}
	wd, err := unix.InotifyAddWatch(w.fd, dir, watchMask)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EACCES):
		if len(w.paths) > 0 {
			return nil // it went, or is closed to the sandbox's user
		}
		return err
	case err != nil:
		return err
	}
	w.paths[wd] = dir
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return nil //nolint:nilerr // it went, or is the kernel's
	}
	file := os.NewFile(uintptr(fd), dir)
	list, err := file.ReadDir(-1)
	_ = file.Close()
	if err != nil {
		return nil //nolint:nilerr // it went
	}
	for _, e := range list {
		full := filepath.Join(dir, e.Name())
		if found != nil {
			if err := found(full); err != nil {
				return err
			}
		}
		if e.IsDir() {
			if err := w.add(full, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// run hands changes on until the file is closed. A host that is slow makes
// this wait; then the kernel's queue overflows, and it says so.
func (w *watcher) run() error {
	buf := make([]byte, 16<<10)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return err
		}
		w.last = protocol.Change{} // a repetition after a while is news
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd := int(int32(binary.NativeEndian.Uint32(b))) //nolint:gosec // as the kernel has it
			mask, cookie, size := binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[8:]), binary.NativeEndian.Uint32(b[12:])
			end := min(unix.SizeofInotifyEvent+int(size), len(b))
			name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:end]), "\x00")
			b = b[end:]
			if err := w.event(wd, mask, cookie, name); err != nil {
				return err
			}
		}
		if err := w.out.Flush(); err != nil {
			return err
		}
	}
}

func (w *watcher) event(wd int, mask, cookie uint32, name string) error {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		return w.tell(protocol.Overflow, "")
	}
	dir, ok := w.paths[wd]
	if mask&unix.IN_IGNORED != 0 {
		delete(w.paths, wd)
		return nil
	}
	if !ok || name == "" {
		return nil
	}
	full := filepath.Join(dir, name)
	isDir := mask&unix.IN_ISDIR != 0
	switch {
	case mask&unix.IN_MOVED_FROM != 0 && isDraft(name):
		w.draft = cookie
	case mask&unix.IN_MOVED_TO != 0 && !isDir && cookie != 0 && cookie == w.draft:
		// A file that was written, as programs write one, and not moved.
		if err := w.tell(protocol.Created, full); err != nil {
			return err
		}
		return w.tell(protocol.Modified, full)
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		if err := w.tell(protocol.Created, full); err != nil || !isDir {
			return err
		}
		err := w.add(full, func(inside string) error { return w.tell(protocol.Created, inside) })
		if errors.Is(err, unix.ENOSPC) {
			return w.tell(protocol.Overflow, "") // what happens there is not seen
		}
		return err
	case mask&unix.IN_MOVED_FROM != 0:
		if isDir {
			w.forget(full)
		}
		return w.tell(protocol.Moved, full)
	case mask&unix.IN_DELETE != 0:
		return w.tell(protocol.Removed, full)
	case mask&unix.IN_ATTRIB != 0:
		return w.tell(protocol.Attributes, full)
	case !isDir:
		return w.tell(protocol.Modified, full)
	}
	return nil
}

// forget stops watching a directory that has another name now.
func (w *watcher) forget(dir string) {
	for wd, path := range w.paths {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd)) //nolint:gosec // as the kernel has it
			delete(w.paths, wd)
		}
	}
}

// tell writes a change; one that repeats the last is not news.
func (w *watcher) tell(kind protocol.ChangeKind, path string) error {
	c := protocol.Change{Kind: kind, Path: path}
	if isDraft(path) || c == w.last {
		return nil
	}
	w.last = c
	return w.out.Write(protocol.RecordChange, c.Encode())
}
