package inprocess_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// bad is code that is bad for its sandbox.
type bad struct {
	name, code string
	raised     string // in the name or the text of the error
	out        string // is in what it writes
	fresh      bool   // the next code has a fresh interpreter
}

// tongue is how to say things in a language.
type tongue struct {
	name    string
	set     string // sets y to 42 and prints it
	print   string // prints y
	endless string
	pids    int // that its interpreter and a few programs need
	bad     []bad
}

// TestBadCode is about code that is bad for its sandbox: what becomes of it, that the
// next code runs, and that it can still be stopped.
func TestBadCode(t *testing.T) {
	tier.Full(t, "provider/local tests the same limits with programs, and agenttool what a model is told")
	needLocal(t)
	p := open(t, inprocess.Config{Home: filepath.Join(t.TempDir(), "home"), Provider: "local", Settings: settings()})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, l := range []tongue{
		{name: "python", set: "y = 42; print(y)", print: "print(y)", endless: "while True: pass", pids: 40, bad: badPython()},
		{name: "node", set: "var y = 42; console.log(y)", print: "console.log(y)", endless: "for (;;) {}", pids: 60, bad: badNode()},
		{name: "bash", set: "y=42; echo $y", print: "echo $y", endless: "while :; do :; done", pids: 60, bad: badBash()},
	} {
		for _, c := range l.bad {
			t.Run(l.name+" "+c.name, func(t *testing.T) { l.survives(t, p, c) })
		}
	}
}

// survives runs bad code in a session of its own, and code after it.
func (l tongue) survives(t *testing.T, p cove.Platform, c bad) {
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{
		Resources: cove.Resources{Memory: 256 * cove.MiB, PIDs: l.pids},
		Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 4 * cove.MiB, Files: 1000},
		Env:       map[string]string{"WORD": "of the session"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	run := func(code string, wall time.Duration) *cove.CodeResult {
		t.Helper()
		r, err := p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: l.name, Code: code, Limits: cove.Limits{Wall: wall}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := run(c.code, 30*time.Second)
	if !strings.Contains(told(r), c.raised) || c.raised == "" && r.Error != nil {
		t.Errorf("it is told as %+v, %q", r.Result, told(r))
	}
	if !strings.Contains(string(r.Stdout.Data), c.out) {
		t.Errorf("it wrote %.200q and %.500q", r.Stdout.Data, r.Stderr.Data)
	}
	next := run(l.set, 30*time.Second)
	if next.Error != nil || string(next.Stdout.Data) != "42\n" || next.Fresh != c.fresh {
		t.Errorf("the next code is told as %+v, %s", next, told(next))
	}
	// Nothing is left with which to stop it but a signal.
	if late := run(l.endless, 200*time.Millisecond); late.Outcome != cove.TimedOut {
		t.Errorf("endless code is told as %+v, %s", late.Result, told(late))
	}
	if kept := run(l.print, 30*time.Second); kept.Error != nil || string(kept.Stdout.Data) != "42\n" {
		t.Errorf("after that the variables are gone: %s", told(kept))
	}
	if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Error(err)
	}
}

func badPython() []bad {
	return []bad{
		{name: "environment", code: "import os; print(os.environ['WORD'], os.getcwd())", out: "of the session /workspace\n"},
		{name: "deletes the workspace", code: "import os, shutil\nos.mkdir('d'); os.chdir('d')\nshutil.rmtree('/workspace', ignore_errors=True)\nprint(os.path.exists('d'))", out: "False"},
		{name: "has no directory", code: "import os\nos.mkdir('d'); os.chdir('d'); os.rmdir('../d')\nos.getcwd()", raised: "FileNotFoundError"},
		{name: "fills the workspace", code: "with open('f', 'wb') as f:\n    while True: f.write(bytes(1 << 16))", raised: "No space left"},
		{name: "too many files", code: "i = 0\nwhile True:\n    open(str(i), 'w').close(); i += 1", raised: "OSError"},
		{name: "takes all memory", code: "x = []\nwhile True: x.append(bytearray(1 << 20))", raised: "emory", fresh: true},
		{name: "starts without end", code: "import subprocess\nwhile True: subprocess.Popen(['sleep', '100'])", raised: "BlockingIOError"},
		{name: "forks without end", code: "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(100)", raised: "BlockingIOError"},
		{name: "threads without end", code: "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(100,)).start()", raised: "can't start new thread"},
		{name: "100 MB of output", code: "import os\nb = b'x' * (1 << 20)\nfor _ in range(100): n = os.write(1, b)\nprint('end')", out: "end"},
		{name: "kills all others", code: "import os, signal\nos.system('sleep 100 &')\nos.kill(-1, signal.SIGKILL)\nprint('alone')", out: "alone"},
		{name: "kills itself", code: "import os\nos.system('sleep 100 &')\nos.kill(os.getpid(), 9)", raised: "KernelDied", fresh: true},
		{name: "15 MB of code", code: "x = '" + strings.Repeat("a", 15_000_000) + "'\nprint(len(x))", out: "15000000"},
	}
}

func badNode() []bad {
	return []bad{
		{name: "environment", code: "console.log(process.env.WORD, process.cwd())", out: "of the session /workspace\n"},
		{name: "deletes the workspace", code: "fs.mkdirSync('d'); process.chdir('d'); fs.rmSync('/workspace/d', {recursive: true}); console.log(fs.existsSync('/workspace/d'))", out: "false\n"},
		{name: "has no directory", code: "fs.mkdirSync('d'); process.chdir('d'); fs.rmdirSync('../d'); process.cwd()", raised: "ENOENT"},
		{name: "fills the workspace", code: "for (;;) fs.appendFileSync('f', Buffer.alloc(65536))", raised: "ENOSPC"},
		{name: "takes all memory", code: "const x = []; for (;;) x.push(Buffer.alloc(1 << 20, 1))", raised: "emory", fresh: true},
		{name: "starts without end", code: "const {spawn} = require('child_process'); for (;;) { const c = spawn('sleep', ['100']); if (!c.pid) await new Promise((_, no) => c.on('error', no)) }", raised: "EAGAIN"},
	}
}

func badBash() []bad {
	return []bad{
		{name: "environment", code: "echo $WORD; pwd", out: "of the session\n/workspace\n"},
		{name: "deletes the workspace", code: "mkdir d; cd d; rm -rf /workspace/d; [[ -d /workspace/d ]] || echo gone", out: "gone\n"},
		{name: "fills the workspace", code: "cat /dev/zero >f 2>err; exit 3"},
		{name: "takes all memory", code: "x=yyyyyyyy; while :; do x=$x$x; done", raised: "emory", fresh: true},
		{name: "exits when full", code: "cat /dev/zero >f; f() { :; }; exit 3"},
	}
}

// told is what a result says of an error.
func told(r *cove.CodeResult) string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Name + ": " + r.Error.Value
}

// TestTooMuchCode: what is too long is not run at all.
func TestTooMuchCode(t *testing.T) {
	p := open(t, inprocess.Config{Home: filepath.Join(t.TempDir(), "home"), Provider: "fake", Settings: settings()})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Contexts(s.ID).Run(t.Context(), cove.CodeRequest{Language: "calc", Code: strings.Repeat("1\n", 25_000_000)})
	if cove.CodeOf(err) != cove.Invalid || !strings.Contains(cove.MessageOf(err), "code: is 50000000 bytes long; the most is 16777216") {
		t.Errorf("50 MB of code are %v", err)
	}
}
