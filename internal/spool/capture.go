package spool

import (
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// marker stands between the head and the tail of a stream that was cut.
const marker = "... (output truncated)\n"

// capture holds the beginning and the end of one stream.
type capture struct {
	head []byte // the first bytes, at most a budget
	tail []byte // once head is full: the newest bytes, at least the tail's part
	cut  bool   // bytes between head and tail never came: either may be short
}

// skip notes that bytes come later than those that were missed.
func (c *capture) skip() { c.cut, c.tail = true, nil }

// parts divides a budget into head and tail, with room for the marker and the
// newline that it may need.
func parts(budget int) (head, tail int) {
	rest := budget - len(marker) - 1
	return rest - rest/2, rest / 2
}

func (c *capture) add(p []byte, budget int) {
	n := 0
	if !c.cut {
		n = min(budget-len(c.head), len(p))
	}
	c.head = append(c.head, p[:n]...)
	p = p[n:]
	if len(p) == 0 {
		return
	}
	_, keep := parts(budget)
	if c.tail == nil {
		c.tail = make([]byte, 0, 2*keep)
		if !c.cut {
			c.tail = append(c.tail, c.head[len(c.head)-keep:]...)
		}
	}
	p = p[max(0, len(p)-keep):]
	if len(c.tail)+len(p) > cap(c.tail) {
		// The older half goes: each byte is moved once at most.
		c.tail = c.tail[:copy(c.tail, c.tail[len(c.tail)-keep:])]
	}
	c.tail = append(c.tail, p...)
}

func (c *capture) output(total int64, budget int) cove.Output {
	o := cove.Output{Bytes: total, Truncated: c.cut || total > int64(budget)}
	if !o.Truncated {
		o.Data = append([]byte(nil), c.head...)
		return o
	}
	h, t := parts(budget)
	head, tail := trimEnd(c.head[:min(h, len(c.head))]), trimStart(c.tail[max(0, len(c.tail)-t):])
	o.Data = append(make([]byte, 0, budget), head...)
	if n := len(head); n > 0 && head[n-1] != '\n' {
		o.Data = append(o.Data, '\n')
	}
	o.Data = append(o.Data, marker...)
	o.Data = append(o.Data, tail...)
	return o
}

// trimEnd takes away a character that was cut in two, if p is UTF-8 otherwise.
func trimEnd(p []byte) []byte {
	for n := range min(utf8.UTFMax, len(p)+1) {
		if cut := p[:len(p)-n]; utf8.Valid(cut) {
			return cut
		}
	}
	return p
}

func trimStart(p []byte) []byte {
	for n := range min(utf8.UTFMax, len(p)+1) {
		if utf8.Valid(p[n:]) {
			return p[n:]
		}
	}
	return p
}
