package kernel_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPythonOrphans: what programs leave to the interpreter does not pile up, and the
// code's own processes stay its own.
func TestPythonOrphans(t *testing.T) {
	b := python(t)
	b.prints(`import ctypes, os, subprocess
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER, as in a sandbox
own = [subprocess.Popen("exit 3", shell=True) for _ in range(40)]
pid = os.fork()
if pid == 0:
    os._exit(4)
def states():
    with open("/proc/self/task/%d/children" % os.getpid()) as f:
        return [open("/proc/%s/stat" % k).read().rpartition(")")[2].split()[0] for k in f.read().split()]
for _ in range(60):
    subprocess.run("true &", shell=True)
while set(states()) != {"Z"}:
    pass`, "")
	b.prints("print(len(states()) - len(own))", "17\n")
	b.prints("print({p.wait() for p in own}, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))", "{3} 4\n")
}

// TestPythonSignalsBetweenRuns: a handler that raises, as of an alarm that came too
// late, ends no interpreter.
func TestPythonSignalsBetweenRuns(t *testing.T) {
	b := python(t)
	b.prints("import signal\ndef late(*_): raise TimeoutError('too late')\nx = signal.signal(signal.SIGALRM, late)", "")
	pid, err := strconv.Atoi(b.value("import os\nos.getpid()")["text/plain"])
	if err != nil {
		t.Fatal(err)
	}
	waits := func() bool {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(text), ") S ")
	}
	for tick := time.NewTicker(time.Millisecond); !waits(); {
		<-tick.C
	}
	if err := syscall.Kill(pid, syscall.SIGALRM); err != nil {
		t.Fatal(err)
	}
	r, h := b.run("print('x' in globals())")
	if r.Error != nil || h.stdout() != "True\n" || !strings.Contains(h.all.String(), "TimeoutError: too late") || strings.Contains(h.all.String(), "<cove>") {
		t.Errorf("it wrote %q with the error %+v", h.all.String(), r.Error)
	}
}
