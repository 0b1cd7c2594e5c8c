package task

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// loop is one task and its goroutine.
type loop struct {
	task   Task
	logger *slog.Logger
	kick   chan struct{}
	now    chan chan error // a caller that waits for a run

	mu     sync.Mutex
	status cove.TaskStatus    // guarded by mu
	paused bool               // guarded by mu
	cancel context.CancelFunc // guarded by mu; of the run under way
}

func (l *loop) work(ctx context.Context) {
	timer := time.NewTimer(l.task.Every)
	defer timer.Stop()
	defer l.ended()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			l.runUnlessPaused(ctx)
		case <-l.kick:
			l.runUnlessPaused(ctx)
		case reply := <-l.now:
			reply <- l.run(ctx)
		}
		timer.Reset(l.task.Every)
	}
}

func (l *loop) runUnlessPaused(ctx context.Context) {
	l.mu.Lock()
	paused := l.paused
	l.mu.Unlock()
	if paused {
		return
	}
	if err := l.run(ctx); err != nil && ctx.Err() == nil {
		l.logger.ErrorContext(ctx, "background task", slog.String("task", l.task.Name), slog.Any("error", err))
	}
}

func (l *loop) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.cancel = cancel
	l.status.State = cove.TaskRunning
	l.mu.Unlock()

	n, err := l.task.Run(ctx)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = nil
	l.status.State = l.resting()
	l.status.Runs++
	l.status.LastDone = n
	l.status.Done += n
	l.status.LastRun = time.Now()
	l.status.LastError = ""
	if err != nil {
		l.status.LastError = cove.MessageOf(err)
	}
	return err
}

// resting is the state between runs. The caller holds mu.
func (l *loop) resting() cove.TaskState {
	if l.paused {
		return cove.TaskPaused
	}
	return cove.TaskWaiting
}

func (l *loop) control(ctx context.Context, verb cove.TaskVerb) error {
	if verb == cove.RunTask {
		return l.runNow(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = verb == cove.PauseTask
	if l.cancel == nil {
		l.status.State = l.resting()
	}
	if verb == cove.RestartTask {
		if l.cancel != nil {
			l.cancel()
		}
		l.poke()
	}
	return nil
}

func (l *loop) runNow(ctx context.Context) error {
	reply := make(chan error, 1)
	select {
	case l.now <- reply:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *loop) poke() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

func (l *loop) snapshot() cove.TaskStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

func (l *loop) ended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.State = cove.TaskStopped
}
