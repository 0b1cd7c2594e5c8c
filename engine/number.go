package engine

import (
	"context"

	"github.com/cove-sandbox/cove"
)

// numberBlock is how many process numbers the record of a session promises at a
// time, so that not every program writes it.
const numberBlock = 64

// number gives out the next process number. The record remembers up to where they
// may have been given out, so that none is used twice even after a crash.
func (e *Engine) number(ctx context.Context, l *lease) (cove.PID, error) {
	l.numbers.Lock()
	defer l.numbers.Unlock()
	l.mu.Lock()
	running := 0
	for _, pr := range l.procs {
		if !pr.isOver() {
			running++
		}
	}
	pid := l.lastPID + 1
	beyond := pid > l.rec.LastPID
	if running < maxRunning && beyond {
		l.rec.LastPID += numberBlock
	}
	l.mu.Unlock()
	if running >= maxRunning {
		return 0, cove.Errorf(cove.Exhausted, "%d programs run in the background of this session already", maxRunning).Remedy("end some first")
	}
	if beyond {
		if err := e.save(ctx, l); err != nil {
			l.change(func(s *cove.Session) { s.LastPID -= numberBlock })
			return 0, err
		}
	}
	l.mu.Lock()
	l.lastPID = pid
	l.mu.Unlock()
	return pid, nil
}
