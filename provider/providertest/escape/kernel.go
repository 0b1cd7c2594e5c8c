package escape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// How code starts a program: as most do it, and with as little between as there can
// be. Both tell its status as their value.
const (
	bySubprocess = "import json, subprocess\nsubprocess.run(json.loads(%s)).returncode"
	byFork       = "import json, os\nargv = json.loads(%s)\npid = os.fork()\nif pid == 0: os.execvp(argv[0], argv)\n" +
		"os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
)

// interpreter is the Python of the round's sandbox, which many attacks share.
func (r *round) interpreter(ctx context.Context) (cove.Kernel, error) {
	if k := r.kernels[r.box]; k != nil && k.Alive() {
		return k, nil
	}
	k, err := r.offered.Open(ctx, r.box, cove.KernelSpec{Language: "python"})
	if err != nil {
		return nil, err
	}
	r.kernels[r.box] = k
	return k, nil
}

// closeKernel ends the interpreter of a sandbox, if it has one.
func (a *arena) closeKernel(ctx context.Context, box cove.Sandbox) error {
	k := a.kernels[box]
	delete(a.kernels, box)
	if k == nil {
		return nil
	}
	return k.Close(ctx)
}

// interpret runs a program from inside the interpreter to its end.
func (r *round) interpret(ctx context.Context, limits cove.Limits, how string, argv ...string) (ran, error) {
	k, err := r.interpreter(ctx)
	if err != nil {
		return ran{}, fmt.Errorf("start an interpreter: %w", err)
	}
	words, err := json.Marshal(argv)
	if err != nil {
		return ran{}, err
	}
	code, err := json.Marshal(string(words)) // a string of JSON is one of Python
	if err != nil {
		return ran{}, err
	}
	out := newOutput()
	result, err := k.Run(ctx, cove.KernelRun{Code: fmt.Sprintf(how, code), Limits: limits, OnOutput: func(c cove.Chunk) { _, _ = out.Write(c.Data) }})
	if err != nil {
		return ran{}, fmt.Errorf("run code: %w", err)
	}
	return ran{ended(result), out.String()}, nil
}

// ended is how the program ended that code ran; or how the code did, where it does
// not say.
func ended(r *cove.CodeResult) cove.Result {
	if r.Error != nil || len(r.Results) != 1 {
		return r.Result
	}
	status, err := strconv.Atoi(r.Results[0]["text/plain"])
	out := r.Result
	switch {
	case err != nil:
		out.Outcome = cove.Killed
	case status == -int(syscall.SIGSYS):
		out.Outcome, out.Signal = cove.Signaled, "SYS"
	case status < 0:
		out.Outcome, out.ExitCode = cove.Signaled, 128-status
	default:
		out.ExitCode = status
	}
	return out
}

// attackTwice runs the attacker by both ways that code has of starting it.
func (r *round) attackTwice(ctx context.Context, argv ...string) (verdict, []string) {
	v, facts := heldBy(""), []string(nil)
	for _, how := range []string{bySubprocess, byFork} {
		got, err := r.interpret(ctx, usualLimits, how, argv...)
		if err != nil {
			return failed(err), facts
		}
		w, told := got.verdict()
		v, facts = v.also(w), append(facts, told...)
	}
	return v, facts
}

// errNoInterpreter says that an attack by way of one cannot be made.
var errNoInterpreter = errors.New("no interpreter")

// knock sees that there is an interpreter before an attack is blamed on it.
func (r *round) knock(ctx context.Context) error {
	if r.via != Kernel {
		return nil
	}
	if _, err := r.interpreter(ctx); err != nil {
		if cove.CodeOf(err) == cove.Unsupported {
			return fmt.Errorf("%w: %w", errNoInterpreter, err)
		}
		return err
	}
	return nil
}
