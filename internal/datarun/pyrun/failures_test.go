package pyrun_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/datarun/pyrun"
)

// TestFailures: what goes wrong in the code has one type, and says where.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		code   string
		kind   string
		want   string
		stderr string // a part of it
	}{
		"an exception": {"x = 1\n\nraise ValueError('no')", cove.RunPythonFailed, "ValueError: no (line 3)", `File "<run>", line 3`},
		"a refusal of the kernel": {
			"import os\nos.fork()", cove.RunPythonFailed, "PermissionError: [Errno 1] Operation not permitted (line 2); the kernel lets code over data start no process and " +
				"open no socket, read no file but its tables and write only below tempfile.gettempdir()", "",
		},
		"death":              {"import os\nos.kill(os.getpid(), 9)", cove.RunPythonFailed, "the interpreter ended by itself (signal KILL); its variables are gone, and the next call starts a fresh one", ""},
		"a teller that lies": {"import sys\nsys.modules['cove_run'] = lambda: 5", cove.RunInternalError, "the interpreter's answer cannot be understood: the code may have changed what tells its result", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, c.code, nil).Answer
			if diff := cmp.Diff(&cove.RunError{Type: c.kind, Message: c.want}, a.Error); diff != "" || a.Status != "error" || a.Rows == nil || a.Columns == nil {
				t.Errorf("%s %s %s", a.Status, diff, a.Stderr)
			}
			if !strings.Contains(a.Stderr, c.stderr) {
				t.Errorf("stderr is %q", a.Stderr)
			}
		})
	}
}

func TestTimeouts(t *testing.T) {
	a := ask(t, "while True: pass", nil, func(q *pyrun.Question) { q.Timeout = time.Second }).Answer
	if diff := cmp.Diff(&cove.RunError{Type: cove.RunTimeout, Message: "the run took longer than 1s"}, a.Error); diff != "" || a.Status != "timeout" {
		t.Errorf("%s %s", a.Status, diff)
	}
	a = ask(t, "orders", map[string]string{"orders.csv": orders}, func(q *pyrun.Question) {
		q.Tables[0].Path, q.LoadTimeout = pipe(t), time.Second
	}).Answer
	if diff := cmp.Diff(&cove.RunError{Type: cove.RunTimeout, Message: "loading the tables took longer than 1s"}, a.Error); diff != "" || a.Status != "timeout" {
		t.Errorf("%s %s", a.Status, diff)
	}
}

// pipe is a file that nobody ever writes to.
func pipe(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/pipe"
	if err := exec.Command("mkfifo", path).Run(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMemory(t *testing.T) {
	h := newHost(t)
	h.memory = "1500000"
	r, err := pyrun.Run(t.Context(), kernelsIn(h), h, pyrun.Question{Code: "x = np.ones(10**9)", Timeout: time.Minute, MaxRows: 5, MaxOutput: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&cove.RunError{Type: cove.RunPythonFailed, Message: "the code needs more memory than this session has"}, r.Answer.Error); diff != "" {
		t.Error(diff)
	}
}

func TestNoPandas(t *testing.T) {
	h := newHost(t)
	h.flags = []string{"-S"} // without what is installed
	r, err := pyrun.Run(t.Context(), kernelsIn(h), h, pyrun.Question{Code: "1", Timeout: time.Minute, MaxRows: 5, MaxOutput: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Answer.Error; e == nil || e.Type != cove.RunUnavailable || !strings.Contains(e.Message, "use a template with pandas") {
		t.Errorf("%+v", e)
	}
}

// TestTheCallerMayLeave: what runs ends with it.
func TestTheCallerMayLeave(t *testing.T) {
	h := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	i, err := pyrun.Open(ctx, kernelsIn(h), h)
	if err != nil {
		t.Fatal(err)
	}
	if !i.Alive() {
		t.Error("it is not alive")
	}
	cancel()
	if _, err := i.Run(ctx, pyrun.Question{Code: "1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := i.Close(ctx); err != nil || i.Alive() {
		t.Errorf("it is alive: %v", err)
	}
}
