package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Verify checks every line of the journal in dir, whose key and anchor are in
// their usual places. See [Config.Verify].
func Verify(ctx context.Context, dir string) (Report, error) {
	return Config{Dir: dir}.Verify(ctx)
}

// Verify checks every line of a journal, the chain from the first to the last,
// and the anchor. What is wrong is in the report; the error says only that the
// check could not be done. It works while the journal is being written, and then
// covers the lines that were there when it began. It changes nothing.
func (c Config) Verify(ctx context.Context) (Report, error) {
	c, err := c.withDefaults()
	if err != nil {
		return Report{}, err
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return Report{}, noJournal(c.Dir, err)
	}
	defer root.Close() //nolint:errcheck // only read
	v := &verifier{cfg: c, root: root, tip: noSum}
	v.report.Problems = []Problem{}
	if err := v.run(ctx); err != nil {
		return Report{}, unreadable(c.Dir, err)
	}
	return v.report, nil
}

// verifier walks a journal from its first line to its last.
type verifier struct {
	cfg    Config
	root   *os.Root
	report Report
	chain  *sealer // nil when the key is unknown: sums are then taken as they are

	anchors   *sealer
	anchor    anchorRecord
	hasKey    bool
	hasAnchor bool
	evidence  int64 // the newest anchor that a line tells of
	top       int64 // the highest number met so far
	tip       sum   // the sum of that line
	bad       int64 // bad lines since then: they may be the numbers that follow it
	gaps      []gap
}

// gap is a run of numbers that were not met where they belong.
type gap struct {
	from, to      int64
	segment, line int
}

func (v *verifier) run(ctx context.Context) error {
	// The anchor comes first: lines are only ever added, so those it knows must
	// be found by whoever looks afterwards.
	if err := v.loadKeyAndAnchor(); err != nil {
		return err
	}
	segments, err := listSegments(v.root)
	if err != nil {
		return err
	}
	if len(segments) == 0 && !v.hasKey && !v.hasAnchor {
		return noJournal(v.cfg.Dir, fs.ErrNotExist)
	}
	v.report.Segments = len(segments)
	before := 0
	for i, n := range segments {
		if n != before+1 {
			v.report.add(Problem{Segment: n, Kind: Missing, Text: fmt.Sprintf("there is no segment %d before this one", n-1)})
		}
		before = n
		if err := v.segment(ctx, n, i == len(segments)-1); err != nil {
			return err
		}
	}
	v.finish()
	return nil
}

func (v *verifier) loadKeyAndAnchor() error {
	k, err := readKey(v.cfg.KeyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.report.add(Problem{Kind: UnknownKey, Text: fmt.Sprintf("the key %s is missing, so no sum can be checked", v.cfg.KeyFile)})
	case err != nil:
		return err
	default:
		v.chain, v.hasKey = newSealer(k.chain), true
	}
	v.anchors = newSealer(k.anchor)
	v.anchor, err = v.readAnchor()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.report.add(Problem{Kind: Truncated, Text: fmt.Sprintf("the anchor %s is missing, so the end of the journal is unknown", v.cfg.AnchorFile)})
	case errors.Is(err, errAnchor):
		v.report.add(Problem{Kind: Changed, Text: fmt.Sprintf("the anchor %s is damaged", v.cfg.AnchorFile)})
	case err != nil:
		return err
	case v.chain != nil && v.anchor.keyID != k.id:
		v.chain = nil
		v.report.add(Problem{Kind: UnknownKey, Text: fmt.Sprintf("the anchor was made with key %.*q, but %s is key %s", keyIDLen, v.anchor.keyID, v.cfg.KeyFile, k.id)})
	case v.chain != nil && !v.anchor.genuine:
		v.report.add(Problem{Kind: Changed, Text: fmt.Sprintf("the anchor %s was changed", v.cfg.AnchorFile)})
	default:
		v.hasAnchor = true
		v.anchor.seq, v.anchor.sum = v.anchor.known(v.cfg.boot)
		v.report.Anchor = Head{Seq: v.anchor.seq, Sum: string(v.anchor.sum[:])}
	}
	return nil
}

// readAnchor tries again a few times: a read may meet the middle of a write.
func (v *verifier) readAnchor() (r anchorRecord, err error) {
	for range 5 {
		if r, err = readAnchor(v.cfg.AnchorFile, v.anchors); err == nil && r.genuine || errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return r, err
}

// anchorMoved reports whether the anchor has by now come to where lines say it
// is: they may have been written after the anchor was read.
func (v *verifier) anchorMoved() bool {
	now, err := v.readAnchor()
	return err == nil && (now.genuine || v.chain == nil) && now.seq >= v.evidence
}

func (v *verifier) segment(ctx context.Context, number int, last bool) error {
	f, err := v.root.Open(segmentName(number))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	lines := newLineReader(f, 0)
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := lines.next()
		switch {
		case err == nil:
			v.line(line, number, n)
		case errors.Is(err, errTooLong):
			v.distrust(Problem{Segment: number, Line: n, Kind: Unreadable, Text: fmt.Sprintf("the line is longer than %d bytes", maxLine)})
		case errors.Is(err, io.EOF):
			v.endOfSegment(number, n, lines.pending, last)
			return nil
		default:
			return err
		}
	}
}

func (v *verifier) endOfSegment(number, line int, pending int64, last bool) {
	switch {
	case pending == 0 && line == 1 && !last:
		v.report.add(Problem{Segment: number, Kind: Missing, Text: "the segment is empty, but another one follows"})
	case pending > 0 && last && locked(v.root):
		// The process that writes is in the middle of this line.
	case pending > 0:
		v.report.add(Problem{
			Segment: number, Line: line, Kind: Truncated,
			Text: fmt.Sprintf("the segment ends within a line, of which %d bytes are left", pending),
		})
	}
}

// distrust reports a line that says nothing about its place.
func (v *verifier) distrust(p Problem) {
	v.report.add(p)
	v.bad++
}

func (v *verifier) line(line []byte, segment, number int) {
	at := Problem{Segment: segment, Line: number, Seq: seqOf(line)}
	r, err := decodeLine(line)
	if err != nil {
		at.Kind, at.Text = Unreadable, "this is not a line of a journal"
		v.distrust(at)
		return
	}
	v.report.Lines++
	if v.report.Lines == 1 {
		v.report.First = r.Time
	}
	if v.chain != nil && v.chain.sum(r.body) != r.sum {
		at.Kind, at.Text = Changed, "the line is not as it was written"
		v.distrust(at)
		return
	}
	v.genuine(&r, at)
}

// genuine puts a line whose own sum is right into its place in the chain.
func (v *verifier) genuine(r *record, at Problem) {
	v.evidence = max(v.evidence, r.Anchored)
	if v.hasAnchor && r.Seq == v.anchor.seq && r.sum != v.anchor.sum {
		at.Kind, at.Text = Inserted, fmt.Sprintf("line %d is not the one that the anchor knows", r.Seq)
		v.report.add(at)
	}
	switch expected := v.top + 1; {
	case r.Seq < expected:
		at.Kind, at.Text = Inserted, fmt.Sprintf("line %d is here although it was met before", r.Seq)
		if v.fillGap(r.Seq) {
			at.Kind, at.Text = Reordered, fmt.Sprintf("line %d comes after line %d", r.Seq, v.top)
		}
		v.report.add(at)
		return
	case r.Seq > expected+v.bad:
		v.addGap(gap{from: expected + v.bad, to: r.Seq - 1, segment: at.Segment, line: at.Line})
	case r.Seq == expected && r.Prev != string(v.tip[:]):
		at.Kind, at.Text = Inserted, fmt.Sprintf("line %d does not follow the line before it: it is of another history", r.Seq)
		v.report.add(at)
	}
	v.top, v.tip, v.bad = r.Seq, r.sum, 0
	v.report.Last = r.Time
	v.report.Head = Head{Seq: r.Seq, Sum: string(r.sum[:])}
}

// addGap remembers a gap until the end, because its lines may still turn up.
func (v *verifier) addGap(g gap) {
	if len(v.gaps) == maxProblems {
		v.reportGap(g)
		return
	}
	v.gaps = append(v.gaps, g)
}

func (v *verifier) reportGap(g gap) {
	if g.from <= g.to {
		v.report.add(Problem{
			Segment: g.segment, Line: g.line, Seq: g.from, Kind: Missing,
			Text: fmt.Sprintf("lines %d to %d are missing before this one", g.from, g.to),
		})
	}
}

// fillGap takes a number out of the gaps and reports whether it was in one.
func (v *verifier) fillGap(seq int64) bool {
	for i := range v.gaps {
		g := v.gaps[i]
		if seq < g.from || seq > g.to {
			continue
		}
		v.gaps[i].to = seq - 1
		v.addGap(gap{from: seq + 1, to: g.to, segment: g.segment, line: g.line})
		return true
	}
	return false
}

func (v *verifier) finish() {
	for _, g := range v.gaps {
		v.reportGap(g)
	}
	if !v.hasAnchor {
		return
	}
	switch {
	case v.top+v.bad < v.anchor.seq:
		v.report.add(Problem{
			Seq: v.top + 1, Kind: Truncated,
			Text: fmt.Sprintf("the journal ends with line %d, but the anchor knows line %d", v.top, v.anchor.seq),
		})
	case v.evidence > v.anchor.seq && !v.anchorMoved():
		v.report.add(Problem{
			Kind: Truncated,
			Text: fmt.Sprintf("the anchor stands at line %d, but lines tell of one at line %d: it was put back", v.anchor.seq, v.evidence),
		})
	}
	v.report.Unanchored = max(v.top-v.anchor.seq, 0)
}
