package pyrun

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// The programs that come before and after the code.
var (
	//go:embed tables.py
	tablesPy string
	//go:embed confine.py
	confinePy string
	//go:embed values.py
	valuesPy string
)

// epilogue has the interpreter tell the result.
const epilogue = `__import__("sys").modules["cove_run"]()`

// leastTelling is the time that an interpreter has to tell the result of code that
// used up its own.
const leastTelling = 2 * time.Second

// run is a question under way.
type run struct {
	kernel cove.Kernel
	q      Question
	result Result
}

// all asks the interpreter the three times.
func (r *run) all(ctx context.Context) (*Result, error) {
	r.result.Answer = &cove.RunAnswer{Columns: []string{}, Rows: []json.RawMessage{}}
	for _, step := range []func(context.Context) (*cove.RunError, error){r.load, r.code, r.tell} {
		problem, err := step(ctx)
		if err != nil {
			return nil, err
		}
		if problem != nil {
			r.fail(problem)
			return &r.result, nil
		}
	}
	r.result.Answer.Status = "success"
	return &r.result, nil
}

func (r *run) fail(e *cove.RunError) {
	a := r.result.Answer
	a.Status, a.Error = "error", e
	if e.Type == cove.RunTimeout {
		a.Status = "timeout"
	}
}

// load has the tables loaded that the code names, and the interpreter confined.
func (r *run) load(ctx context.Context) (*cove.RunError, error) {
	wall := r.q.LoadTimeout
	if wall == 0 {
		wall = defaultLoad
	}
	text, err := prelude(r.q)
	if err != nil {
		return nil, err
	}
	out, err := r.kernel.Run(ctx, cove.KernelRun{Code: text, Limits: cove.Limits{Wall: wall}})
	if err != nil {
		return nil, err
	}
	r.result.Load, r.result.Answer.Loaded = out.Wall, len(r.q.Tables) > 0
	switch {
	case out.Outcome == cove.TimedOut:
		return &cove.RunError{Type: cove.RunTimeout, Message: "loading the tables took longer than " + wall.String()}, nil
	case out.Error == nil:
		return r.takeConfined(out.Results), nil
	case out.Error.Name == "Unconfined":
		return &cove.RunError{Type: cove.RunUnavailable, Message: "the code was not run, because the kernel could not confine it: " + sentence(out.Error.Value)}, nil
	case out.Error.Name == "ModuleNotFoundError", out.Error.Name == "ImportError":
		return &cove.RunError{Type: cove.RunUnavailable, Message: "the Python of this template cannot load pandas (" + sentence(out.Error.Value) + "): use a template with pandas, such as data"}, nil
	}
	if problem := r.common(out); problem != nil {
		return problem, nil
	}
	return &cove.RunError{Type: cove.RunInternalError, Message: "the tables could not be loaded: " + raised(out.Error)}, nil
}

// code runs the code of the question.
func (r *run) code(ctx context.Context) (*cove.RunError, error) {
	stdout, stderr := &head{most: int(r.q.MaxOutput)}, &head{most: int(r.q.MaxOutput)}
	out, err := r.kernel.Run(ctx, cove.KernelRun{Code: r.q.Code, Limits: cove.Limits{Wall: r.q.Timeout}, OnOutput: func(c cove.Chunk) {
		if c.Stream == cove.Stderr {
			stderr.write(c.Data)
		} else {
			stdout.write(c.Data)
		}
	}})
	if err != nil {
		return nil, err
	}
	a := r.result.Answer
	a.Wall = out.Wall
	if out.Error != nil && out.Outcome == cove.Exited {
		stderr.write([]byte(cells.Replace(out.Error.Traceback)))
	}
	a.Stdout, a.Stderr = stdout.String(), stderr.String()
	if out.Outcome == cove.TimedOut {
		return r.overtime(), nil
	}
	if out.Error == nil {
		return nil, nil
	}
	if problem := r.common(out); problem != nil {
		return problem, nil
	}
	if isSyntax(out.Error.Name) {
		return failed("Python syntax error: %s", mistake(out.Error)), nil
	}
	if out.Error.Name == "PermissionError" && a.Confined == cove.Hard {
		return failed("%s; %s", raised(out.Error), bounds), nil
	}
	return failed("%s", raised(out.Error)), nil
}

// bounds is what the kernel holds code to, whatever policy made of it.
const bounds = "the kernel lets code over data start no process and open no socket, read no file but its tables and write only below tempfile.gettempdir()"

// tell has the result told.
func (r *run) tell(ctx context.Context) (*cove.RunError, error) {
	wall := max(r.q.Timeout-r.result.Answer.Wall, leastTelling)
	out, err := r.kernel.Run(ctx, cove.KernelRun{Code: epilogue, Limits: cove.Limits{Wall: wall}})
	if err != nil {
		return nil, err
	}
	r.result.Answer.Wall += out.Wall
	if out.Outcome == cove.TimedOut {
		return r.overtime(), nil
	}
	if out.Error == nil {
		return r.take(out.Results), nil
	}
	if problem := r.common(out); problem != nil {
		return problem, nil
	}
	if out.Error.Name == "Wrong" {
		return failed("%s", sentence(out.Error.Value)), nil
	}
	return failed("the result cannot be told: %s", raised(&cove.CodeError{Name: out.Error.Name, Value: out.Error.Value})), nil
}

// common tells what can go wrong in each of the three steps.
func (r *run) common(out *cove.CodeResult) *cove.RunError {
	switch {
	case out.Outcome == cove.OutOfMemory, out.Error.Name == "MemoryError", strings.HasSuffix(out.Error.Name, "ArrayMemoryError"):
		if r.q.Memory == 0 {
			return failed("the code needs more memory than this session has")
		}
		return failed("the code needs more than the %d MB of memory that this session has", r.q.Memory/cove.MiB)
	case out.Error.Name == "TableProblem":
		return &cove.RunError{Type: cove.RunInvalidInput, Message: sentence(out.Error.Value)}
	case out.Outcome != cove.Exited:
		return failed("%s", sentence(out.Error.Value))
	}
	return nil
}

func (r *run) overtime() *cove.RunError {
	return &cove.RunError{Type: cove.RunTimeout, Message: "the run took longer than " + r.q.Timeout.String()}
}
