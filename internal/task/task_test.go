package task_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/task"
)

var silent = slog.New(slog.DiscardHandler)

func counter(every time.Duration) (task.Task, *int) {
	n := new(int)
	return task.Task{Name: "count", Every: every, Run: func(context.Context) (int64, error) {
		*n++
		return 2, nil
	}}, n
}

func TestRunsAtItsInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tk, n := counter(time.Minute)
		g := task.Start(silent, tk)
		defer g.Close()
		<-time.After(3*time.Minute + time.Second)
		synctest.Wait()
		if *n != 3 {
			t.Errorf("ran %d times in three minutes, want 3", *n)
		}
		st := g.Status()[0]
		if st.Runs != 3 || st.Done != 6 || st.LastDone != 2 || st.State != cove.TaskWaiting || st.LastRun.IsZero() {
			t.Errorf("the status is %+v", st)
		}
	})
}

func TestPauseResumeKick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tk, n := counter(time.Minute)
		g := task.Start(silent, tk)
		defer g.Close()
		if err := g.Control(t.Context(), "", cove.PauseTask); err != nil {
			t.Fatal(err)
		}
		g.Kick("count")
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if *n != 0 || g.Status()[0].State != cove.TaskPaused {
			t.Errorf("a paused task ran %d times and is %s", *n, g.Status()[0].State)
		}
		if err := g.Control(t.Context(), "count", cove.RunTask); err != nil || *n != 1 {
			t.Errorf("running a paused task by hand: %v, %d runs", err, *n)
		}
		if g.Status()[0].State != cove.TaskPaused {
			t.Error("running by hand must not resume the task")
		}
		if err := g.Control(t.Context(), "count", cove.ResumeTask); err != nil {
			t.Fatal(err)
		}
		g.Kick("count")
		g.Kick("nobody")
		synctest.Wait()
		if *n != 2 {
			t.Errorf("a kick gave %d runs, want 2", *n)
		}
	})
}

func TestRestartEndsTheRunUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 10)
		g := task.Start(silent, task.Task{Name: "stuck", Every: time.Minute, Run: func(ctx context.Context) (int64, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return 0, ctx.Err()
		}})
		g.Kick("stuck")
		synctest.Wait()
		if st := g.Status()[0]; st.State != cove.TaskRunning {
			t.Errorf("the state is %s, want running", st.State)
		}
		if err := g.Control(t.Context(), "stuck", cove.RestartTask); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(ended) != 1 || g.Status()[0].State != cove.TaskRunning {
			t.Errorf("after a restart %d runs had ended and the task is %s, want one and running", len(ended), g.Status()[0].State)
		}
		g.Close()
		if g.Status()[0].State != cove.TaskStopped {
			t.Errorf("after Close the task is %s", g.Status()[0].State)
		}
	})
}

func TestErrorsAreKeptAndReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := errors.New("disk on fire")
		g := task.Start(silent, task.Task{Name: "bad", Every: time.Minute, Run: func(context.Context) (int64, error) {
			return 1, cove.Wrap(cove.Unavailable, fail, "the disk is not well")
		}})
		defer g.Close()
		if err := g.Control(t.Context(), "bad", cove.RunTask); !errors.Is(err, fail) {
			t.Errorf("the error is %v", err)
		}
		if got := g.Status()[0].LastError; got != "the disk is not well" {
			t.Errorf("the status shows %q", got)
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if g.Status()[0].Runs < 2 {
			t.Error("an error must not end the task")
		}
	})
}

func TestControlRefusesNonsense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tk, _ := counter(time.Hour)
		g := task.Start(silent, tk, task.Task{Name: "other", Every: time.Hour, Run: tk.Run})
		defer g.Close()
		if err := g.Control(t.Context(), "nobody", cove.RunTask); cove.CodeOf(err) != cove.NotFound {
			t.Errorf("an unknown task gives %v", err)
		}
		if err := g.Control(t.Context(), "", "explode"); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("an unknown verb gives %v", err)
		}
	})
}

func TestRunNowGivesUpWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := task.Start(silent, task.Task{Name: "slow", Every: time.Hour, Run: func(ctx context.Context) (int64, error) {
			<-ctx.Done()
			return 0, nil
		}})
		defer g.Close()
		for range 2 { // the first waits for its reply, the second for its turn
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := g.Control(ctx, "slow", cove.RunTask); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v", err)
			}
			cancel()
		}
	})
}
