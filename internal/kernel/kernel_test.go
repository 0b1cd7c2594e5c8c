package kernel_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/kernel"
)

// soon is long enough for anything here, and only fails a test.
const soon = 20 * time.Second

// begun runs code that prints a line when it has begun, and returns how it ended.
func (b *bench) begun(ctx context.Context, code string, limits cove.Limits) <-chan end {
	b.t.Helper()
	started, done := make(chan struct{}), make(chan end, 1)
	go func() {
		first := true
		r, err := b.k.Run(ctx, cove.KernelRun{Code: code, Limits: limits, OnOutput: func(cove.Chunk) {
			if first {
				first = false
				close(started)
			}
		}})
		done <- end{r, err}
	}()
	select {
	case <-started:
	case e := <-done:
		b.t.Fatalf("%.80q ended at once: %+v, %v", code, e.result, e.err)
	case <-time.After(soon):
		b.t.Fatalf("%.80q does not begin", code)
	}
	return done
}

type end struct {
	result *cove.CodeResult
	err    error
}

// wait returns how code ended.
func (b *bench) wait(done <-chan end) end {
	b.t.Helper()
	select {
	case e := <-done:
		return e
	case <-time.After(soon):
		b.t.Fatal("the code does not end")
		return end{}
	}
}

func TestInterruptKeepsVariables(t *testing.T) {
	for name, code := range map[string]string{
		"loop":         "print('go')\nwhile True: pass",
		"sleep":        "import time\nprint('go')\ntime.sleep(1000)",
		"child":        "import subprocess\nprint('go')\nsubprocess.run(['sleep', '1000'])",
		"deaf in C":    "import os\nprint('go')\nwhile True: os.system('sleep 1000')",
		"pipe":         "import os\nprint('go')\nos.popen('sleep 1000').read()",
		"await":        "import asyncio\nprint('go')\nawait asyncio.sleep(1000)",
		"lock":         "import threading\nprint('go')\nthreading.Lock().acquire() and threading.Event().wait()",
		"many outputs": "import sys\nwhile True:\n    print('out')\n    print('err', file=sys.stderr)",
		"many values":  "print('go')\nwhile True: display('x' * 5000)",
	} {
		t.Run(name, func(t *testing.T) {
			b := python(t)
			b.run("x = 42")
			done := b.begun(t.Context(), code, cove.Limits{})
			if err := b.k.Interrupt(t.Context()); err != nil {
				t.Fatal(err)
			}
			e := b.wait(done)
			if e.err != nil || e.result.Error == nil || e.result.Error.Name != "KeyboardInterrupt" || e.result.ExitCode != 130 {
				t.Fatalf("interrupted code is %+v, %v", e.result, e.err)
			}
			b.prints("print(x)", "42\n")
		})
	}
}

func TestInterruptOfAnIdleOne(t *testing.T) {
	b := python(t)
	for range 3 {
		if err := b.k.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.prints("print('fine')", "fine\n")
}

func TestTimeLimit(t *testing.T) {
	b := python(t)
	b.run("x = 42")
	r, _ := b.within("while True: pass", cove.Limits{Wall: 100 * time.Millisecond})
	if r.Outcome != cove.TimedOut || r.ExitCode != -1 || r.Error.Name != "TimeoutError" || r.Error.Value != "Code execution timed out after 100ms; the variables are kept" || r.Error.Line != 1 ||
		!strings.HasSuffix(r.Error.Traceback, "TimeoutError: "+r.Error.Value+"\n") {
		t.Fatalf("%+v %+v", r, r.Error)
	}
	b.prints("print(x)", "42\n")
	r, _ = b.within("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", cove.Limits{Wall: 100 * time.Millisecond})
	if r.Outcome != cove.TimedOut || !strings.Contains(r.Error.Value, "its variables are gone") || b.k.Alive() {
		t.Fatalf("%+v %+v", r, r.Error)
	}
}

// TestTimeLimitWhilePaused: code that is late while its session is paused is interrupted
// when that goes on, and its variables are kept.
func TestTimeLimitWhilePaused(t *testing.T) {
	for name, before := range map[string]int{"before the limit": 0, "while it is interrupted": 1} {
		t.Run(name, func(t *testing.T) {
			b := python(t)
			r, _ := b.run("import os, time; x = 42; os.getpid()")
			pid, err := strconv.Atoi(r.Results[0]["text/plain"])
			if err != nil {
				t.Fatal(err)
			}
			looks, on, waits := 0, make(chan struct{}), make(chan struct{})
			ask := cove.KernelRun{Code: "time.sleep(600)", Limits: cove.Limits{Wall: 100 * time.Millisecond}, Paused: func() <-chan struct{} {
				looks++
				switch {
				case looks <= before:
					return nil
				case looks == before+1:
					close(waits)
				}
				select {
				case <-on:
					return nil
				default:
					return on
				}
			}}
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			done := make(chan end, 1)
			go func() {
				r, err := b.k.Run(t.Context(), ask)
				done <- end{r, err}
			}()
			select {
			case <-waits:
			case <-time.After(soon):
				t.Error("nothing asks whether the session is paused")
			}
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			close(on)
			if e := b.wait(done); e.err != nil || e.result.Outcome != cove.TimedOut || !strings.HasSuffix(e.result.Error.Value, "the variables are kept") {
				t.Errorf("%+v, %v", e.result, e.err)
			}
			b.prints("print(x)", "42\n")
		})
	}
}

func TestOutputLimit(t *testing.T) {
	b := python(t)
	b.run("x = 42")
	r, h := b.within("while True: print('y' * 100)", cove.Limits{Wall: soon, Output: 1000})
	if r.Outcome != cove.OutputLimit || h.bytes != 1000 || r.Error == nil || !strings.Contains(r.Error.Value, "wrote more than") {
		t.Fatalf("%+v %+v, %d bytes", r, r.Error, h.bytes)
	}
	b.prints("print(x)", "42\n")
}

// Code that ends at once has passed the limit of output, too.
func TestOutputLimitAtTheEnd(t *testing.T) {
	b := python(t)
	for range 100 {
		if r, h := b.within("print('y' * 100)", cove.Limits{Wall: soon, Output: 10}); r.Outcome != cove.OutputLimit || h.bytes != 10 || !strings.Contains(r.Error.Value, "the variables are kept") {
			t.Fatalf("%+v %+v, %d bytes", r, r.Error, h.bytes)
		}
	}
	r, h := b.within("import os, signal; signal.signal(signal.SIGINT, signal.SIG_IGN); os.write(1, b'y' * 100); os._exit(3)", cove.Limits{Wall: soon, Output: 10})
	if r.Outcome != cove.OutputLimit || h.bytes != 10 || !strings.Contains(r.Error.Value, "its variables are gone") {
		t.Errorf("%+v %+v, %d bytes", r, r.Error, h.bytes)
	}
}

func TestCallerLeaves(t *testing.T) {
	b := python(t)
	b.run("x = 42")
	ctx, leave := context.WithCancel(t.Context())
	done := b.begun(ctx, "print('go')\nwhile True: pass", cove.Limits{})
	leave()
	if e := b.wait(done); !errors.Is(e.err, context.Canceled) {
		t.Fatalf("%+v, %v", e.result, e.err)
	}
	b.prints("print(x)", "42\n")
	if _, err := b.k.Run(ctx, cove.KernelRun{Code: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a run for nobody is %v", err)
	}
}

func TestCloseDuringRun(t *testing.T) {
	b := python(t)
	done := b.begun(t.Context(), "print('go')\nwhile True: pass", cove.Limits{})
	if err := b.k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := b.wait(done)
	if e.err != nil || e.result.Outcome != cove.Killed || e.result.Error == nil || e.result.Error.Name != "KernelDied" {
		t.Errorf("%+v, %v", e.result, e.err)
	}
	if r, _ := b.run("1"); b.k.Alive() || r.Error == nil || r.Error.Name != "KernelDied" || r.ExitCode == 0 {
		t.Errorf("a closed interpreter answers %+v", r)
	}
	if err := b.k.Interrupt(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWarm(t *testing.T) {
	need(t, "/usr/bin/python3")
	b := open(t, cove.KernelSpec{Language: "python", Warm: true, Preload: []string{"decimal", "no_such_module"}, Env: map[string]string{"OWN": "1"}})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.py"), []byte("word = 'mine'"), 0o600); err != nil {
		t.Fatal(err)
	}
	lib := t.TempDir()
	if err := os.WriteFile(filepath.Join(lib, "theirs.py"), []byte("word = 'theirs'"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.k.Adopt(t.Context(), dir, map[string]string{"WORD": "given", "PYTHONPATH": lib, "TZ": "Asia/Tokyo"}); err != nil {
		t.Fatal(err)
	}
	if err := b.k.Adopt(t.Context(), dir, nil); cove.CodeOf(err) != cove.Conflict {
		t.Errorf("adopted twice: %v", err)
	}
	b.prints("import os, sys, time\nprint(os.getcwd(), os.environ['WORD'], os.environ['OWN'], 'decimal' in sys.modules, time.tzname[0])", dir+" given 1 True JST\n")
	b.prints("import mine, theirs; print(mine.word, theirs.word)", "mine theirs\n")
	b.prints("print([n for n in dir() if not n.startswith('__')])", "['mine', 'os', 'sys', 'theirs', 'time']\n")

	lost := open(t, cove.KernelSpec{Language: "python", Warm: true})
	if err := lost.k.Adopt(t.Context(), filepath.Join(dir, "none"), nil); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("adopted into a directory that is not there: %v", err)
	}
	cold := python(t)
	if err := cold.k.Adopt(t.Context(), dir, nil); cove.CodeOf(err) != cove.Conflict {
		t.Errorf("adopted a cold one: %v", err)
	}
	dead := open(t, cove.KernelSpec{Language: "python", Warm: true})
	if err := dead.k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := dead.k.Adopt(t.Context(), dir, nil); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("adopted a dead one: %v", err)
	}
}

func TestLanguages(t *testing.T) {
	for _, word := range kernel.New().Languages() {
		if cove.Language(word) != word {
			t.Errorf("%s is not the one name of a language", word)
		}
	}
}

func TestOpenFails(t *testing.T) {
	h := newHost(t)
	open := func(ctx context.Context, h *host, word string) error {
		_, err := kernel.New().Open(ctx, h, cove.KernelSpec{Language: word})
		return err
	}
	if err := open(t.Context(), h, "cobol"); cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), `"cobol" is unknown; use one of python`) {
		t.Errorf("an unknown language is %v", err)
	}
	broken := errors.New("no")
	if err := open(t.Context(), &host{refuse: broken}, "python"); !errors.Is(err, broken) {
		t.Errorf("a start that fails is %v", err)
	}
	if err := open(t.Context(), &host{Host: h.Host, instead: []string{"/no/such/program"}}, "python"); cove.CodeOf(err) != cove.Unsupported {
		t.Errorf("without the interpreter it is %v", err)
	}
	err := open(t.Context(), &host{Host: h.Host, instead: []string{"sh", "-c", "echo it is broken >&2; exit 3"}}, "python")
	if cove.CodeOf(err) != cove.Unavailable || !strings.Contains(err.Error(), "it is broken") || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("an interpreter that ends is %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := open(ctx, &host{Host: h.Host, instead: []string{"sleep", "1000"}}, "python"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an interpreter that says nothing is %v", err)
	}
}
