package audit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Journal is the journal of one node, open for writing. It is made by [Open],
// must be closed, and is safe for concurrent use.
type Journal struct {
	cfg     Config
	root    *os.Root
	lock    *os.File
	keys    keys
	create  func(segment int) (file, error)
	digests sync.Pool

	kick    chan struct{} // holds a token when the committer has work
	tell    chan struct{} // holds a token when the anchor should know the last line
	quit    chan struct{}
	stopped chan struct{}

	committer committer // used by its own goroutine only, once Open has returned

	mu       sync.Mutex
	chain    *sealer       // guarded by mu, as are all below
	head     mark          // the last line
	file     file          // the segment that head is in
	retired  []file        // closed segments that wait for their sync
	buf      []byte        // the line being built
	dirty    bool          // something waits for a sync
	timer    *time.Timer   // kicks when that has waited long enough
	untold   bool          // the anchor lags behind head
	teller   *time.Timer   // sees that it does not for long
	waiting  *batch        // those who wait for the next sync
	anchored int64         // the newest anchor that is on the disk
	said     int64         // the newest one that a line tells of
	changed  chan struct{} // closed at the next change; nil if nobody follows
	reserved int64         // where what is set aside in the file ends
	torn     bool          // a part of a line may follow head in the file
	broken   error         // the error of the disk after which no line is taken
	closed   bool
}

var _ cove.Journal = (*Journal)(nil)

// batch is a group of callers who share one sync.
type batch struct {
	done chan struct{}
	err  error // set before done is closed
}

func (b *batch) wait(ctx context.Context) error {
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return cove.Wrap(cove.CodeOf(ctx.Err()), ctx.Err(), "the wait for the journal's disk ended early")
	}
}

// maxKeptBuffer bounds what the journal keeps of its buffer after a long line.
const maxKeptBuffer = 64 << 10

// Append writes e as the next line and fills in its Seq, Time and Node. When it
// returns nil, the line survives the death of this process; with durable also
// that of the machine. The write itself does not look at ctx: an outcome must be
// written although the caller has gone. When ctx ends during the wait for the
// disk, the error is the context's and the line may or may not survive.
//
// A line longer than 1 MiB or with Data that is not JSON is Invalid and nothing
// is written. Where the disk is full it is Exhausted, and the next line is tried
// again. After another error of the disk, or when the file of the journal was
// removed or replaced, this call and all later ones are Unavailable.
func (j *Journal) Append(ctx context.Context, e *cove.Event, durable bool) error {
	data, err := checkData(e.Data)
	if err != nil {
		return err
	}
	group, err := j.append(e, data, durable)
	if err != nil || group == nil {
		return err
	}
	return group.wait(ctx)
}

// Begin is a durable Append in two parts: when it returns nil the line survives
// the death of this process, and wait returns when it also survives that of the
// machine. In between the caller may do something that cannot outlive the
// machine either. wait may be called once or not at all.
func (j *Journal) Begin(e *cove.Event) (wait func(context.Context) error, err error) {
	data, err := checkData(e.Data)
	if err != nil {
		return nil, err
	}
	group, err := j.append(e, data, true)
	if err != nil {
		return nil, err
	}
	return group.wait, nil
}

func (j *Journal) append(e *cove.Event, data []byte, durable bool) (*batch, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.refusal(); err != nil {
		return nil, err
	}
	if err := j.mend(); err != nil {
		return nil, err
	}
	if durable {
		if err := linked(j.file, j.head.end); err != nil {
			return nil, j.fail(err)
		}
	}
	line := *e
	line.Seq, line.Time, line.Node, line.Data = j.head.seq+1, time.Now().UTC().Round(0), j.cfg.Node, data
	if err := j.write(&line); err != nil {
		return nil, err
	}
	e.Seq, e.Time, e.Node = line.Seq, line.Time, line.Node
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
	if !j.dirty {
		j.dirty = true
		j.timer.Reset(j.cfg.SyncInterval)
	}
	if !j.untold {
		j.untold = true
		j.teller.Reset(tellInterval)
	}
	if !durable {
		return nil, nil
	}
	if j.waiting == nil {
		j.waiting = &batch{done: make(chan struct{})}
	}
	j.wake()
	return j.waiting, nil
}

// write appends one line to the file and moves head, or leaves both as they were.
func (j *Journal) write(e *cove.Event) error {
	var tells int64
	if j.anchored > j.said {
		tells = j.anchored
	}
	body := appendBody(j.buf[:0], e, tells, j.head.sum)
	line, made := j.chain.seal(body)
	line = append(line, '\n')
	if j.buf = line; cap(line) > maxKeptBuffer {
		j.buf = nil
	}
	if len(line) > maxLine {
		return cove.InvalidField("event", "makes a line of %d bytes; the most is %d", len(line), maxLine)
	}
	if j.head.end > 0 && j.head.end+int64(len(line)) > int64(j.cfg.SegmentBytes) {
		// On a full disk the segment goes on: what is set aside is in its file.
		if err := j.rotate(); err != nil && !isFull(err) {
			return j.fail(err)
		}
	}
	_ = j.fillReserve() // a line for which the disk has no room goes into the reserve
	if _, err := j.file.Write(line); err != nil {
		return j.cut(err, len(line))
	}
	j.head.seq, j.head.sum, j.head.at, j.head.end = e.Seq, made, j.head.end, j.head.end+int64(len(line))
	if tells > 0 {
		j.said = tells
	}
	return nil
}

func (j *Journal) rotate() error {
	f, err := j.create(j.head.segment + 1)
	if err != nil {
		return err
	}
	var reserved int64
	if j.cfg.Reserve > 0 {
		reserved = int64(j.cfg.Reserve) + reserveStep
		if err := f.Reserve(0, reserved); isFull(err) {
			if rerr := errors.Join(f.Close(), j.root.Remove(segmentName(j.head.segment+1))); rerr != nil {
				return rerr
			}
			return err
		} else if err != nil {
			reserved = 0 // the next line asks again
		}
		_ = j.file.Truncate(j.head.end) // gives back what was set aside behind it
	}
	j.reserved = reserved
	j.retired = append(j.retired, j.file)
	j.file = f
	j.head.segment++
	j.head.at, j.head.end = 0, 0
	return nil
}

// refusal says why no line is taken, or nil.
func (j *Journal) refusal() error {
	if j.broken == nil && j.closed {
		return cove.Errorf(cove.Unavailable, "the journal at %s is closed", j.cfg.Dir)
	}
	return j.broken
}

// fail breaks the journal, if it is not broken yet, and returns the reason.
func (j *Journal) fail(cause error) error {
	switch {
	case j.broken != nil:
	case errors.Is(cause, errGone):
		j.broken = cove.Wrap(cove.Unavailable, cause, "the journal at %s takes no more lines: %s", j.cfg.Dir, cause).
			Remedy("find out who did it, run `cove audit verify`, then restart")
	default:
		j.broken = cove.Wrap(cove.Unavailable, cause,
			"the journal at %s cannot be written: %s; check the disk and fix permissions, then restart", j.cfg.Dir, reasonOf(cause))
	}
	return j.broken
}

// reasonOf returns the text of a file error without the path and the system call.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// wake tells the committer that there is work. It never blocks.
func (j *Journal) wake() { token(j.kick) }

func token(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// digestLen is how much of a hash stands for data: 128 bits.
const digestLen = 32

// Digest returns 32 hex digits that stand for data. They are keyed: without the
// node's key nobody can test a guess at the data against them.
func (j *Journal) Digest(data []byte) string {
	mac, ok := j.digests.Get().(hash.Hash)
	if !ok {
		mac = hmac.New(sha256.New, j.keys.digest)
	}
	mac.Reset()
	mac.Write(data)
	var raw [sha256.Size]byte
	text := hex.EncodeToString(mac.Sum(raw[:0])[:digestLen/2])
	j.digests.Put(mac)
	return text
}

// Close syncs what was written, anchors it, and lets go of the journal; see
// Config.Brief for one that does less. Those who follow it get an error. Closing
// again does nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
	j.mu.Unlock()
	j.timer.Stop()
	j.teller.Stop()
	close(j.quit)
	<-j.stopped
	err := j.release()
	if j.broken == nil && err != nil {
		return cove.Wrap(cove.Unavailable, err, "the journal at %s did not close cleanly", j.cfg.Dir)
	}
	return j.broken
}

// release gives back what Open took, as far as it got.
func (j *Journal) release() error {
	var errs []error
	if j.file != nil {
		errs = append(errs, j.file.Close())
	}
	for _, f := range []*os.File{j.committer.anchor, j.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(append(errs, j.root.Close())...)
}
