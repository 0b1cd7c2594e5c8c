package spool

import (
	"bytes"
	"regexp"

	"github.com/cove-sandbox/cove"
)

const (
	maxPattern = 1 << 10
	maxSearch  = 16 << 20
)

// maxGrepLine is how much of a line is searched and shown.
const maxGrepLine = 64 << 10

// grep takes the lines that match a pattern. Patterns are RE2: the time they
// take grows with the text and no faster.
type grep struct {
	pattern *regexp.Regexp
	limit   int
	data    []byte
	line    []byte // the line so far, as much of it as counts
	pos     int64  // of the next byte
	start   int64  // of the line
	from    int64  // where the search began
}

func newGrep(pattern string, offset int64, limit int) (*grep, error) {
	if len(pattern) > maxPattern {
		return nil, cove.InvalidField("grep", "is %d bytes long; the most is %d", len(pattern), maxPattern)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, cove.InvalidField("grep", "is not a regular expression that we know (RE2): %v", err)
	}
	return &grep{pattern: re, limit: limit, pos: offset, start: offset, from: offset}, nil
}

func (g *grep) add(p []byte) bool {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		g.line = append(g.line, part[:min(len(part), maxGrepLine-len(g.line))]...)
		g.pos += int64(len(part))
		if end < 0 {
			return true
		}
		g.pos++
		p = p[end+1:]
		if !g.endLine() {
			return false
		}
	}
	return true
}

// endLine takes the line if it matches. It returns false when the page is full,
// and then start is where the next page begins.
func (g *grep) endLine() bool {
	if g.pattern.Match(g.line) {
		need := len(g.line) + 1
		if len(g.data) > 0 && len(g.data)+need > g.limit {
			return false
		}
		if need > g.limit {
			g.line = g.line[:g.limit-1]
		}
		g.data = append(append(g.data, g.line...), '\n')
	}
	g.line = g.line[:0]
	g.start = g.pos
	return g.pos-g.from < maxSearch && len(g.data) < g.limit
}

func (g *grep) result() ([]byte, int64) {
	if g.start < g.pos {
		g.endLine() // the text ended without a newline
	}
	return g.data, g.start
}
