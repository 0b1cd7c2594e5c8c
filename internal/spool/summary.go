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
		return cove.Output{Bytes: l.total[out]}, cove.Output{Bytes: l.total[errs]}
	}
	budget := int(l.cfg.Budget)
	if !l.captured && l.total[out] <= int64(budget) && l.total[errs] <= int64(budget) {
		return l.whole()
	}
	l.capture()
	return l.ends[out].output(l.total[out], budget), l.ends[errs].output(l.total[errs], budget)
}

// whole is for the usual case: short output, which is all in current.
func (l *Log) whole() (stdout, stderr cove.Output) {
	o := [2]cove.Output{{Bytes: l.total[out]}, {Bytes: l.total[errs]}}
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
