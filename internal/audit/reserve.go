package audit

import (
	"errors"
	"os"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// reserveStep is how much more is set aside than must be, so that few lines ask the
// kernel for more.
const reserveStep = 256 << 10

// segmentFile is a segment on the disk.
type segmentFile struct{ *os.File }

// Reserve implements file.
func (f segmentFile) Reserve(from, to int64) error { return preallocate(f.File, from, to) }

// Room returns nil if all of Config.Reserve is set aside on the disk, and as much is free
// beside it; it takes what is missing first. Otherwise the error is Exhausted:
// [Journal.Append] then writes into what is left of the reserve, which is for lines about
// what is under way and about what gives room back. A file system that cannot set room
// aside always has room.
func (j *Journal) Room() error {
	j.mu.Lock()
	err := j.refusal()
	if err == nil {
		err = j.fillReserve()
	}
	least := j.cfg.Reserve
	j.mu.Unlock()
	if err != nil || least == 0 {
		return err
	}
	if free, ferr := freeBytes(j.cfg.Dir); ferr == nil && free < least {
		return j.full(syscall.ENOSPC, int64(least))
	}
	return nil
}

// fillReserve sets room aside behind the last line. The caller holds mu.
func (j *Journal) fillReserve() error {
	need := j.head.end + int64(j.cfg.Reserve)
	if j.cfg.Reserve == 0 || need <= j.reserved {
		return nil
	}
	err := j.file.Reserve(j.head.end, need+reserveStep)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		j.cfg.Reserve = 0
	case err != nil:
		return j.full(err, need+reserveStep-max(j.reserved, j.head.end))
	default:
		j.reserved = need + reserveStep
	}
	return nil
}

// cut takes back a line of which a part may have been written, and returns why. A full
// disk does not break the journal: the next line is tried again.
func (j *Journal) cut(cause error, length int) error {
	j.torn = true
	mended := j.mend()
	if !isFull(cause) {
		return j.fail(cause)
	}
	if mended != nil {
		return mended
	}
	return j.full(cause, int64(length))
}

// mend cuts the file to its last whole line, if that is still to be done. Until it
// succeeds no line is taken; the next Open would do the same.
func (j *Journal) mend() error {
	if !j.torn {
		return nil
	}
	if err := j.file.Truncate(j.head.end); err != nil {
		return cove.Wrap(cove.Unavailable, err, "the journal at %s cannot be cut to its last whole line: %s", j.cfg.Dir, reasonOf(err)).
			Remedy("free space in the file system of %s and check that the disk is healthy; the next action tries again", j.cfg.Dir)
	}
	j.torn, j.reserved = false, 0 // what was set aside behind the line went, too
	return nil
}

// full says that the disk of the journal has no room.
func (j *Journal) full(cause error, need int64) error {
	err := cove.Errorf(cove.Exhausted, "the disk of the journal at %s is full (%s): %s needed", j.cfg.Dir, reasonOf(cause), cove.Bytes(need))
	if free, ferr := freeBytes(j.cfg.Dir); ferr == nil {
		err = cove.Errorf(cove.Exhausted, "the disk of the journal at %s is full (%s): %s free, %s needed", j.cfg.Dir, reasonOf(cause), free, cove.Bytes(need)).
			With("free_bytes", int64(free))
	}
	err.Err = cause
	return err.Reason(cove.ReasonDiskReserve).With("needed_bytes", need).
		Remedy("close sessions and delete snapshots, which still works, or free space in the file system of %s; Cove then goes on by itself", j.cfg.Dir)
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
