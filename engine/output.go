package engine

import (
	"context"
	"errors"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

// maxOutputs is how many long outputs a session keeps; the oldest go first.
const maxOutputs = 64

// kept is the output of one program, under its handle.
type kept struct {
	id  cove.OutputID
	log *spool.Log
}

func outputName(session cove.ID, id cove.OutputID) string { return string(session) + "-" + string(id) }

// newLog returns a log for the output of one program of a session, and the
// handle under which it can be kept.
func (e *Engine) newLog(l *lease, limits cove.Limits, onChunk func(cove.Chunk), onLimit func()) (cove.OutputID, *spool.Log) {
	id := cove.OutputID(cove.NewID())
	return id, e.logOf(l, id, limits, onChunk, onLimit)
}

// logOf is newLog for a handle that is known already.
func (e *Engine) logOf(l *lease, id cove.OutputID, limits cove.Limits, onChunk func(cove.Chunk), onLimit func()) *spool.Log {
	item := diskItem{diskOutput, outputName(l.id, id)}
	return spool.New(spool.Config{
		Root: e.cfg.Output, Name: item.name,
		Resize: func(size int64, must bool) error {
			return e.growDisk(context.Background(), l.tenant, item, cove.Bytes(size), must)
		},
		MaxBytes: e.cfg.OutputKept, Budget: e.cfg.OutputBudget,
		OnChunk: onChunk, Limit: limits.Output, OnLimit: onLimit,
	})
}

// summarize puts what was written into an answer, cut to the budget.
func summarize(id cove.OutputID, log *spool.Log, out *cove.Execution) {
	out.Stdout, out.Stderr = log.Summary()
	if out.Stdout.Truncated || out.Stderr.Truncated {
		out.OutputID = id
	}
	if err := log.Err(); err != nil {
		out.OutputLost = cove.MessageOf(err)
	}
}

// settle puts the output into an answer, and keeps the log if something was cut.
// Where it cannot be kept, the answer says so and has no handle: an error would have
// the caller run the program again.
func (e *Engine) settle(l *lease, id cove.OutputID, log *spool.Log, out *cove.Execution) {
	summarize(id, log, out)
	var err error
	if out.OutputID == "" {
		err = log.Remove()
	} else if err = log.Persist(); err == nil {
		err = e.keep(l, id, log)
	} else {
		out.OutputID, out.OutputLost = "", cove.MessageOf(err)
		err = errors.Join(err, log.Remove())
	}
	if err != nil {
		e.cfg.Logger.Warn("keep the output of a program", errAttr(err), sessionAttr(l.id))
	}
}

// keep remembers a long output, and forgets the oldest where there are too many.
func (e *Engine) keep(l *lease, id cove.OutputID, log *spool.Log) error {
	l.mu.Lock()
	l.outputs = append(l.outputs, kept{id, log})
	var name string
	var old *spool.Log
	switch over := len(l.stored)+len(l.outputs) > maxOutputs; {
	case over && len(l.stored) > 0:
		name, l.stored = l.stored[0], l.stored[1:]
	case over:
		old, l.outputs = l.outputs[0].log, l.outputs[1:]
	}
	l.mu.Unlock()
	if old != nil {
		return old.Remove()
	}
	return e.removeOutput(name)
}

// removeOutput removes the file of an output that an earlier server kept, if there is
// one.
func (e *Engine) removeOutput(name string) error {
	if name == "" {
		return nil
	}
	if err := e.cfg.Output.RemoveAll(name); err != nil {
		return err
	}
	e.freeDisk(diskItem{diskOutput, name})
	return nil
}

// output finds a kept output, in memory or, after a restart, on disk.
func (l *lease) output(e *Engine, id cove.OutputID) (*spool.Log, error) {
	if log := l.held(id); log != nil {
		return log, nil
	}
	missing := cove.Errorf(cove.NotFound, "there is no kept output %.40q in this session; the last %d are kept, and fewer where the tenant needs room on the disk", string(id), maxOutputs)
	if !cove.ID(id).Valid() {
		return nil, missing
	}
	log, err := spool.Open(e.cfg.Output, outputName(l.id, id))
	if cove.CodeOf(err) == cove.NotFound {
		return nil, missing
	}
	return log, err
}

// held finds an output in memory: of a foreground program, or of a background
// one that is still known.
func (l *lease) held(id cove.OutputID) *spool.Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.outputs {
		if k.id == id {
			return k.log
		}
	}
	for _, pr := range l.procs {
		if pr.x.id == id {
			return pr.x.log
		}
	}
	return nil
}

// dropOutputs frees all that programs of the session wrote.
func (e *Engine) dropOutputs(l *lease) {
	l.mu.Lock()
	var logs []*spool.Log
	stored := l.stored
	l.stored = nil
	for _, k := range l.outputs {
		logs = append(logs, k.log)
	}
	for _, pr := range l.procs {
		logs = append(logs, pr.x.log)
	}
	l.outputs = nil
	clear(l.procs)
	l.mu.Unlock()
	removeLogs(logs)
	for _, name := range stored {
		_ = e.removeOutput(name) // what is left the orphans task removes
	}
}

func removeLogs(logs []*spool.Log) {
	for _, log := range logs {
		_ = log.Remove() // what is left the orphans task removes
	}
}
