package audit

import (
	"fmt"
	"time"
)

// Report is what [Verify] found.
type Report struct {
	Lines    int64     `json:"lines"` // those that could be read
	Segments int       `json:"segments"`
	First    time.Time `json:"first,omitzero"` // of the first line
	Last     time.Time `json:"last,omitzero"`  // of the last line
	Head     Head      `json:"head"`
	Anchor   Head      `json:"anchor"` // the newest known end; zero if it is not known
	// Unanchored counts the lines after the anchor. They pass, but had they been
	// cut away, nothing would show it. After a Close there are none.
	Unanchored int64     `json:"unanchored"`
	Problems   []Problem `json:"problems"`
	// More counts the problems that were found and are not in Problems, which
	// holds the first 1,000.
	More int64 `json:"more,omitempty"`
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Head names the last line of a journal. Two journals with the same head hold
// the same lines.
type Head struct {
	Seq int64  `json:"seq"`
	Sum string `json:"sum"`
}

// Problem is one thing that is wrong with a journal.
type Problem struct {
	Segment int    `json:"segment,omitempty"` // 0 where it is about no segment
	Line    int    `json:"line,omitempty"`    // counted within the segment from 1
	Seq     int64  `json:"seq,omitempty"`     // of the line, as far as it is known
	Kind    Kind   `json:"kind"`
	Text    string `json:"text"` // a sentence for people
}

// String returns the problem as one line.
func (p Problem) String() string {
	switch {
	case p.Segment == 0:
		return fmt.Sprintf("%s: %s", p.Kind, p.Text)
	case p.Line == 0:
		return fmt.Sprintf("segment %d: %s: %s", p.Segment, p.Kind, p.Text)
	}
	return fmt.Sprintf("segment %d, line %d: %s: %s", p.Segment, p.Line, p.Kind, p.Text)
}

// Kind is what sort of problem it is.
type Kind string

// The kinds of problems.
const (
	Changed    Kind = "changed"     // the bytes are not those that were written
	Missing    Kind = "missing"     // lines or a segment are gone
	Reordered  Kind = "reordered"   // a line stands in another place
	Truncated  Kind = "truncated"   // the end is gone, or was, for all the anchor can tell
	Inserted   Kind = "inserted"    // a line is there twice, or is of another history
	Unreadable Kind = "unreadable"  // this is no line of a journal
	UnknownKey Kind = "unknown key" // the key is missing or not that of the journal
)

// maxProblems bounds a report on a journal that is wrong all over.
const maxProblems = 1000

func (r *Report) add(p Problem) {
	if len(r.Problems) == maxProblems {
		r.More++
		return
	}
	r.Problems = append(r.Problems, p)
}
