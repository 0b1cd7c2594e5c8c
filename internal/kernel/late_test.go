package kernel_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/kernel"
)

// TestNodeLateInterrupts: an interrupt that comes when the code it was meant for has
// ended is not one of the code that runs next.
func TestNodeLateInterrupts(t *testing.T) {
	const wait = "while (!require('fs').existsSync('sent')); require('fs').unlinkSync('sent'); "
	for name, c := range map[string]struct {
		code   string
		rounds int
	}{
		"held up on its way": {wait + "undefined", 1},
		// Node hears of this one when it has no time for it any more.
		"kept by Node": {wait + "process.kill(-process.ppid, 'SIGINT')", 12},
	} {
		t.Run(name, func(t *testing.T) {
			nodes(t, func(t *testing.T, js nodejs) {
				b := js.open(t)
				r, _ := b.run("process.ppid")
				parent, err := strconv.Atoi(r.Results[0]["text/plain"])
				if err != nil {
					t.Fatal(err)
				}
				for range c.rounds {
					b.late(parent, c.code)
				}
			})
		})
	}
}

// late interrupts code when what passes interrupts on to it has been stopped, and has
// that go on when other code runs.
func (b *bench) late(parent int, code string) {
	b.t.Helper()
	if err := syscall.Kill(parent, syscall.SIGSTOP); err != nil {
		b.t.Fatal(err)
	}
	var once sync.Once
	_, err := b.k.Run(b.t.Context(), cove.KernelRun{Code: "console.log('begun'); " + code, Limits: cove.Limits{Wall: time.Minute}, OnOutput: func(cove.Chunk) {
		once.Do(func() {
			if err := b.k.Interrupt(b.t.Context()); err != nil {
				b.t.Error(err)
			}
			if err := os.WriteFile(filepath.Join(b.host.Dir, "sent"), nil, 0o600); err != nil {
				b.t.Error(err)
			}
		})
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	goOn := time.AfterFunc(50*time.Millisecond, func() { _ = syscall.Kill(parent, syscall.SIGCONT) })
	defer goOn.Stop()
	b.shows("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)", "'timed-out'")
}

// TestPythonLateInterrupt: one that comes when a program has ended, and its number may
// be that of another, is no other error.
func TestPythonLateInterrupt(t *testing.T) {
	b := python(t)
	got := b.raises(`import os
wait = os.waitpid
def interrupted(pid, how):
    end = wait(pid, how)
    if how == 0: raise KeyboardInterrupt
    return end
os.waitpid = interrupted
os.system("true")`)
	if got.Name != "KeyboardInterrupt" {
		t.Errorf("it is told as %+v", got)
	}
}

// TestLateSenders: a program that is to send an interrupt, and does not come to its
// end, is ended before other code runs.
func TestLateSenders(t *testing.T) {
	for name, c := range map[string]struct {
		deaf  bool // it cannot be ended
		alive bool // the interpreter can be used again
	}{"ends when it is killed": {false, true}, "does not end": {true, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				late := &lateSender{deaf: c.deaf, done: make(chan struct{})}
				host := &puppet{sender: late, play: func(q *part) {
					q.say(q.out, 'H', 0, "2", "2", "3.11.2")
					q.request()
					<-q.interrupted
					q.say(q.err, 'M', 1)
					q.say(q.out, 'D', 1, "130", "0", "0")
					<-q.killed
				}}
				k, err := kernel.New().Open(t.Context(), host, cove.KernelSpec{Language: "python"})
				if err != nil {
					t.Fatal(err)
				}
				r, err := k.Run(t.Context(), cove.KernelRun{Code: "...", Limits: cove.Limits{Wall: time.Second}})
				if err != nil || r.Outcome != cove.TimedOut {
					t.Errorf("the code ended as %+v, %v", r, err)
				}
				if !late.killed || k.Alive() != c.alive {
					t.Errorf("the sender was killed: %v; the interpreter can be used: %v", late.killed, k.Alive())
				}
				if err := k.Close(t.Context()); err != nil {
					t.Error(err)
				}
				synctest.Wait()
			})
		})
	}
}

// lateSender is a program that does not end by itself.
type lateSender struct {
	part
	deaf, killed bool
	done         chan struct{}
}

func (l *lateSender) Wait(ctx context.Context) (cove.Result, error) {
	select {
	case <-l.done:
		return cove.Result{}, nil
	case <-ctx.Done():
		return cove.Result{}, ctx.Err()
	}
}

func (l *lateSender) Kill(context.Context) error {
	if !l.killed && !l.deaf {
		close(l.done)
	}
	l.killed = true
	return nil
}
