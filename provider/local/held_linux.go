package local

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/keeper"
)

// held is what a keeper has of one sandbox. It implements [guest.Holder].
type held struct {
	client *keeper.Client
	id     string

	mu      sync.Mutex
	records map[string]bool // programs whose pipes it has; guarded by mu
}

var _ guest.RecordHolder = (*held)(nil)

// reserveHeld returns the place of a new sandbox with the keeper; nil where there
// is none.
func (p *Provider) reserveHeld(ctx context.Context, h *hostSide, id cove.ID) (*held, error) {
	if !h.keeps() {
		return nil, nil //nolint:nilnil // it ends with us
	}
	c, err := h.keeper(ctx)
	if err != nil {
		return nil, err
	}
	p.guard(c)
	return &held{client: c, id: string(id)}, nil
}

// drop lets the keeper let go. One that is gone has.
func (k *held) drop(ctx context.Context) error {
	if k == nil {
		return nil
	}
	for _, keep := range k.recorded() {
		if err := k.forgetRecord(ctx, keep); err != nil && !errors.Is(err, keeper.ErrGone) {
			return err
		}
	}
	if err := k.client.Drop(ctx, k.id); err != nil && !errors.Is(err, keeper.ErrGone) {
		return keeperFault(err)
	}
	return nil
}

// hold gives the keeper what keeps a sandbox alive, and what the next process
// must know of it.
func (s *sandbox) hold(ctx context.Context, spec cove.Spec) error {
	m := s.made
	if m.held == nil {
		return nil
	}
	s.kept = m
	if s.shelf != nil {
		s.shelf.keep = s.write // nobody else has it yet
	}
	s.note = note{Spec: spec, Isolation: s.isolation, Group: m.name, Grouped: m.group != nil, PID: m.pid, Searched: m.kit.searched(), Env: m.env, Disk: m.disk.note()}
	if m.lease != nil {
		s.note.User = m.lease.First
	}
	return s.put(ctx)
}

// rehold writes down what became of the way out. Callers hold the lock of the way,
// or are alone.
func (s *sandbox) rehold(ctx context.Context, n cove.Network) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil || s.made.held == nil {
		return nil
	}
	way := s.way.note(n)
	s.noting.Lock()
	s.note.Way = way
	s.noting.Unlock()
	return s.put(ctx)
}

// put gives the keeper the note and the descriptors. Callers hold mu, or are
// alone.
func (s *sandbox) put(ctx context.Context) error {
	if s.shelf != nil {
		return s.shelf.rewrite(ctx)
	}
	return s.write(ctx, nil, nil)
}

// write is put with what there is to know of the shelf. Who calls it without mu
// holds the lock of the shelf, without which nothing of the sandbox is let go.
func (s *sandbox) write(ctx context.Context, shelf *shelfNote, more map[string]int) error {
	s.noting.Lock()
	defer s.noting.Unlock()
	m := s.kept
	m.killing.Lock()
	defer m.killing.Unlock()
	if m.process < 0 {
		return s.goneError()
	}
	link, err := s.agent.Link()
	if err != nil {
		return cove.Wrap(cove.Exhausted, err, "the host has no descriptor left for a sandbox").Reason(cove.ReasonCapacity)
	}
	defer func() { _ = unix.Close(link) }()
	files := map[string]int{linkFile: link, processFile: m.process}
	if m.lease != nil {
		files[leaseFile] = int(m.lease.File().Fd())
	}
	maps.Copy(files, more)
	h := keeper.Holding{Farewell: guest.Farewell(), Files: files}
	s.note.Shelf = shelf
	var opened []int
	s.note.Maker, opened = m.maker.note(&h)
	defer closeAll(opened)
	h.Note, err = json.Marshal(s.note)
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the sandbox cannot be written down")
	}
	wait, err := m.held.client.PutSoon(ctx, m.held.id, h)
	if err != nil {
		return keeperFault(err)
	}
	if s.note.Way != nil {
		return faultOf(wait(ctx))
	}
	// Nobody waits for the keeper to get a turn: what it was sent it has, whatever
	// becomes of us. One that refuses it ends the sandbox.
	agent := s.agent
	whole := context.WithoutCancel(ctx)
	go func() {
		if err := wait(whole); err != nil {
			agent.Lose(keeperFault(err))
		}
	}()
	return nil
}

func closeAll(files []int) {
	for _, fd := range files {
		_ = unix.Close(fd)
	}
}

// keeperFault says what a keeper refused.
func keeperFault(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, keeper.ErrUnknown):
		return cove.Wrap(cove.NotFound, err, "nothing of that name is kept")
	case errors.Is(err, keeper.ErrTaken):
		return cove.Wrap(cove.Conflict, err, "a program of that name is kept already")
	case errors.Is(err, keeper.ErrFull):
		return cove.Wrap(cove.Exhausted, err, "the keeper of sandboxes has no room for more; end some").Reason(cove.ReasonCapacity)
	case errors.Is(err, keeper.ErrGone):
		return cove.Wrap(cove.Unavailable, err, "the keeper of sandboxes is gone, and what it kept; try again")
	}
	return cove.Wrap(cove.Unavailable, err, "the keeper of sandboxes refuses: %s", err)
}

// faultOf is nil for nil.
func faultOf(err error) error {
	if err == nil {
		return nil
	}
	return keeperFault(err)
}

// Keep implements [guest.Holder].
func (k *held) Keep(ctx context.Context, keep string, note []byte, in, out, errs int) error {
	return faultOf(k.client.Keep(ctx, k.id, keep, note, keeper.Streams{In: in, Out: out, Err: errs}))
}

// Names implements [guest.Holder].
func (k *held) Names(ctx context.Context) ([]string, error) {
	names, err := k.client.Programs(ctx, k.id)
	return append(names, k.recorded()...), faultOf(err)
}

// Look implements [guest.Holder].
func (k *held) Look(ctx context.Context, keep string) ([]byte, int, error) {
	note, in, err := k.client.Look(ctx, k.id, keep)
	return note, in, faultOf(err)
}

// Follow implements [guest.Holder].
func (k *held) Follow(ctx context.Context, keep string) iter.Seq2[cove.Chunk, error] {
	return func(yield func(cove.Chunk, error) bool) {
		at := int64(0)
		for c, err := range k.client.Follow(ctx, k.id, keep, 0) {
			switch lost := c.Offset - at; {
			case err != nil:
			case len(c.Data) == 0:
				at += c.Offset
			case lost > 0: // an older keeper does not say of which stream
				if !yield(cove.Chunk{Stream: c.Stream, Offset: lost}, nil) {
					return
				}
				at = c.Offset + int64(len(c.Data))
			default:
				at += int64(len(c.Data))
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// Shut implements [guest.Holder].
func (k *held) Shut(ctx context.Context, keep string) error {
	return faultOf(k.client.Shut(ctx, k.id, keep))
}

// Finish implements [guest.Holder].
func (k *held) Finish(ctx context.Context, keep string) error {
	if k.has(keep) {
		return nil // its pipes are read by us
	}
	return faultOf(k.client.Finish(ctx, k.id, keep))
}

// Forget implements [guest.Holder].
func (k *held) Forget(ctx context.Context, keep string) error {
	if k.has(keep) {
		return k.forgetRecord(ctx, keep)
	}
	return faultOf(k.client.Forget(ctx, k.id, keep))
}

// recordPrefix begins the names that a keeper has of recorded programs. What follows is
// the sandbox's id, a colon and the program's name.
const recordPrefix = "record:"

func (k *held) recordName(keep string) string { return recordPrefix + k.id + ":" + keep }

// readRecordName is the inverse of recordName.
func readRecordName(name string) (id cove.ID, keep string, ok bool) {
	rest, ok := strings.CutPrefix(name, recordPrefix)
	if !ok {
		return "", "", false
	}
	of, keep, ok := strings.Cut(rest, ":")
	return cove.ID(of), keep, ok && cove.ID(of).Valid() && keep != ""
}

// recorded are the names of the programs whose pipes the keeper has.
func (k *held) recorded() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.records))
}

func (k *held) has(keep string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.records[keep]
}

// holds notes that the keeper has the pipes of a program, or has not.
func (k *held) holds(keep string, has bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.records == nil {
		k.records = map[string]bool{}
	}
	k.records[keep] = has
	if !has {
		delete(k.records, keep)
	}
}

// HoldRecord implements [guest.RecordHolder].
func (k *held) HoldRecord(ctx context.Context, keep string, note []byte, files map[string]int) error {
	k.holds(keep, true)
	err := k.client.Put(ctx, k.recordName(keep), keeper.Holding{Note: note, Files: files})
	if err != nil {
		k.holds(keep, false)
	}
	return faultOf(err)
}

// Record implements [guest.RecordHolder].
func (k *held) Record(ctx context.Context, keep string) ([]byte, map[string]int, error) {
	if !k.has(keep) {
		return nil, nil, cove.Errorf(cove.NotFound, "no program of that name is recorded")
	}
	h, err := k.client.Get(ctx, k.recordName(keep))
	if err != nil {
		return nil, nil, keeperFault(err)
	}
	return h.Note, h.Files, nil
}

func (k *held) forgetRecord(ctx context.Context, keep string) error {
	if err := k.client.Drop(ctx, k.recordName(keep)); err != nil {
		return keeperFault(err)
	}
	k.holds(keep, false)
	return nil
}
