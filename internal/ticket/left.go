package ticket

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on the file of those who signed out. One line has a nonce, a time and a
// name, and is shorter than maxLeftLine.
const (
	maxLeft      = 100_000 // that are written down and not expired
	maxLeftLine  = 512
	maxLeftBytes = maxLeft * maxLeftLine
	leftSlack    = 200 // lines that may have expired before the file is written anew
	saltLen      = 16
	leftMagic    = "cove signed out 1 "
)

// left is the file that says which browsers signed out before their time. Its first
// line has chance that goes into the key of console tickets: without the file, or
// with one that is damaged, there is another, and no browser is signed in any more.
type left struct {
	path string
	salt []byte

	mu    sync.Mutex
	out   map[string]ticket // guarded by mu; by nonce
	lines int               // guarded by mu; in the file
	most  int               // guarded by mu; lines with which it is written anew
}

// openLeft reads the file at path, and begins a new one where there is none that is
// whole.
func openLeft(path string) (*left, error) {
	l := &left{path: path, out: map[string]ticket{}}
	text, err := readLeft(path)
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "%s, which says who signed out, cannot be read", path).
			Remedy("check who owns it and its directory, or remove it, which signs every browser out")
	}
	if !l.parse(text) {
		l.salt, l.out = make([]byte, saltLen), map[string]ticket{}
		_, _ = rand.Read(l.salt) // never fails since Go 1.24
	}
	return l, l.rewrite()
}

func readLeft(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) //nolint:gosec // the operator's own setting
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(f, maxLeftBytes+1))
}

// parse reports whether a file is whole: a line that a crash cut short may be of a
// browser that signed out.
func (l *left) parse(text []byte) bool {
	if len(text) > maxLeftBytes || !bytes.HasSuffix(text, []byte("\n")) {
		return false
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	if !lines.Scan() {
		return false
	}
	first, ok := strings.CutPrefix(lines.Text(), leftMagic)
	salt, err := base64.RawURLEncoding.DecodeString(first)
	if !ok || err != nil || len(salt) != saltLen {
		return false
	}
	for lines.Scan() {
		t, ok := parseLeft(lines.Text())
		if !ok {
			return false
		}
		l.out[t.nonce] = t
	}
	l.salt = salt
	return lines.Err() == nil
}

func parseLeft(line string) (t ticket, ok bool) {
	parts := strings.Split(line, " ")
	if len(parts) != 3 {
		return t, false
	}
	nonce, err := base64.RawURLEncoding.DecodeString(parts[0])
	until, err2 := strconv.ParseInt(parts[1], 10, 64)
	who, err3 := base64.RawURLEncoding.DecodeString(parts[2])
	t = ticket{nonce: string(nonce), grant: cove.Grant{Kind: cove.GrantConsole, Principal: string(who), ExpiresAt: time.Unix(until, 0).UTC()}}
	return t, errors.Join(err, err2, err3) == nil
}

func leftLine(t ticket) string {
	encode := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf("%s %d %s\n", encode([]byte(t.nonce)), t.grant.ExpiresAt.Unix(), encode([]byte(t.grant.Principal)))
}

// all returns those who signed out and whose time is not up.
func (l *left) all() []ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidy()
	var all []ticket
	for _, t := range l.out {
		all = append(all, t)
	}
	return all
}

// add writes down that a browser signed out, unless it is. It is on the disk when add
// returns nil.
func (l *left) add(t ticket) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, is := l.out[t.nonce]; is {
		return nil
	}
	line := leftLine(t)
	if len(l.out) >= maxLeft {
		l.tidy()
	}
	if len(l.out) >= maxLeft || len(line) > maxLeftLine {
		return cove.Errorf(cove.Exhausted, "too many browsers have signed out in a while").Reason(cove.ReasonRateLimited).Remedy("try again later, or revoke the key")
	}
	l.out[t.nonce] = t
	defer func() {
		if err != nil {
			delete(l.out, t.nonce) // who tries again is not told that all is well
		}
	}()
	if l.lines >= l.most {
		return l.rewrite()
	}
	defer l.unwritten(&err)
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	l.lines++
	return errors.Join(err, f.Sync(), f.Close())
}

// rewrite puts a file in the place of the old one, whole or not at all. mu is held,
// or nobody else has l.
func (l *left) rewrite() (err error) {
	defer l.unwritten(&err)
	l.tidy()
	f, err := os.CreateTemp(filepath.Dir(l.path), ".left-*") // CreateTemp gives mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone already where all went well
	w := bufio.NewWriter(f)
	_, _ = w.WriteString(leftMagic + base64.RawURLEncoding.EncodeToString(l.salt) + "\n") // Flush tells
	for _, t := range l.out {
		_, _ = w.WriteString(leftLine(t))
	}
	if err := errors.Join(w.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), l.path); err != nil {
		return err
	}
	l.lines, l.most = len(l.out), 2*len(l.out)+leftSlack
	dir, err := os.Open(filepath.Dir(l.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// tidy forgets what has expired. mu is held.
func (l *left) tidy() {
	now := time.Now()
	for nonce, t := range l.out {
		if !now.Before(t.grant.ExpiresAt) {
			delete(l.out, nonce)
		}
	}
}

func (l *left) unwritten(err *error) {
	if *err != nil {
		*err = cove.Wrap(cove.Unavailable, *err, "%s, which says who signed out, cannot be written", l.path).
			Remedy("check that its directory is the server's and has room; until then, revoke a key to end its browsers")
	}
}
