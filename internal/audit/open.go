package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cove-sandbox/cove"
)

// recovered is the kind of the line that tells of a line cut off by a crash.
const recovered = "journal.recovered"

// Open opens the journal of a node for writing and makes it if it is not there
// yet. It is Conflict while another process has it open, and Unavailable where
// the journal cannot be written or is not as it was left; the message then says
// what is wrong, and [Verify] finds out more.
func Open(cfg Config) (*Journal, error) { return open(cfg, nil) }

// open lets tests put something between the journal and its files.
func open(cfg Config, wrap func(file) file) (_ *Journal, err error) {
	if cfg, err = cfg.withDefaults(); err != nil {
		return nil, err
	}
	j := &Journal{
		cfg: cfg, kick: make(chan struct{}, 1), tell: make(chan struct{}, 1), quit: make(chan struct{}), stopped: make(chan struct{}),
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, unusable(cfg.Dir, err)
	}
	if j.root, err = os.OpenRoot(cfg.Dir); err != nil {
		return nil, unusable(cfg.Dir, err)
	}
	j.create = func(segment int) (file, error) { return createSegment(j.root, segment, wrap) }
	torn, err := j.load(wrap)
	if err != nil {
		_ = j.release()
		return nil, unusable(cfg.Dir, err)
	}
	j.timer = stoppedTimer(j.wake)
	j.teller = stoppedTimer(func() { token(j.tell) })
	j.committer.timer = stoppedTimer(j.wake)
	_ = j.Room() // where the disk is full, what comes first is told
	go j.commitLoop()
	if torn > 0 {
		note := &cove.Event{Kind: recovered, Phase: cove.EngineNote, Data: fmt.Appendf(nil, `{"dropped":%d}`, torn)}
		if err := j.Append(context.Background(), note, true); err != nil {
			_ = j.Close()
			return nil, err
		}
	}
	return j, nil
}

func stoppedTimer(f func()) *time.Timer {
	t := time.AfterFunc(time.Hour, f)
	t.Stop()
	return t
}

// unusable keeps an error of ours and explains a foreign one.
func unusable(dir string, err error) error {
	if _, ok := errors.AsType[*cove.Error](err); ok {
		return err
	}
	return cove.Wrap(cove.Unavailable, err, "the journal at %s cannot be opened: %s", dir, reasonOf(err)).
		Remedy("make %s a folder that belongs to the user who runs Cove and has free space", dir)
}

func createSegment(root *os.Root, segment int, wrap func(file) file) (file, error) {
	f, err := root.OpenFile(segmentName(segment), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if wrap != nil {
		return wrap(segmentFile{f}), nil
	}
	return segmentFile{f}, nil
}

// load finds where the journal ends and opens its last segment. It returns how
// many bytes of a torn line it cut off.
func (j *Journal) load(wrap func(file) file) (torn int64, err error) {
	if j.lock, err = takeLock(j.root, j.cfg.Dir); err != nil {
		return 0, err
	}
	segments, err := listSegments(j.root)
	if err != nil {
		return 0, err
	}
	anchor, err := j.loadAnchor(len(segments) > 0)
	if err != nil {
		return 0, err
	}
	j.chain = newSealer(j.keys.chain)
	j.head, torn, err = findHead(j.root, segments, anchor.mark, j.chain)
	if known, _ := anchor.known(j.cfg.boot); err == nil && j.head.seq < known {
		err = fmt.Errorf("it ends with line %d, but its anchor knows line %d", j.head.seq, known)
	}
	if err != nil {
		return 0, j.corrupt(err)
	}
	if err := j.openLast(len(segments) == 0, torn, wrap); err != nil {
		return 0, err
	}
	c := &j.committer
	c.synced, c.syncedAt, c.written = anchor.seq, time.Now(), anchor.mark
	if j.cfg.Brief {
		c.synced, c.syncedAt = 0, time.Time{} // due with the first line
		return torn, nil
	}
	if j.head != anchor.mark {
		if err := j.file.Sync(); err != nil {
			return 0, err
		}
		if err := c.writeAnchor(j.head, j.head, j.keys.id, j.cfg.boot); err != nil {
			return 0, err
		}
	}
	// An anchor that this process did not sync itself may still be only in the
	// kernel's memory; lines may tell only of one that is on the disk.
	if err := c.syncAnchor(true, 0); err != nil {
		return 0, err
	}
	j.anchored = c.synced
	return torn, nil
}

// loadAnchor reads the key and the anchor, and makes both for a new journal.
func (j *Journal) loadAnchor(hasSegments bool) (anchorRecord, error) {
	_, err := os.Stat(j.cfg.AnchorFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return anchorRecord{}, err
	}
	fresh := !hasSegments && err != nil
	j.keys, err = readKey(j.cfg.KeyFile)
	if fresh && errors.Is(err, fs.ErrNotExist) {
		j.keys, err = createKey(j.cfg.KeyFile)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return anchorRecord{}, j.corrupt(fmt.Errorf("its key %s is missing", j.cfg.KeyFile))
	}
	if err != nil {
		return anchorRecord{}, err
	}
	c := &j.committer
	c.seal = newSealer(j.keys.anchor)
	if fresh {
		none := mark{sum: noSum, segment: 1}
		if err := replaceFile(j.cfg.AnchorFile, encodeAnchor(nil, c.seal, j.keys.id, none, none, j.cfg.boot)); err != nil {
			return anchorRecord{}, err
		}
	}
	anchor, err := readAnchor(j.cfg.AnchorFile, c.seal)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return anchorRecord{}, j.corrupt(fmt.Errorf("its anchor %s is missing", j.cfg.AnchorFile))
	case errors.Is(err, errAnchor):
		return anchorRecord{}, j.corrupt(fmt.Errorf("its anchor %s is damaged", j.cfg.AnchorFile))
	case err != nil:
		return anchorRecord{}, err
	case anchor.keyID != j.keys.id:
		return anchorRecord{}, j.corrupt(fmt.Errorf("its anchor %s was made with another key than %s", j.cfg.AnchorFile, j.cfg.KeyFile))
	case !anchor.genuine:
		return anchorRecord{}, j.corrupt(fmt.Errorf("its anchor %s was changed", j.cfg.AnchorFile))
	}
	c.anchor, err = os.OpenFile(j.cfg.AnchorFile, os.O_RDWR, 0)
	return anchor, err
}

func (j *Journal) corrupt(cause error) error {
	return cove.Wrap(cove.Unavailable, cause, "the journal at %s is not as it was left: %s", j.cfg.Dir, cause).
		Remedy("run `cove audit verify`; to begin a new journal, move %s, %s and %s away together and keep them",
			j.cfg.Dir, j.cfg.KeyFile, j.cfg.AnchorFile)
}

func (j *Journal) openLast(fresh bool, torn int64, wrap func(file) file) (err error) {
	if fresh {
		if j.file, err = j.create(j.head.segment); err != nil {
			return err
		}
		return syncDir(j.cfg.Dir)
	}
	f, err := j.root.OpenFile(segmentName(j.head.segment), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if j.file = (segmentFile{f}); wrap != nil {
		j.file = wrap(j.file)
	}
	if torn > 0 {
		return j.cutTorn(torn)
	}
	return nil
}

// cutTorn removes what a crash left of a line, and logs how the line began.
func (j *Journal) cutTorn(torn int64) error {
	f, err := j.root.Open(segmentName(j.head.segment))
	if err != nil {
		return err
	}
	began := make([]byte, min(torn, tornShown))
	_, err = f.ReadAt(began, j.head.end)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	j.cfg.Logger.Warn("the last line of the journal was not written to its end and is removed",
		slog.String("file", filepath.Join(j.cfg.Dir, segmentName(j.head.segment))), slog.Int64("bytes", torn), slog.String("began", string(began)))
	return j.file.Truncate(j.head.end)
}

// findHead walks from the anchored line to the end, checks every line on the
// way, and returns the last one and the length of what follows it.
func findHead(root *os.Root, segments []int, anchor mark, chain *sealer) (head mark, torn int64, err error) {
	head = anchor
	if len(segments) == 0 {
		if anchor.seq > 0 {
			return head, 0, fmt.Errorf("it is empty, but its anchor knows line %d", anchor.seq)
		}
		return head, 0, nil
	}
	last := segments[len(segments)-1]
	if anchor.segment > last {
		return head, 0, fmt.Errorf("segment %d is missing", anchor.segment)
	}
	head.at, head.end = anchor.at, anchor.at
	for head.segment = anchor.segment; ; head.segment++ {
		if torn, err = headOfSegment(root, &head, anchor, chain); err != nil {
			return head, 0, err
		}
		switch {
		case head.segment == anchor.segment && head.end < anchor.end:
			return head, 0, fmt.Errorf("segment %d ends before line %d, which its anchor knows", head.segment, anchor.seq)
		case head.segment == last:
			return head, torn, nil
		case torn > 0:
			return head, 0, fmt.Errorf("the last line of segment %d is torn", head.segment)
		}
		head.at, head.end = 0, 0
	}
}

// headOfSegment moves head, which stands at a place in the segment, to its end.
func headOfSegment(root *os.Root, head *mark, anchor mark, chain *sealer) (torn int64, err error) {
	f, err := root.Open(segmentName(head.segment))
	if err != nil {
		return 0, fmt.Errorf("segment %d: %w", head.segment, err)
	}
	defer f.Close() //nolint:errcheck // only read
	if _, err := f.Seek(head.end, io.SeekStart); err != nil {
		return 0, err
	}
	lines := newLineReader(f, head.end)
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return lines.pending, nil
		}
		at := lines.pos - int64(len(line)) - 1
		if err == nil {
			err = followHead(head, line, at, lines.pos, anchor, chain)
		}
		if err != nil {
			return 0, fmt.Errorf("segment %d, byte %d: %w", head.segment, at, err)
		}
	}
}

// followHead makes line the head if it is the one that must come next: after an
// anchor, that is first of all the anchored line itself.
func followHead(head *mark, line []byte, at, end int64, anchor mark, chain *sealer) error {
	r, err := decodeLink(line)
	if err != nil {
		return err
	}
	if chain.sum(r.body) != r.sum {
		return errors.New("the line was changed")
	}
	anchored := head.segment == anchor.segment && at == anchor.at && anchor.end > anchor.at
	switch {
	case anchored && (r.Seq != anchor.seq || r.sum != anchor.sum || end != anchor.end):
		return fmt.Errorf("this is not line %d, which the anchor knows", anchor.seq)
	case !anchored && r.Seq != head.seq+1:
		return fmt.Errorf("line %d follows line %d", r.Seq, head.seq)
	case !anchored && !bytes.Equal([]byte(r.Prev), head.sum[:]):
		return fmt.Errorf("line %d is of another history", r.Seq)
	}
	head.seq, head.sum, head.at, head.end = r.Seq, r.sum, at, end
	return nil
}
