package pyrun_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/datarun/pyrun"
	"github.com/cove-sandbox/cove/internal/kernel"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
	"github.com/cove-sandbox/cove/provider/alltest"
)

//go:embed testdata/attacks.py
var attacksPy string

// target is what attacks are aimed at.
type target struct {
	dir string // with what they may not touch, and a table
	pid int    // of a process that is not the interpreter's
}

func (g target) question() pyrun.Question {
	table, scratch := path.Join(g.dir, "orders.csv"), path.Join(g.dir, "scratch")
	return pyrun.Question{
		Code:    fmt.Sprintf("OUTSIDE, TABLE, SCRATCH, PID, EXEC = %q, %q, %q, %d, True\n", g.dir, table, scratch, g.pid) + attacksPy,
		Timeout: time.Minute, MaxRows: 100, MaxOutput: 16 << 10, Scratch: scratch,
		Tables: []pyrun.Table{{Name: "orders", Path: table, Format: pyrun.CSV}},
	}
}

// outcomes are what came of the attacks, by name.
func outcomes(t *testing.T, rows []json.RawMessage) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, row := range rows {
		var one [2]string
		if err := json.Unmarshal(row, &one); err != nil {
			t.Fatal(err)
		}
		out[one[0]] = one[1]
	}
	return out
}

// stopped wants the attacks to have been stopped by the kernel.
func stopped(t *testing.T, a *cove.RunAnswer) {
	t.Helper()
	if a.Error != nil {
		t.Fatalf("%+v %s", a.Error, a.Stderr)
	}
	got := outcomes(t, a.Rows)
	for _, name := range attackNames("PROCESSES") {
		if got[name] != "PermissionError 1" {
			t.Errorf("%s: %q, where the filter was to refuse it", name, got[name])
		}
	}
	if got["exec"] != "PermissionError 1" {
		t.Errorf("exec: %q, where the filter was to refuse it", got["exec"])
	}
	for _, name := range attackNames("FILES") {
		if by := got[name]; a.Confined == cove.Hard && by != "PermissionError 13" && by != "OSError 18" { // a link between directories
			t.Errorf("%s: %q, where landlock was to refuse it", name, by)
		}
	}
}

// attackNames are the names of attacks of one kind.
func attackNames(kind string) []string {
	_, text, _ := strings.Cut(attacksPy, "\n"+kind+" = {\n")
	text, _, _ = strings.Cut(text, "\n}\n")
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^    "([^"]+)": lambda`).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// TestAttacksOfCode: code that got past the policy, with every builtin at hand, starts no
// process, opens no socket and no file but its own. Without the confinement each attack
// succeeds.
func TestAttacksOfCode(t *testing.T) {
	if err := landlock.Probe(); err != nil {
		t.Skip(err)
	}
	h := newHost(t)
	victim := exec.Command("/bin/sleep", "60")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	g := target{h.Dir, victim.Process.Pid}
	for _, name := range []string{"orders.csv", "other.csv", "gone.csv"} {
		if err := os.WriteFile(filepath.Join(h.Dir, name), []byte(orders), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	q := g.question()
	r, err := pyrun.Run(t.Context(), kernelsIn(h), h, q)
	if err != nil {
		t.Fatal(err)
	}
	if r.Answer.Confined != cove.Hard {
		t.Errorf("the code is confined %q", r.Answer.Confined)
	}
	stopped(t, r.Answer)
	free(t, h, q)
}

// free runs the attacks without a confinement: all of them are real.
func free(t *testing.T, h *host, q pyrun.Question) {
	t.Helper()
	k, err := kernel.New().Open(t.Context(), h, cove.KernelSpec{Language: "python"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.Close(t.Context()) }()
	code := strings.Replace(q.Code, ", True\n", ", False\n", 1) + "\nimport json\nprint(json.dumps(result_rows))"
	_ = os.RemoveAll(q.Scratch)
	if err := os.Mkdir(q.Scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	var said []byte
	out, err := k.Run(t.Context(), cove.KernelRun{Code: code, Limits: cove.Limits{Wall: time.Minute}, OnOutput: func(c cove.Chunk) { said = append(said, c.Data...) }})
	if err != nil || out.Error != nil {
		t.Fatalf("%v %+v", err, out)
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(said, &rows); err != nil {
		t.Fatalf("%s: %v", said, err)
	}
	for name, got := range outcomes(t, rows) {
		guarded := name == "ptrace" || name == "memory of others" // from users other than root, by kernel.yama.ptrace_scope
		if got != "done" && (!guarded || os.Getuid() == 0) {
			t.Errorf("%s is no attack: without a confinement it comes to %q", name, got)
		}
	}
}

// TestAttacksInSandboxes: the same in the sandboxes of each provider.
func TestAttacksInSandboxes(t *testing.T) {
	newHost(t) // which has pandas
	alltest.Each(t, func(t *testing.T, p cove.Provider) {
		s := alltest.Sandbox(t, p, 512*cove.MiB)
		for _, name := range []string{"orders.csv", "other.csv", "gone.csv"} {
			if err := s.Files().Write(t.Context(), "/workspace/"+name, strings.NewReader(orders), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r, err := pyrun.Run(t.Context(), kernel.New(), s, target{"/workspace", 1}.question())
		if err != nil {
			t.Fatal(err)
		}
		want := cove.Hard
		if landlock.Probe() != nil || p.Name() == "gvisor" {
			want = cove.Soft
		}
		if r.Answer.Confined != want {
			t.Errorf("the code is confined %q, want %q", r.Answer.Confined, want)
		}
		stopped(t, r.Answer)
	})
}

// TestNoCodeOutsideLandlock: landlock binds one thread, so code does not run where there
// are more.
func TestNoCodeOutsideLandlock(t *testing.T) {
	if err := landlock.Probe(); err != nil {
		t.Skip(err)
	}
	h := newHost(t)
	r, err := pyrun.Run(t.Context(), threaded{kernelsIn(h)}, h, pyrun.Question{Code: "print('ran')", Timeout: time.Minute, MaxRows: 5, MaxOutput: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	const want = "the code was not run, because the kernel could not confine it: its interpreter has 2 threads, and should have one before the code runs"
	if e := r.Answer.Error; e == nil || e.Type != cove.RunUnavailable || e.Message != want || r.Answer.Stdout != "" {
		t.Errorf("%+v, printed %q", e, r.Answer.Stdout)
	}
}

// threaded starts interpreters that have one thread more before they are asked.
type threaded struct{ cove.Kernels }

func (k threaded) Open(ctx context.Context, in cove.Starter, spec cove.KernelSpec) (cove.Kernel, error) {
	one, err := k.Kernels.Open(ctx, in, spec)
	return late{one}, err
}

type late struct{ cove.Kernel }

func (k late) Adopt(ctx context.Context, dir string, env map[string]string) error {
	if err := k.Kernel.Adopt(ctx, dir, env); err != nil {
		return err
	}
	_, err := k.Kernel.Run(ctx, cove.KernelRun{Code: "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"})
	return err
}

// TestScratch: what analyses do goes on working, and the code has a directory for files.
func TestScratch(t *testing.T) {
	codes := []string{
		"import tempfile\nwith tempfile.NamedTemporaryFile('w+') as f:\n    orders.to_csv(f.name)\n    n = len(pd.read_csv(f.name))",
		"import os, tempfile\nd = tempfile.gettempdir()\norders.to_pickle(d + '/a')\nos.mkdir(d + '/b')\nos.rename(d + '/a', d + '/b/a')\nn = len(pd.read_pickle(d + '/b/a'))",
		"import socket\na, b = socket.socketpair()\na.send(b'abc')\nn = len(b.recv(9))\na.close()\nb.close()",
		"import threading\nout = []\nt = threading.Thread(target=lambda: out.append(len(orders)))\nt.start()\nt.join()\nn = out[0]",
		"from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as p:\n    n = list(p.map(len, [orders, orders]))[1]",
		"n = pd.to_datetime(pd.Series(['2020-06-01'] * 3)).dt.tz_localize('Europe/Berlin').dt.tz_convert('Asia/Tokyo').shape[0]",
		"n = (np.linalg.inv(np.eye(3)) @ np.random.default_rng(1).normal(size=(3, 3))).shape[0]",
		"n = len(orders.eval('amount * 2'))",
		"try:\n    import matplotlib\nexcept ImportError:\n    n = 3\nelse:\n    import os, tempfile\n    to = tempfile.gettempdir() + '/a.png'\n" +
			"    orders.plot(y='amount', title='Amounts').figure.savefig(to)\n    n = 3 if os.path.getsize(to) > 1000 else 0",
		"n = len(dfs['late'])",
	}
	a := ask(t, "result_rows = []\nfor text in "+pythonList(t, codes)+":\n    home = dict(globals())\n    exec(text, home)\n    result_rows.append([home['n']])\nimport asyncio\nawait asyncio.sleep(0)",
		map[string]string{"orders.csv": orders, "late.csv": orders}, func(q *pyrun.Question) { q.Scratch, q.MaxRows = t.TempDir()+"/scratch", 100 }).Answer
	if got, want := fmt.Sprintf("%s", a.Rows), "["+strings.TrimSpace(strings.Repeat("[3] ", len(codes)))+"]"; a.Error != nil || got != want || a.Stderr != "" {
		t.Errorf("%+v %s %s", a.Error, got, a.Stderr)
	}
}

// TestNumbersOfCalls: the filter is about the calls that it names.
func TestNumbersOfCalls(t *testing.T) {
	text, err := os.ReadFile("confine.py")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"([a-z0-9_]+)": \((\d+), (\d+|None)\)`).FindAllStringSubmatch(string(text), -1)
	if len(found) < 45 {
		t.Errorf("%d calls are found", len(found))
	}
	for _, f := range found {
		column := 2
		if runtime.GOARCH == "arm64" {
			column = 3
		}
		n, ok := seccomp.Number(f[1])
		if got := fmt.Sprint(n); ok && got != f[column] || !ok && f[column] != "None" {
			t.Errorf("%s is %s here, not %s", f[1], got, f[column])
		}
	}
}
