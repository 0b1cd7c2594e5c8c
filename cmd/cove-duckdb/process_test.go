//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// process is the executable itself, as make build makes it.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	stderr bytes.Buffer
	id     uint64
}

func startProcess(t *testing.T, env ...string) *process {
	t.Helper()
	path := os.Getenv("COVE_TEST_DUCKDB")
	if path == "" {
		skip(t, "COVE_TEST_DUCKDB does not name the executable: run scripts/test.sh")
	}
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), path)}
	p.cmd.Env = env
	p.cmd.Stderr = &p.stderr
	in, errIn := p.cmd.StdinPipe()
	out, errOut := p.cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, out
	return p
}

func (p *process) ask(r ask.Request) *ask.Answer {
	p.t.Helper()
	p.id++
	r.ID = p.id
	if err := ask.Write(p.in, r); err != nil {
		p.t.Fatal(err)
	}
	var a ask.Answer
	if err := ask.Read(p.out, &a); err != nil {
		p.t.Fatalf("%v, %s", err, &p.stderr)
	}
	return &a
}

func (p *process) open(memory int64, threads int) {
	p.t.Helper()
	for _, r := range []ask.Request{{Verb: ask.VerbOpen, Open: &ask.Open{Memory: memory, Threads: threads}}, {Verb: ask.VerbLoad, Load: &ask.Load{}}} {
		if a := p.ask(r); a.Fault != nil {
			p.t.Fatal(a.Fault)
		}
	}
}

func (p *process) query(sql string) *ask.Answer {
	p.t.Helper()
	return p.ask(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: sql, MaxRows: 10, MaxBytes: 10_000}})
}

// end closes its input and returns its status.
func (p *process) end() int {
	p.t.Helper()
	_ = p.in.Close()
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait() // the state has the status
	return p.cmd.ProcessState.ExitCode()
}

// What needs more memory than there is fails with a sentence, and the process goes on
// with as much of it as before.
func TestMemory(t *testing.T) {
	const memory = 512 << 20
	p := startProcess(t)
	p.open(memory, 2)
	for name, sql := range map[string]string{
		"a long text":  fmt.Sprintf("SELECT repeat('x', %d)", memory),
		"two of them":  fmt.Sprintf("SELECT repeat(repeat('x', 1000), %d) || repeat(repeat('y', 1000), %[1]d)", memory*4/10/1000),
		"a long list":  "SELECT list(i) FROM range(1000000000) r(i)",
		"a large sort": "SELECT count(*) FROM (SELECT a.range, b.range::VARCHAR FROM range(100000) a, range(100000) b ORDER BY 2, 1)",
		"many groups":  "SELECT count(*) FROM (SELECT i::VARCHAR || 'some more text' s, count(*) FROM range(1000000000) r(i) GROUP BY 1)",
	} {
		if a := p.query(sql); a.Fault == nil || a.Fault.Kind != ask.Memory {
			t.Errorf("%s: %+v", name, a.Fault)
		}
		// A text needs the same memory in each run; a hash table does not: it depends on how threads share the work.
		if a := p.query("SELECT length(repeat(repeat('z', 1000), 250000))"); a.Fault != nil || string(a.Rows.Rows[0]) != "[250000000]" {
			t.Fatalf("after %s: %+v", name, a.Fault)
		}
	}
	if status := p.end(); status != 0 {
		t.Errorf("status %d, %s", status, &p.stderr)
	}
}

func TestEndOfProcess(t *testing.T) {
	for name, c := range map[string]struct {
		send   string
		status int
		says   string
	}{
		"nothing":   {"", 0, ""},
		"no frame":  {"hello, there", 2, "not its length"},
		"half one":  {"00000100{", 2, "unexpected EOF"},
		"too large": {"99999999", 2, "larger than"},
		"not JSON":  {"00000004nope", 2, "not the message"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProcess(t)
			if _, err := io.WriteString(p.in, c.send); err != nil {
				t.Fatal(err)
			}
			if status := p.end(); status != c.status || !strings.Contains(p.stderr.String(), c.says) || p.stderr.Len() > 1000 {
				t.Errorf("status %d, %q", status, &p.stderr)
			}
		})
	}
}

func TestTooManyWait(t *testing.T) {
	p := startProcess(t)
	p.open(1<<30, 1)
	go func() {
		for range 100 {
			p.id++
			if ask.Write(p.in, ask.Request{ID: p.id, Verb: ask.VerbQuery, Query: &ask.Query{SQL: "SELECT max(i) FROM range(300000000) r(i)", MaxRows: 1, MaxBytes: 100}}) != nil {
				return
			}
		}
	}()
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait() // the state has the status
	if status := p.cmd.ProcessState.ExitCode(); status != 2 || !strings.Contains(p.stderr.String(), "wait") {
		t.Errorf("status %d, %q", status, &p.stderr)
	}
}

// A crash of it starts no handler of the host, and it has nothing of the process that started it.
func TestSurroundings(t *testing.T) {
	p := startProcess(t, "SECRET=sesame", "HOME=/root", "TZ=Asia/Tokyo")
	p.open(1<<30, 1)
	if a := p.query("SELECT TIMESTAMPTZ '2020-01-02 03:04:05+00'::VARCHAR, current_setting('TimeZone')"); a.Fault != nil || string(a.Rows.Rows[0]) != `["2020-01-02 03:04:05+00","UTC"]` {
		t.Errorf("%+v", a)
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(limits)) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "Max core file size") && fields[4] != "1" || strings.HasPrefix(line, "Max data size") && fields[3] == "unlimited" {
			t.Error(line)
		}
	}
	if a := p.query("FROM sqlite_scan('x', 'y')"); a.Fault == nil || strings.Contains(a.Fault.Message, "root") {
		t.Errorf("%+v", a.Fault)
	}
	if status := p.end(); status != 0 {
		t.Error(status)
	}
}

func TestArguments(t *testing.T) {
	p := startProcess(t)
	_ = p.end()
	for arg, want := range map[string]string{"functions": "aggregate sum\n", "nope": "usage"} {
		out, err := exec.CommandContext(t.Context(), p.cmd.Path, arg).CombinedOutput()
		if !strings.Contains(string(out), want) || (err == nil) != (arg == "functions") {
			t.Errorf("%s: %v, %.200s", arg, err, out)
		}
	}
}

// skip ends a test that lacks something. Where anything must be there, it fails.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("COVE_REQUIRE") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
