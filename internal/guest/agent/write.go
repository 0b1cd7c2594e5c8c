//go:build linux

package agent

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// draftPrefix begins the names of files that are not complete yet.
const draftPrefix = ".cove-draft-"

func draftName() string { return draftPrefix + strconv.FormatUint(rand.Uint64(), 36) } //nolint:gosec // O_EXCL makes it safe

func isDraft(name string) bool { return strings.HasPrefix(filepath.Base(name), draftPrefix) }

func (s *server) write(m *protocol.Message, f protocol.File) {
	in := m.Streams[0].File("write")
	defer func() { _ = in.Close() }()
	var made []string
	err := allowed(f.Name, false)
	if err == nil {
		made, err = makeDirs(filepath.Dir(f.Name))
	}
	if err == unix.EEXIST { //nolint:errorlint // what makeDirs returns
		err = unix.ENOTDIR
	}
	if err == nil {
		err = replace(f, protocol.NewRecordReader(in))
		if err != nil {
			unmake(made)
		}
	}
	s.reply(m.ID, failure(err))
}

// replace writes a draft beside the file and puts it in its place.
func replace(f protocol.File, in *protocol.RecordReader) error {
	at, err := resolve(f.Name, false)
	if err != nil {
		return err
	}
	defer at.close()
	dir, base := at.dir, at.base
	var st unix.Stat_t
	if unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR // said before the content is sent
	}
	d, err := newDraft(dir)
	if err != nil {
		return err
	}
	defer d.discard()
	for {
		kind, b, err := in.Next()
		if err != nil || kind != protocol.RecordData && kind != protocol.RecordEnd {
			return &failed{protocol.ReasonBroken, unix.EPIPE, ""}
		}
		if kind == protocol.RecordEnd {
			return d.commit(base, f.Mode, 0)
		}
		if _, err := d.file.Write(b); err != nil {
			return err
		}
	}
}

// draft is a file that is not complete.
type draft struct {
	dir  int
	name string
	file *os.File
}

func newDraft(dir int) (*draft, error) {
	const tries = 8
	for range tries {
		d := &draft{dir: dir, name: draftName()}
		fd, err := unix.Openat(dir, d.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d.file = os.NewFile(uintptr(fd), d.name)
		return d, nil
	}
	return nil, unix.EEXIST
}

// commit gives the draft its mode, its time and its name.
func (d *draft) commit(name string, mode uint32, modified int64) error {
	fd := int(d.file.Fd())
	if err := unix.Fchmod(fd, mode); err != nil {
		return err
	}
	if modified != 0 {
		stamp(d.dir, d.name, modified)
	}
	if err := unix.Renameat(d.dir, d.name, d.dir, name); err != nil {
		return err
	}
	d.name = ""
	return nil
}

func (d *draft) discard() {
	_ = d.file.Close()
	if d.name != "" {
		_ = unix.Unlinkat(d.dir, d.name, 0)
	}
}

// stamp sets the time of a file; a time that cannot be set is no loss.
func stamp(dir int, name string, modified int64) {
	ts := unix.NsecToTimespec(modified)
	_ = unix.UtimesNanoAt(dir, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}
