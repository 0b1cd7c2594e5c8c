package audit

import (
	"errors"
	"os"
	"slices"
	"time"
)

// committer brings lines to the disk and keeps the anchor. It belongs to the
// goroutine that runs commitLoop.
type committer struct {
	anchor   *os.File
	seal     *sealer
	buf      []byte
	written  mark        // what the anchor says of the lines that are synced
	tip      mark        // and of the last line
	synced   int64       // what it said when it was synced last
	syncedAt time.Time   // and when that was
	timer    *time.Timer // kicks when the anchor has waited long enough
	kept     bool        // somebody waited for a line and has it on the disk
	err      error       // the first error of a sync: from then on nothing is promised
}

// commitLoop runs until Close and then commits a last time. However many callers
// wait, one sync serves them all: those who come while one is under way share the
// next.
func (j *Journal) commitLoop() {
	defer close(j.stopped)
	for {
		select {
		case <-j.kick:
			j.commit(false)
		case <-j.tell:
			j.tellTip()
		case <-j.quit:
			j.commit(true)
			j.committer.timer.Stop()
			return
		}
	}
}

func (j *Journal) commit(last bool) {
	j.mu.Lock()
	waiting, retired, current, head, dirty := j.waiting, j.retired, j.file, j.head, j.dirty
	j.waiting, j.retired, j.dirty, j.untold = nil, nil, false, false
	j.mu.Unlock()

	c := &j.committer
	if last && j.cfg.Brief && c.kept && waiting == nil && len(retired) == 0 {
		j.leave(current, head)
		return
	}
	// After a failed sync the kernel may have dropped the pages and call the
	// next one a success: it must not be asked again.
	if c.err == nil && dirty {
		c.err = j.syncLines(retired, current)
	}
	if c.err == nil && (dirty || last) {
		c.err = j.inPlace(append(slices.Clone(retired), current), head.segment)
	}
	for _, f := range retired {
		c.err = errors.Join(c.err, f.Close())
	}
	if c.err == nil {
		c.err = c.writeAnchor(head, head, j.keys.id, j.cfg.boot)
	}
	j.answer(waiting)
	if c.err == nil && c.synced != head.seq {
		c.err = c.syncAnchor(last && !j.cfg.Brief || len(retired) > 0, j.cfg.AnchorInterval)
	}
	j.mu.Lock()
	if c.err != nil {
		_ = j.fail(c.err)
	}
	j.anchored = c.synced
	j.mu.Unlock()
}

// answer tells those who wait for a sync how it went. They need not wait for
// that of the anchor, which has an interval of its own.
func (j *Journal) answer(waiting *batch) {
	c := &j.committer
	if waiting == nil {
		return
	}
	if c.kept = c.err == nil; !c.kept {
		j.mu.Lock()
		waiting.err = j.fail(c.err)
		j.mu.Unlock()
	}
	close(waiting.done)
}

// leave ends a brief journal without a sync: the lines that somebody waited for
// are on the disk, and the anchor tells of the others for as long as the machine
// runs.
func (j *Journal) leave(current file, head mark) {
	c := &j.committer
	if c.err == nil {
		c.err = j.inPlace([]file{current}, head.segment)
	}
	if c.err == nil {
		c.err = c.writeAnchor(c.written, head, j.keys.id, j.cfg.boot)
	}
	if c.err != nil {
		j.mu.Lock()
		_ = j.fail(c.err)
		j.mu.Unlock()
	}
}

func (j *Journal) syncLines(retired []file, current file) error {
	for _, f := range retired {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if len(retired) > 0 {
		if err := syncDir(j.cfg.Dir); err != nil {
			return err
		}
	}
	return current.Sync()
}

// tellTip makes the anchor know the last line, without a sync of either: that
// is enough against the death of this process.
func (j *Journal) tellTip() {
	j.mu.Lock()
	head := j.head
	j.untold = false
	j.mu.Unlock()
	c := &j.committer
	if c.err != nil {
		return
	}
	if c.err = c.writeAnchor(c.written, head, j.keys.id, j.cfg.boot); c.err != nil {
		j.mu.Lock()
		_ = j.fail(c.err)
		j.mu.Unlock()
	}
}

// writeAnchor is called with what is on the disk already, beside the tip: an
// anchor may be behind the lines, never ahead of them.
func (c *committer) writeAnchor(head, tip mark, keyID, boot string) error {
	if c.written == head && c.tip == tip {
		return nil
	}
	c.buf = encodeAnchor(c.buf, c.seal, keyID, head, tip, boot)
	if _, err := c.anchor.WriteAt(c.buf, 0); err != nil {
		return err
	}
	c.written, c.tip = head, tip
	return nil
}

// syncAnchor does it now if that is due, or sees that it will be done in time.
func (c *committer) syncAnchor(now bool, interval time.Duration) error {
	if wait := interval - time.Since(c.syncedAt); !now && wait > 0 {
		c.timer.Reset(wait)
		return nil
	}
	if err := c.anchor.Sync(); err != nil {
		return err
	}
	c.synced, c.syncedAt = c.written.seq, time.Now()
	return nil
}
