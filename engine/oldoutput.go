package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

// oldOutput is what is kept of a program that has ended.
type oldOutput struct {
	l     *lease
	name  string // of its file, which begins with the session
	id    string // which begins with a time
	bytes cove.Bytes
	log   *spool.Log // of a program in the foreground
	pr    *process   // a program in the background
}

// droppingOutput does what needs room on the disk, and where it is short of some, again
// without the oldest output of the tenant.
func (e *Engine) droppingOutput(ctx context.Context, tenant string, try func() (short cove.Bytes, err error)) error {
	for range maxOutputs { // others may take what it makes free
		short, err := try()
		if short <= 0 || !e.dropOldOutput(ctx, tenant, short) {
			return err
		}
	}
	_, err := try()
	return err
}

// dropOldOutput removes the oldest output that a tenant keeps of programs that have
// ended, until it keeps so much less. Where all of it is less, none is removed.
func (e *Engine) dropOldOutput(ctx context.Context, tenant string, least cove.Bytes) bool {
	var all []oldOutput
	var sum cove.Bytes
	for _, l := range e.snapshotLeases() {
		if l.tenant != tenant {
			continue
		}
		for _, o := range l.oldOutputs() {
			o.bytes = e.diskCounted(diskItem{diskOutput, o.name})
			if o.pr != nil {
				o.bytes += e.diskCounted(keptItem(l.id, o.pr.x.keep))
			}
			if o.bytes == 0 || o.pr != nil && o.bytes < leastItem { // its result is worth more
				continue
			}
			all = append(all, o)
			sum += o.bytes
		}
	}
	if sum < least {
		return false
	}
	slices.SortFunc(all, func(a, b oldOutput) int { return strings.Compare(a.id, b.id) })
	for i := 0; least > 0; i++ {
		if err := e.dropOutput(ctx, all[i]); err != nil {
			e.cfg.Logger.ErrorContext(ctx, "remove old output", errAttr(err), sessionAttr(all[i].l.id))
			return false
		}
		least -= all[i].bytes
	}
	return true
}

// oldOutputs are those of a session. Programs in the background of a paused session
// are not among them: its provider does not answer.
func (l *lease) oldOutputs() []oldOutput {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []oldOutput
	for _, name := range l.stored {
		_, id, _ := strings.Cut(name, "-")
		all = append(all, oldOutput{l: l, name: name, id: id})
	}
	for _, k := range l.outputs {
		all = append(all, oldOutput{l: l, name: outputName(l.id, k.id), id: string(k.id), log: k.log})
	}
	for _, pr := range l.procs {
		if pr.isOver() && l.rec.State != cove.Paused {
			all = append(all, oldOutput{l: l, name: outputName(l.id, pr.x.id), id: string(pr.x.id), pr: pr})
		}
	}
	return all
}

// dropOutput removes one, unless another caller has.
func (e *Engine) dropOutput(ctx context.Context, o oldOutput) error {
	l := o.l
	l.mu.Lock()
	if o.pr != nil && l.procs[o.pr.info.PID] != o.pr {
		l.mu.Unlock()
		return nil
	}
	l.stored = slices.DeleteFunc(slices.Clone(l.stored), func(name string) bool { return name == o.name })
	l.outputs = slices.DeleteFunc(slices.Clone(l.outputs), func(k kept) bool { return k.log == o.log })
	if o.pr != nil {
		delete(l.procs, o.pr.info.PID)
	}
	sandbox := l.sandbox
	l.mu.Unlock()
	switch {
	case o.pr != nil:
		e.dropPrograms(ctx, l, sandbox, []*process{o.pr})
		return nil
	case o.log != nil:
		return o.log.Remove()
	}
	return e.removeOutput(o.name)
}
