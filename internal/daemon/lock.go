package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/flock"
)

// Holder is who serves a COVE_HOME, as its lock file says.
type Holder struct {
	PID      int       `json:"pid"`
	Address  string    `json:"address"` // what it listens on, as a URL; "" for a program that has Cove inside
	Version  string    `json:"version"`
	OnDemand bool      `json:"on_demand,omitempty"`
	Started  time.Time `json:"started"`
}

// String names the holder in a sentence.
func (h Holder) String() string {
	if h.PID == 0 {
		return "a process that is just starting"
	}
	if h.Address == "" {
		return fmt.Sprintf("process %d, which has Cove inside and lets nobody in", h.PID)
	}
	return fmt.Sprintf("process %d at %s", h.PID, h.Address)
}

func (h Holder) howToStop() string {
	if h.PID == 0 {
		return ""
	}
	return fmt.Sprintf(" with kill %d", h.PID)
}

// lock is an exclusive lock on a file. The kernel gives it back when the process ends,
// however it ends. Sandboxes do not see it, as they would see locks of open file
// descriptions, which one could look at without touching them.
type lock struct{ file *os.File }

// errHeld says that another process has the lock.
var errHeld = errors.New("held by another process")

// takeLock takes a lock without waiting; errHeld where another has it.
func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a name of ours in COVE_HOME
	if err != nil {
		return nil, err
	}
	ok, err := flock.Try(f, flock.Exclusive)
	if ok {
		return &lock{file: f}, nil
	}
	if err == nil {
		err = errHeld
	}
	return nil, errors.Join(err, f.Close())
}

// retryEvery is how often something is looked at that gives no sign.
const retryEvery = 20 * time.Millisecond

// awaitLock takes a lock, waiting for it until ctx ends.
func awaitLock(ctx context.Context, path string) (*lock, error) {
	for {
		l, err := takeLock(path)
		if !errors.Is(err, errHeld) {
			return l, err
		}
		if err := pause(ctx, retryEvery); err != nil {
			return nil, errors.Join(errHeld, err)
		}
	}
}

// pause waits, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// say writes who holds the lock, for those who find it taken.
func (l *lock) say(h Holder) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(append(data, '\n'), 0)
	return err
}

// free gives the lock back. The file stays: removing it would let two
// processes lock two files of one name.
func (l *lock) free() error { return l.file.Close() }

// WhoServes returns who serves a COVE_HOME, and whether anybody does now.
func (h Home) WhoServes() (Holder, bool, error) {
	f, err := os.Open(h.lockFile())
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, homeError(h.dir, err)
	}
	defer func() { _ = f.Close() }()
	free, err := flock.Try(f, flock.Shared) // so that two probes do not see each other
	if err != nil {
		return Holder{}, false, homeError(h.dir, err)
	}
	if free {
		return Holder{}, false, nil
	}
	data, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return Holder{}, true, homeError(h.dir, err)
	}
	var who Holder
	_ = json.Unmarshal(data, &who) // a half-written line leaves the zero Holder, which says so
	return who, true, nil
}

// takeHome makes this process the one that serves a COVE_HOME. Within wait it
// tries again, for a predecessor that is just ending, and always for a moment, since
// a process that probes for a server holds the lock meanwhile.
func (h Home) takeHome(ctx context.Context, wait time.Duration) (*lock, error) {
	limited, cancel := context.WithTimeout(ctx, max(wait, 5*retryEvery))
	defer cancel()
	l, err := awaitLock(limited, h.lockFile())
	switch {
	case errors.Is(err, errHeld):
		who, _, _ := h.WhoServes()
		return nil, h.taken(who)
	case err != nil:
		return nil, homeError(h.dir, err)
	}
	return l, l.say(Holder{})
}

// taken is the error of a COVE_HOME that another process has.
func (h Home) taken(who Holder) error {
	err := cove.Errorf(cove.Conflict, "COVE_HOME %s is served by %s already", h.dir, who).With("pid", who.PID).With("address", who.Address)
	if who.embeds() {
		return err.Remedy("stop it%s, or set COVE_HOME to another directory", who.howToStop())
	}
	return err.Remedy("use that server, stop it%s, or set COVE_HOME to another directory", who.howToStop())
}

// embeds reports whether the holder is a program that nobody can talk to.
func (h Holder) embeds() bool { return h.PID != 0 && h.Address == "" }
