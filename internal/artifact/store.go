package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// When says which runs are kept.
type When string

// The choices.
const (
	Always  When = "always"
	OnError When = "on_error" // code that failed, ran out of time or was refused
	Never   When = "never"
)

// Config says what is kept, and how much of it. Zero bounds take their defaults.
type Config struct {
	When     When
	MaxFile  cove.Bytes    // of one file; default 256 KiB, at least 4 KiB
	MaxAge   time.Duration // default 7 days
	MaxFiles int           // default 10000
	MaxBytes cove.Bytes    // of all files; default 256 MiB

	// Secrets are texts to take out wherever they stand, if they have six
	// characters or more. Values of a session's variables whose names speak of a
	// key, a token, a password or the like are taken out too, and so is what has
	// the form of a well-known kind of credential.
	Secrets []string
}

const (
	minFile      = 4 * cove.KiB
	minSecret    = 6
	maxClashes   = 100
	stampForm    = "20060102T150405.000Z"
	hashLen      = 12
	suffix       = ".json"
	draftPrefix  = ".draft-"
	sweepPortion = 10 // a sweep at least after this part of the bounds was written
)

func (c Config) withDefaults() Config {
	or(&c.MaxFile, 256*cove.KiB)
	or(&c.MaxAge, 7*24*time.Hour)
	or(&c.MaxFiles, 10_000)
	or(&c.MaxBytes, 256*cove.MiB)
	c.MaxFile = max(c.MaxFile, minFile)
	return c
}

func or[T ~int | ~int64](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// Store is a [cove.Artifacts] in a directory, which any number of processes may
// share. It is safe for concurrent use, holds no file open, and makes the
// directory when there is something to keep.
type Store struct {
	dir string
	cfg Config

	mu    sync.Mutex
	files int        // written since the last sweep; guarded by mu
	bytes cove.Bytes // likewise
	known accounts   // guarded by mu
}

var _ cove.Artifacts = (*Store)(nil)

// New returns the store of a directory.
func New(dir string, cfg Config) *Store { return &Store{dir: dir, cfg: cfg.withDefaults()} }

// wants reports whether a run is to be kept.
func (s *Store) wants(r *cove.CodeResult) bool {
	switch s.cfg.When {
	case Always:
		return true
	case OnError:
		return r.Err() != nil
	case Never:
	}
	return false
}

// Put implements [cove.Artifacts].
func (s *Store) Put(ctx context.Context, a cove.Artifact) error {
	if a.Result == nil || !s.wants(a.Result) {
		return nil
	}
	rec := newRecord(a, s.cfg.redactor(a.Env), int(s.cfg.MaxFile))
	text, err := rec.encode(int(s.cfg.MaxFile))
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the artifact of a run cannot be written down")
	}
	name, err := s.write(a.At.UTC().Format(stampForm)+"_"+hashOf(rec.Code), text)
	if err != nil {
		return s.fault(err)
	}
	s.mu.Lock()
	if s.known.tenants != nil {
		s.known.add(name, a.Tenant, cove.Bytes(len(text)))
	}
	s.files++
	s.bytes += cove.Bytes(len(text))
	due := s.files >= max(1, s.cfg.MaxFiles/sweepPortion) || s.bytes >= s.cfg.MaxBytes/sweepPortion
	s.mu.Unlock()
	if due {
		_, err = s.Sweep(ctx)
	}
	return err
}

func hashOf(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])[:hashLen]
}

// write makes a file that is whole when it gets its name, which it returns.
func (s *Store) write(name string, text []byte) (as string, err error) {
	root, err := s.open()
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	draft := draftPrefix + string(cove.NewID())
	if err := root.WriteFile(draft, text, 0o600); err != nil {
		return "", errors.Join(err, absent(root.Remove(draft)))
	}
	defer func() { _ = root.Remove(draft) }() // a sweep removes what is left
	for n := range maxClashes {
		as = name + suffix
		if n > 0 {
			as = name + "-" + strconv.Itoa(n+1) + suffix
		}
		if err = root.Link(draft, as); !errors.Is(err, fs.ErrExist) {
			return as, err
		}
	}
	return as, err
}

// open opens the directory, for the user of Cove alone.
func (s *Store) open() (*os.Root, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(s.dir)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(s.dir, 0o700); err != nil { //nolint:gosec // a directory
			return nil, err
		}
	}
	return os.OpenRoot(s.dir)
}

func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Store) fault(err error) error {
	cause := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		cause = p.Err
	}
	if p, ok := errors.AsType[*os.LinkError](err); ok {
		cause = p.Err
	}
	return cove.Wrap(cove.Unavailable, fmt.Errorf("artifacts: %w", err), "code and results cannot be kept in %s: %s", filepath.Clean(s.dir), cause).
		Remedy("free space there or mend its permissions, or set SANDBOX_STORE_CODE=never")
}
