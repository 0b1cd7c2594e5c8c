package engine

import (
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
	return spool.New(spool.Config{
		Root: e.cfg.Output, Name: outputName(l.id, id),
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
}

// settle puts the output into an answer, and keeps the log if something was cut.
func (l *lease) settle(id cove.OutputID, log *spool.Log, out *cove.Execution) error {
	summarize(id, log, out)
	if out.OutputID == "" {
		return log.Remove()
	}
	return l.keep(id, log)
}

// keep remembers a long output, on disk so that it survives a restart.
func (l *lease) keep(id cove.OutputID, log *spool.Log) error {
	if err := log.Persist(); err != nil {
		return errors.Join(err, log.Remove())
	}
	var old *spool.Log
	l.mu.Lock()
	l.outputs = append(l.outputs, kept{id, log})
	if len(l.outputs) > maxOutputs {
		old = l.outputs[0].log
		l.outputs = l.outputs[1:]
	}
	l.mu.Unlock()
	if old != nil {
		return old.Remove()
	}
	return nil
}

// output finds a kept output, in memory or, after a restart, on disk.
func (l *lease) output(e *Engine, id cove.OutputID) (*spool.Log, error) {
	if log := l.held(id); log != nil {
		return log, nil
	}
	missing := cove.Errorf(cove.NotFound, "there is no kept output %.40q in this session; the last %d are kept", string(id), maxOutputs)
	if !cove.ID(id).Valid() {
		return nil, missing
	}
	log, err := spool.Open(e.cfg.Output, outputName(l.id, id))
	if cove.CodeOf(err) == cove.NotFound {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.outputs = append([]kept{{id, log}}, l.outputs...)
	l.mu.Unlock()
	return log, nil
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
func (l *lease) dropOutputs() {
	l.mu.Lock()
	var logs []*spool.Log
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
}

func removeLogs(logs []*spool.Log) {
	for _, log := range logs {
		_ = log.Remove() // what is left the orphans task removes
	}
}
