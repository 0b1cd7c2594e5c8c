package wire_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

func marshal(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestAListOfNothingIsAList: programs go through it without looking first.
func TestAListOfNothingIsAList(t *testing.T) {
	if text := marshal(t, wire.StatsOf(&cove.Stats{})); !strings.Contains(text, `"volumes":[]`) {
		t.Error(text)
	}
}

// TestForms pins the names that users see.
func TestForms(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		form any
		want string
	}{
		"an empty spec": {wire.SpecOf(cove.Spec{}), `{}`},
		"a spec": {
			wire.SpecOf(cove.Spec{
				Resources: cove.Resources{CPUs: 1, Memory: cove.GiB, PIDs: 5}, Idle: 30 * time.Minute, Lifetime: 90 * time.Second,
				Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"pypi.org"}}, Workspace: cove.Workspace{Kind: cove.WorkspaceDisk, Size: 512 * cove.KiB, Files: 9},
				Require: cove.Require{Isolation: cove.BoundaryMicroVM}, Floors: []cove.Limit{cove.LimitCPU},
			}),
			`{"memory_limit":"1g","cpu_limit":"1.0","pids_limit":5,"timeout_minutes":30,"lifetime_minutes":1.5,"network":{"mode":"allow","allow":["pypi.org"]},` +
				`"workspace":{"kind":"disk","size_mb":0.5,"files":9},"require":{"isolation":"microvm"}}`,
		},
		"half a processor": {wire.SpecOf(cove.Spec{Resources: cove.Resources{CPUs: 0.5}}), `{"cpu_limit":"0.5"}`},
		"a session": {
			wire.SessionOf(&cove.Session{ID: "s", Tenant: "t", Owner: "o", State: cove.Running, Created: true, Provider: "p", Node: "n", Version: 2, CreatedAt: at, LastActivity: at, ExpiresAt: at}),
			`{"sandbox_id":"s","session_id":"s","status":"running","busy":false,"created":true,"provider":"p",` +
				`"isolation":{"boundary":"","network":"","memory":"","cpu":"","pids":"","disk":"","files":"","policy":""},"workspace_path":"/workspace","workspace_dir":"/workspace","user":"sandbox",` +
				`"resource_limits":{},"created_at":"2026-01-02T03:04:05Z","last_activity":"2026-01-02T03:04:05Z","expires_at":"2026-01-02T03:04:05Z",` +
				`"tenant":"t","owner":"o","node_id":"n","version":2,"spec":{}}`,
		},
		"an execution": {
			wire.ExecutionOf(&cove.Execution{Result: cove.Result{Outcome: cove.Exited, Wall: 1500 * time.Microsecond}, Stdout: cove.Output{Data: []byte("hi\n"), Bytes: 3}, Provider: "p", Session: "s", Recreated: true, Restarted: true}),
			`{"exit_code":0,"status":"success","outcome":"exited","stdout":"hi\n","stderr":"","stdout_bytes":3,"stderr_bytes":0,"stdout_lines":0,"stderr_lines":0,"truncated":false,"execution_time_ms":1.5,"cpu_time_ms":0,"provider":"p","session_id":"s","session_recreated":true,"session_restarted":true}`,
		},
		"bytes": {
			wire.ExecutionOf(&cove.Execution{Result: cove.Result{Outcome: cove.TimedOut, ExitCode: -1}, Stdout: cove.Output{Data: []byte{255}, Bytes: 1, Truncated: true}, OutputID: "o"}),
			`{"exit_code":-1,"status":"timeout","outcome":"timed_out","stdout_base64":"/w==","stderr":"","stdout_bytes":1,"stderr_bytes":0,"stdout_lines":0,"stderr_lines":0,"truncated":true,"stdout_truncated":true,"output_id":"o","execution_time_ms":0,"cpu_time_ms":0,"provider":"","session_id":""}`,
		},
		"a line":   {wire.ExecRequestOf(cove.ExecRequest{Line: "ls"}, nil), `{"command":"ls"}`},
		"an argv":  {wire.ExecRequestOf(cove.ExecRequest{Argv: []string{"ls", "-l"}}, []byte("x")), `{"command":["ls","-l"],"stdin":"x"}`},
		"a change": {wire.ChangeOf(cove.Change{Kind: cove.Watching}), `{"kind":"watching"}`},
		"a move":   {wire.ChangeOf(cove.Change{Kind: cove.Removed, Path: "/f", Moved: true}), `{"kind":"removed","path":"/f","moved":true}`},
		"a chmod":  {wire.ChangeOf(cove.Change{Kind: cove.Modified, Path: "/f", Attributes: true}), `{"kind":"modified","path":"/f","attributes":true}`},
		"a file": {
			wire.FileOf(cove.FileInfo{Path: "/workspace/f", Size: 3, Mode: 0o640, Modified: at, UID: 1000, GID: -1, Meta: map[string]string{"k": "v"}}),
			`{"path":"/workspace/f","type":"file","size":3,"mode":"0640","modified":"2026-01-02T03:04:05Z","uid":1000,"meta":{"k":"v"}}`,
		},
		"a run": {
			wire.RunOf(&cove.Run{ID: "r", State: cove.RunSucceeded, CreatedAt: at, Answer: &cove.RunAnswer{Status: "success", Columns: []string{"a"}, Rows: []json.RawMessage{json.RawMessage(`[1]`)}, RowCount: 1, Wall: time.Millisecond}}),
			`{"run_id":"r","state":"succeeded","status":"success","columns":["a"],"rows":[[1]],"row_count":1,"exec_time_ms":1,"stdout_trunc":"","stderr_trunc":"","error":null,"provider":"","request":{"query_type":""},"tenant":"","owner":"","node_id":"","created_at":"2026-01-02T03:04:05Z"}`,
		},
		"a closed session": {wire.ClosedOf("s", ""), `{"sandbox_id":"s","session_id":"s","status":"ended"}`},
	} {
		if diff := cmp.Diff(c.want, marshal(t, c.form)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestStatuses(t *testing.T) {
	want := map[cove.Outcome]wire.Status{
		cove.Exited: wire.Success, cove.Signaled: wire.Failure, cove.TimedOut: wire.TimedOut, cove.OutOfMemory: wire.Failure,
		cove.OutputLimit: wire.Failure, cove.Blocked: wire.IsBlocked, cove.Killed: wire.Failure,
	}
	for _, o := range cove.Outcomes() {
		if got := wire.ExecutionOf(&cove.Execution{Result: cove.Result{Outcome: o}}).Status; got != want[o] {
			t.Errorf("%s is %q, want %q", o, got, want[o])
		}
	}
	if got := wire.ExecutionOf(&cove.Execution{Result: cove.Result{Outcome: cove.Exited, ExitCode: 1}}).Status; got != wire.Failure {
		t.Errorf("exit code 1 is %q", got)
	}
}

func TestSuccessOfCode(t *testing.T) {
	ok := cove.Execution{Result: cove.Result{Outcome: cove.Exited}}
	w := wire.CodeResultOf("s", &cove.CodeResult{Execution: ok, Context: "c", Results: []cove.Rich{{"text/plain": "1", "image/png": "AA==", "application/x-own": "z"}}})
	if !w.Success || w.SessionID != "s" {
		t.Errorf("%+v", w)
	}
	if diff := cmp.Diff([]map[string]string{{"text": "1", "png": "AA==", "application/x-own": "z"}}, w.Results); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]cove.Rich{{"text/plain": "1", "image/png": "AA==", "application/x-own": "z"}}, w.Cove().Results); diff != "" {
		t.Error(diff)
	}
	if wire.CodeResultOf("s", &cove.CodeResult{Execution: ok, Error: &cove.CodeError{Name: "E"}}).Success {
		t.Error("code that raised is a success")
	}
}

func TestModes(t *testing.T) {
	for _, mode := range []fs.FileMode{
		0, 0o777, 0o4755&0o777 | fs.ModeSetuid, fs.ModeDir | fs.ModeSticky | 0o777, fs.ModeSymlink | 0o777, fs.ModeNamedPipe | 0o600, fs.ModeSocket,
		fs.ModeDevice | 0o660, fs.ModeDevice | fs.ModeCharDevice | 0o666, fs.ModeIrregular,
	} {
		if got := wire.FileOf(cove.FileInfo{Mode: mode}).Cove().Mode; got != mode {
			t.Errorf("%v came back as %v", mode, got)
		}
	}
	if w := wire.FileOf(cove.FileInfo{Mode: fs.ModeDir | fs.ModeSymlink}); w.Type != "other" {
		t.Errorf("a file of two types is %q", w.Type)
	}
	if got := (wire.File{Type: "file", Mode: "nonsense"}).Cove().Mode; got != 0 {
		t.Errorf("nonsense is %v", got)
	}
}

func TestMaintenance(t *testing.T) {
	task := func(name string, state cove.TaskState, err string) cove.TaskStatus {
		return cove.TaskStatus{Name: name, State: state, LastError: err, LastDone: 4}
	}
	for want, tasks := range map[string][]cove.TaskStatus{
		"running":       {task("expiry", cove.TaskWaiting, ""), task("pool", cove.TaskRunning, "")},
		"paused":        {task("expiry", cove.TaskPaused, ""), task("pool", cove.TaskStopped, "")},
		"partly_paused": {task("expiry", cove.TaskPaused, ""), task("pool", cove.TaskRunning, "")},
		"failing":       {task("expiry", cove.TaskPaused, ""), task("pool", cove.TaskRunning, "disk full")},
	} {
		if w := wire.MaintenanceOf(tasks); w.OverallStatus != want || w.OrphansRemoved != nil {
			t.Errorf("%+v, want %s", w, want)
		}
	}
	if w := wire.CleanupOf([]cove.TaskStatus{task("orphans", cove.TaskWaiting, "")}); w.OrphansRemoved == nil || *w.OrphansRemoved != 4 {
		t.Errorf("%+v", w)
	}
	if w := wire.CleanupOf([]cove.TaskStatus{task("pool", cove.TaskWaiting, "")}); w.OrphansRemoved != nil {
		t.Errorf("%+v", w)
	}
}

func TestProblems(t *testing.T) {
	err := cove.Wrap(cove.Conflict, errors.New("hidden"), "no").Reason("why").Remedy("do").With("n", 3)
	err.Op = "session.open"
	p := wire.ProblemOf(err, "req")
	if err.Details["reason"] != "why" {
		t.Error("the error itself was changed")
	}
	want := `{"type":"","title":"","status":0,"code":"conflict","reason":"why","error":"no","remedy":"do","request_id":"req","op":"session.open","details":{"n":3}}`
	if diff := cmp.Diff(want, marshal(t, p)); diff != "" {
		t.Error(diff)
	}
	if !p.Known() || (wire.Problem{Code: "other"}).Known() {
		t.Error("codes are not told apart")
	}
	if e := (wire.Problem{Code: cove.Internal, Error: "x", RequestID: "req"}).Cove(); e.Details["request_id"] != "req" {
		t.Errorf("%+v", e)
	}
	if e := (wire.Problem{Code: cove.Invalid, Error: "x", RequestID: "req"}).Cove(); len(e.Details) != 0 {
		t.Errorf("%+v", e)
	}
	var d wire.Details
	if json.Unmarshal([]byte(`{"big":1e30,"list":[],"n":1}`), &d) != nil || d["big"] != 1e30 || d["n"] != 1 {
		t.Errorf("%v", d)
	}
	if json.Unmarshal([]byte(`[]`), &d) == nil {
		t.Error("a list is taken for details")
	}
}

func TestEncodeRefuses(t *testing.T) {
	bad := "\xff"
	for field, v := range map[string]any{
		"user_id":          wire.SpecOf(cove.Spec{User: bad}),
		"command":          wire.ExecRequestOf(cove.ExecRequest{Argv: []string{"a", bad}}, nil),
		"env":              wire.SpecOf(cove.Spec{Env: map[string]string{"A": bad}}),
		"metadata":         wire.SpecOf(cove.Spec{Metadata: map[string]string{bad: "b"}}),
		"network.allow":    wire.SpecOf(cove.Spec{Network: cove.Network{Allow: []string{bad}}}),
		"volumes.source":   wire.SpecOf(cove.Spec{Volumes: []cove.Volume{{Source: bad}}}),
		"defaults.flavor":  wire.KeyRequestOf(cove.KeyRequest{Defaults: cove.Spec{Flavor: bad}}),
		"files.name":       wire.RunRequestOf(cove.RunRequest{Files: []cove.RunFile{{Name: bad}}}),
		"workspace.kind":   wire.OpenRequestOf(cove.OpenRequest{Spec: cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceKind(bad)}}}),
		"code":             wire.CodeRequestOf(cove.CodeRequest{Code: bad}),
		"name":             wire.SnapshotRequest{Name: bad},
		"signal":           wire.SignalRequest{Signal: bad},
		"id":               wire.ContextRequestOf(cove.ContextSpec{Name: bad}),
		"":                 wire.KeyRequestOf(cove.KeyRequest{Limits: cove.KeyLimit{RatePerSecond: math.Inf(1)}}),
		"thread_id":        wire.ForkRequestOf(cove.ForkRequest{Thread: bad}),
		"quota.sessions.x": nil,
	} {
		data, err := wire.Encode(v)
		if v == nil {
			if err != nil || string(data) != "null" {
				t.Errorf("nothing is encoded as %s, %v", data, err)
			}
			continue
		}
		e, _ := errors.AsType[*cove.Error](err)
		if e == nil || e.Code != cove.Invalid || field != "" && e.Details["field"] != field {
			t.Errorf("%s: %s %v", field, data, err)
		}
	}
	data, err := wire.Encode(wire.ExecRequestOf(cove.ExecRequest{Line: "é\ufffd"}, []byte(bad)))
	if err != nil || string(data) != `{"command":"é�","stdin_base64":"/w=="}` {
		t.Errorf("%s %v", data, err)
	}
}

// TestSpecsGoThereAndBack: whatever the amounts, a spec means the same after
// its way over the wire.
func TestSpecsGoThereAndBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringOf(rapid.Rune())
		span := rapid.Int64Range(0, int64(20*24*time.Hour))
		s := cove.Spec{
			User: text.Draw(r, "user"), Template: text.Draw(r, "template"), Policy: text.Draw(r, "policy"),
			Resources: cove.Resources{
				CPUs: rapid.Float64Range(0, 1024).Draw(r, "cpus"), Memory: cove.Bytes(rapid.Int64Range(0, 1<<46).Draw(r, "memory")), PIDs: rapid.IntRange(0, 1<<22).Draw(r, "pids"),
			},
			Workspace: cove.Workspace{Size: cove.Bytes(rapid.Int64Range(0, 1<<46).Draw(r, "size")), Files: rapid.Int64Range(0, 1<<32).Draw(r, "files")},
			Idle:      time.Duration(span.Draw(r, "idle")), Lifetime: time.Duration(span.Draw(r, "lifetime")),
			Env: rapid.MapOf(text, text).Draw(r, "env"), Ports: rapid.SliceOf(rapid.Int()).Draw(r, "ports"),
		}
		data, err := wire.Encode(wire.SpecOf(s))
		if err != nil {
			r.Fatal(err)
		}
		w, err := wire.Decode[wire.Spec](data)
		if err != nil {
			r.Fatalf("%s: %v", data, err)
		}
		back, err := w.Cove()
		if err != nil {
			r.Fatalf("%s: %v", data, err)
		}
		if diff := cmp.Diff(s, back, cmpopts.EquateEmpty()); diff != "" {
			r.Fatal(diff)
		}
	})
}

func TestNumbersThatAreNone(t *testing.T) {
	for n, want := range map[float64]time.Duration{math.NaN(): 0, math.Inf(1): math.MaxInt64 / 2, math.Inf(-1): -math.MaxInt64 / 2, 2: 2 * time.Second} {
		if got := (wire.Usage{CPUSeconds: n}).Cove().CPU; got/time.Second != want/time.Second {
			t.Errorf("%g is %v", n, got)
		}
	}
	if _, err := (wire.Spec{CPULimit: new(wire.Quantity("NaN"))}).Cove(); !errors.Is(err, cove.Invalid) {
		t.Error(err)
	}
	if _, err := (wire.Session{Spec: wire.Spec{PIDsLimit: new(-1)}}).Cove(); !errors.Is(err, cove.Invalid) {
		t.Error(err)
	}
	if _, err := (wire.Run{Request: wire.RunRequest{MaxRows: new(-1)}}).Cove(); !errors.Is(err, cove.Invalid) {
		t.Error(err)
	}
}

func TestQuestionsToLookAt(t *testing.T) {
	for _, want := range []cove.RunRequest{
		{Type: cove.QuerySQL, SQL: "SELECT 1", Dataset: "d", Files: []cove.RunFile{{Name: "a", Path: "a.csv"}}, Session: "s", Provider: "p"},
		{Type: cove.QueryPython, Python: "1"},
		{Type: cove.QuerySQL},
	} {
		if diff := cmp.Diff(want, wire.AnalyzeRunOf(want).CoveRun()); diff != "" {
			t.Errorf("(-sent +got):\n%s", diff)
		}
	}
	if r := (wire.AnalyzeRequest{}).CoveRun(); r.Type != "" {
		t.Errorf("nothing is %+v", r)
	}
	if a := wire.RunAnalysisOf(&cove.RunDecision{}); a.Effect != cove.Deny || a.Layer != cove.Content || a.CoveRun().Allowed {
		t.Errorf("a refusal is %+v", a)
	}
}

func TestProblemOfARun(t *testing.T) {
	err := cove.RunRequest{}.Validate()
	p := wire.ProblemOf(err, "")
	if p.ErrorType != cove.RunValidation || p.Details["type"] != nil || p.Details["field"] != "query_type" {
		t.Errorf("%+v", p)
	}
	if back := p.Cove(); back.Details["type"] != cove.RunValidation || back.Code != cove.Invalid {
		t.Errorf("%+v", back)
	}
}
