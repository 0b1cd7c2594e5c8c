package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
)

// maxSocketPath is what fits in a sockaddr_un, with the NUL at its end.
const maxSocketPath = 107

// leastRoom is how much room a COVE_HOME must have: enough for a fresh database
// and journal.
const leastRoom = 256 << 10

// Home is a COVE_HOME that exists, is ours and can be written.
type Home struct{ dir string }

// OpenHome makes COVE_HOME if it is missing and checks it. On error nothing
// that it made is left, and the error says in one sentence what is wrong.
func OpenHome(dir string) (Home, error) {
	h := Home{dir: dir}
	if n := len(h.Socket()); n > maxSocketPath {
		return h, cove.InvalidField("COVE_HOME", "%s is too long by %d bytes to hold a socket; use a shorter path", dir, n-maxSocketPath).Reason(cove.ReasonConfiguration)
	}
	made, err := makeDirs(dir)
	if err == nil {
		err = h.check()
	}
	if err != nil {
		for _, d := range made {
			err = errors.Join(err, os.Remove(d))
		}
		return h, homeError(dir, err)
	}
	return h, nil
}

// makeDirs makes dir and what is missing above it, and returns what it made,
// innermost first.
func makeDirs(dir string) (made []string, err error) {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		_, err := os.Stat(d)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			return nil, err
		}
		missing = append(missing, d)
	}
	for _, d := range slices.Backward(missing) {
		err := os.Mkdir(d, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue // somebody else makes it at the same time
		}
		if err != nil {
			return made, err
		}
		made = append([]string{d}, made...)
	}
	return made, nil
}

// check demands a directory that is ours alone and has room.
func (h Home) check() error {
	if err := h.owned(); err != nil {
		return err
	}
	return h.room()
}

// owned demands a directory that belongs to us and that nobody else can change.
func (h Home) owned() error {
	info, err := os.Stat(h.dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return cove.InvalidField("COVE_HOME", "%s is not a directory; name one, or a path that does not exist yet", h.dir).Reason(cove.ReasonConfiguration)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return cove.InvalidField("COVE_HOME", "%s belongs to %s and you are %s; set it to a directory of your own", h.dir, userName(int(st.Uid)), userName(os.Geteuid())).Reason(cove.ReasonConfiguration)
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return cove.InvalidField("COVE_HOME", "%s can be changed by others (mode %04o); run chmod go-w %s", h.dir, perm, h.dir).Reason(cove.ReasonConfiguration)
	}
	return nil
}

// room finds a directory that is read-only or full before anything is begun in
// it. It writes nothing: every command that starts something looks.
func (h Home) room() error {
	if err := unix.Access(h.dir, unix.W_OK|unix.X_OK); err != nil {
		return err
	}
	free, err := freeSpace(h.dir)
	if err == nil && free < leastRoom {
		err = unix.ENOSPC
	}
	return err
}

// leastFiles is how many files a file system must have left to be not full.
const leastFiles = 16

// freeSpace is how much may still be written to the file system of a directory.
func freeSpace(dir string) (cove.Bytes, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	switch { // some file systems do not count; they say 0 of 0
	case st.Files > 0 && st.Ffree < leastFiles:
		return 0, nil
	case st.Blocks == 0:
		return math.MaxInt64, nil
	}
	return cove.Bytes(min(st.Bavail*uint64(st.Bsize), math.MaxInt64)), nil //nolint:gosec // a block has a size
}

func homeError(dir string, err error) error {
	if _, ok := errors.AsType[*cove.Error](err); ok {
		return err
	}
	var what string
	switch {
	case errors.Is(err, syscall.EROFS):
		what = "is on a read-only file system; set it to a directory that can be written"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		what = fmt.Sprintf("is full: it needs %s at least; free space there, or set it to another directory", cove.Bytes(leastRoom))
	case errors.Is(err, fs.ErrPermission):
		what = fmt.Sprintf("cannot be written by %s; set it to a directory of your own", userName(os.Geteuid()))
	case errors.Is(err, syscall.ENOTDIR):
		what = "lies below something that is not a directory; set it to another path"
	default:
		what = fmt.Sprintf("cannot be used (%s); set it to another directory", lastPart(err))
	}
	return cove.Errorf(cove.Unavailable, "COVE_HOME: %s %s", dir, what).With("field", "COVE_HOME").Reason(cove.ReasonConfiguration)
}

// lastPart is the reason in a path error: the path stands in the sentence.
func lastPart(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "user " + strconv.Itoa(uid)
}

// Dir returns the path of COVE_HOME itself.
func (h Home) Dir() string { return h.dir }

// Socket returns the path of the server's socket.
func (h Home) Socket() string { return filepath.Join(h.dir, "cove.sock") }

// socketURL returns the address of the socket for a client.
func (h Home) socketURL() string {
	return (&url.URL{Scheme: "unix", Path: h.Socket()}).String()
}

// Journal returns the folder of the server's journal.
func (h Home) Journal() string { return filepath.Join(h.dir, "journal") }

// AdminKey returns the path of the file with the first key.
func (h Home) AdminKey() string { return filepath.Join(h.dir, "admin.key") }

// Log returns the log file of a server that was started on demand.
func (h Home) Log() string { return filepath.Join(h.dir, "daemon.log") }

func (h Home) lockFile() string    { return filepath.Join(h.dir, "cove.lock") }
func (h Home) spawnFile() string   { return filepath.Join(h.dir, "cove.spawn") }
func (h Home) database() string    { return filepath.Join(h.dir, "cove.db") }
func (h Home) records() string     { return filepath.Join(h.dir, "records") }
func (h Home) nodeRecords() string { return filepath.Join(h.dir, "node-records") }
func (h Home) lanes() string       { return filepath.Join(h.dir, "oneshot") }
