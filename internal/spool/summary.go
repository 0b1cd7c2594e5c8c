package spool

import (
	"bytes"

	"github.com/cove-sandbox/cove"
)

// Summary returns what an answer holds of each stream: all of it, or its head
// and tail with a line between them that says so, within Config.Budget. Text in
// UTF-8 is not cut within a character. It is right also for what was dropped, and
// can be asked for at any time; after Remove it is empty.
func (l *Log) Summary() (stdout, stderr cove.Output) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.summarize()
}

func (l *Log) summarize() (stdout, stderr cove.Output) {
	if l.summary != nil {
		stdout, stderr = l.summary[out], l.summary[errs]
		stdout.Data, stderr.Data = bytes.Clone(stdout.Data), bytes.Clone(stderr.Data)
		return stdout, stderr
	}
	if l.removed {
		return l.counts(out), l.counts(errs)
	}
	budget := int(l.cfg.Budget)
	if !l.captured && l.total[out] <= int64(budget) && l.total[errs] <= int64(budget) {
		return l.whole()
	}
	l.capture()
	return l.cut(out, budget), l.cut(errs, budget)
}

// counts is what a summary says of a stream beside its text.
func (l *Log) counts(s side) cove.Output { return cove.Output{Bytes: l.total[s], Lines: l.lines[s]} }

// cut is a stream within a budget.
func (l *Log) cut(s side, budget int) cove.Output {
	o := l.ends[s].output(l.total[s], budget)
	o.Lines = l.lines[s]
	return o
}

// whole is for the usual case: short output, which is all in current.
func (l *Log) whole() (stdout, stderr cove.Output) {
	o := [2]cove.Output{l.counts(out), l.counts(errs)}
	for s := range o {
		if n := l.total[s]; n > 0 {
			o[s].Data = make([]byte, 0, n)
		}
	}
	_ = l.current.each(func(s side, from, to int) bool { // runs that we made are never damaged
		o[s].Data = append(o[s].Data, l.current.data[from:to]...)
		return true
	})
	return o[out], o[errs]
}

// Cut returns a text as a summary has it: whole, or its head and tail within a
// budget, and whether something was left out.
func Cut(text string, budget cove.Bytes) (string, bool) {
	budget = max(budget, minBudget)
	if len(text) <= int(budget) {
		return text, false
	}
	var c capture
	c.add([]byte(text), int(budget))
	return string(c.output(int64(len(text)), int(budget)).Data), true
}
