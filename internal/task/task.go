// Package task runs background work that can be paused, resumed, inspected,
// run at once and restarted.
//
// A [Group] owns one goroutine for each [Task]. It must not know what the work
// is, and it never runs one task twice at the same time.
package task

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Task is work that is done again and again.
type Task struct {
	Name  string
	Every time.Duration
	// Run does the work once and says how many things it dealt with. It stops
	// soon after ctx ends.
	Run func(ctx context.Context) (int64, error)
}

// Group runs tasks until it is closed. Methods are safe for concurrent use.
type Group struct {
	logger *slog.Logger
	stop   context.CancelFunc
	done   sync.WaitGroup
	loops  []*loop
}

// Start runs every task in a goroutine of its own. Each waits its interval
// before its first run.
func Start(logger *slog.Logger, tasks ...Task) *Group {
	ctx, stop := context.WithCancel(context.Background())
	g := &Group{logger: logger, stop: stop}
	for _, t := range tasks {
		l := &loop{
			task: t, logger: logger, kick: make(chan struct{}, 1), now: make(chan chan error),
			status: cove.TaskStatus{Name: t.Name, State: cove.TaskWaiting, Interval: t.Every},
		}
		g.loops = append(g.loops, l)
		g.done.Go(func() { l.work(ctx) })
	}
	return g
}

// Close ends the runs under way and waits for them. It is idempotent.
func (g *Group) Close() {
	g.stop()
	g.done.Wait()
}

// Status describes every task, in the order they were given.
func (g *Group) Status() []cove.TaskStatus {
	all := make([]cove.TaskStatus, 0, len(g.loops))
	for _, l := range g.loops {
		all = append(all, l.snapshot())
	}
	return all
}

// Kick asks a task to run soon, unless it is paused. Many kicks before the run
// starts are one.
func (g *Group) Kick(name string) {
	for _, l := range g.loops {
		if l.task.Name == name {
			l.poke()
		}
	}
}

// Control does one thing to the named task, or to all when name is "". RunTask
// waits for the run and returns its error; the others return at once.
func (g *Group) Control(ctx context.Context, name string, verb cove.TaskVerb) error {
	switch verb {
	case cove.PauseTask, cove.ResumeTask, cove.RunTask, cove.RestartTask:
	default:
		return cove.InvalidField("action", "%.40q is unknown; use pause, resume, run or restart", string(verb))
	}
	found := false
	for _, l := range g.loops {
		if name != "" && name != l.task.Name {
			continue
		}
		found = true
		if err := l.control(ctx, verb); err != nil {
			return err
		}
	}
	if !found {
		return cove.Errorf(cove.NotFound, "there is no background task %.40q; there are %s", name, g.names())
	}
	return nil
}

func (g *Group) names() string {
	names := make([]string, len(g.loops))
	for i, l := range g.loops {
		names[i] = l.task.Name
	}
	return strings.Join(names, ", ")
}
