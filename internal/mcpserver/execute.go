package mcpserver

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/agenttool"
)

type commandIn struct {
	Command string  `json:"command" jsonschema:"the shell line"`
	Session string  `json:"session_id,omitempty" jsonschema:"left out, your own sandbox"`
	Timeout float64 `json:"timeout,omitempty" jsonschema:"seconds after which it is killed; left out, the server's own limit"`
	Workdir string  `json:"workdir,omitempty" jsonschema:"the directory to run it in; left out, /workspace"`
}

// ran is what programs and code have in common.
type ran struct {
	Outcome   cove.Outcome  `json:"outcome,omitempty" jsonschema:"exited, signaled, timed_out, out_of_memory, output_limit, blocked or killed"`
	ExitCode  int           `json:"exit_code" jsonschema:"128+n for a signal; -1 when the time ran out"`
	Stdout    string        `json:"stdout"`
	Stderr    string        `json:"stderr"`
	Truncated bool          `json:"truncated" jsonschema:"something was cut"`
	OutputID  string        `json:"output_id,omitempty" jsonschema:"names the whole output, for read_file, where something was cut"`
	TookMS    float64       `json:"execution_time_ms"`
	Refusal   *cove.Refusal `json:"refusal,omitempty" jsonschema:"the rule that blocked it, and the place"`
}

type commandOut struct {
	place
	ran
}

func runCommand(ctx context.Context, c *call, in commandIn) (answer, error) {
	wall, err := wallOf(in.Timeout)
	if err != nil {
		return answer{}, err
	}
	watch := c.watch(ctx)
	defer watch.stop()
	var x *cove.Execution
	at, err := c.in(ctx, where{Session: in.Session}, func(ctx context.Context, id cove.ID) (err error) {
		x, err = c.platform.Processes(id).Exec(ctx, cove.ExecRequest{
			Line: in.Command, Dir: in.Workdir, Limits: cove.Limits{Wall: wall}, OnOutput: watch.output(),
		})
		return err
	})
	if err != nil {
		return answer{}, err
	}
	at.Restarted = at.Restarted || x.Restarted
	out := commandOut{at, c.face.ranOf(x)}
	out.Truncated = fit(c.face.room(), &out.Stdout, &out.Stderr) || out.Truncated
	show := lines(out.Stdout, titled("[stderr]", out.Stderr), ending(x, out.ran), at.notes())
	return answer{value: out, show: c.shown(show), failed: x.Outcome == cove.Blocked}, nil
}

type codeIn struct {
	Language string  `json:"language" jsonschema:"python, node, typescript or bash"`
	Code     string  `json:"code"`
	Session  string  `json:"session_id,omitempty" jsonschema:"left out, your own sandbox"`
	Template string  `json:"template,omitempty" jsonschema:"what your sandbox is made from; another than before makes a second sandbox, which is then the one in use"`
	Timeout  float64 `json:"timeout,omitempty" jsonschema:"seconds after which it is interrupted; left out, the server's own limit"`
}

type codeOut struct {
	place
	ran

	Success  bool            `json:"success" jsonschema:"it ran to its end and raised nothing"`
	Results  []string        `json:"results" jsonschema:"the values it showed, as text; images are beside it"`
	Raised   *cove.CodeError `json:"raised,omitempty" jsonschema:"what the code raised"`
	Fresh    bool            `json:"context_fresh" jsonschema:"the interpreter was started for this call and remembers nothing of earlier ones"`
	Template string          `json:"template,omitempty"`
}

func runCode(ctx context.Context, c *call, in codeIn) (answer, error) {
	wall, err := wallOf(in.Timeout)
	if err != nil {
		return answer{}, err
	}
	watch := c.watch(ctx)
	defer watch.stop()
	var r *cove.CodeResult
	at, err := c.in(ctx, where{Session: in.Session, Template: in.Template}, func(ctx context.Context, id cove.ID) (err error) {
		r, err = c.platform.Contexts(id).Run(ctx, cove.CodeRequest{
			Language: in.Language, Code: in.Code, Limits: cove.Limits{Wall: wall}, OnOutput: watch.output(),
		})
		return err
	})
	if err != nil {
		return answer{}, err
	}
	at.Restarted = at.Restarted || r.Restarted
	out := codeOut{
		place: at, ran: c.face.ranOf(&r.Execution), Success: r.Err() == nil, Results: []string{}, Fresh: r.Fresh, Template: r.Template,
	}
	out.Truncated = out.Truncated || r.Truncated
	parts := []*string{&out.Stdout, &out.Stderr}
	if r.Error != nil {
		out.Raised = new(*r.Error)
		parts = append(parts, &out.Raised.Name, &out.Raised.Value, &out.Raised.Traceback)
	}
	for _, v := range r.Results[:min(len(r.Results), maxValues)] {
		out.Results = append(out.Results, agenttool.Value(v))
	}
	for i := range out.Results {
		parts = append(parts, &out.Results[i])
	}
	out.Truncated = fit(c.face.room()-len(parts)*valueFrame, parts...) || len(r.Results) > maxValues || out.Truncated
	words := []string{out.Stdout}
	words = append(words, out.Results...)
	words = append(words, titled("[stderr]", out.Stderr), raised(out.Raised), ending(&r.Execution, out.ran), at.notes())
	return answer{value: out, show: c.shown(lines(words...), images(r.Results)...), failed: r.Outcome == cove.Blocked}, nil
}

// Bounds on the values that code shows: how many, and what one takes beside its
// text.
const (
	maxValues  = 64
	valueFrame = 4
)

type pythonIn struct {
	Code    string  `json:"code"`
	Timeout float64 `json:"timeout,omitempty" jsonschema:"seconds after which it is interrupted; left out, the server's own limit"`
}

type pythonOut struct {
	place

	Result   string  `json:"result" jsonschema:"what the code printed and its last value, or why it did not work"`
	ExitCode int     `json:"exit_code" jsonschema:"-1 when the time ran out, and where nothing ran"`
	Duration float64 `json:"duration" jsonschema:"seconds"`
	Meta     struct {
		Runtime        string   `json:"runtime" jsonschema:"the provider of the sandbox"`
		Truncated      bool     `json:"truncated"`
		TimedOut       bool     `json:"timed_out"`
		BlockedImports []string `json:"blocked_imports" jsonschema:"modules that policy refused or warned of"`
	} `json:"meta"`
}

// runPython answers with a text also where the platform could not run the code.
func runPython(ctx context.Context, c *call, in pythonIn) (answer, error) {
	wall, err := wallOf(in.Timeout)
	if err != nil {
		return answer{}, err
	}
	watch := c.watch(ctx)
	defer watch.stop()
	o := agenttool.Options{Timeout: wall, Imports: c.face.ToolImports}
	var r *cove.CodeResult
	at, err := c.in(ctx, where{}, func(ctx context.Context, id cove.ID) (err error) {
		req := o.Request(in.Code)
		req.OnOutput = watch.output()
		r, err = c.platform.Contexts(id).Run(ctx, req)
		return err
	})
	var x agenttool.ExecutionResult
	switch {
	case err == nil:
		at.Restarted, r.Restarted = at.Restarted || r.Restarted, false // said once, by the notes of the place
		x = agenttool.Result(r)
	case ctx.Err() != nil:
		return answer{}, err
	default:
		x = agenttool.Failed(err, wall)
	}
	out := pythonOut{place: at, Result: x.Text, ExitCode: x.ExitCode, Duration: x.Duration}
	out.Meta.Runtime, out.Meta.TimedOut = x.Meta.Runtime, x.Meta.TimedOut
	var cut bool
	out.Meta.BlockedImports, cut = someModules(c.face.frame()/4, x.Meta.BlockedImports)
	out.Meta.Truncated = fit(c.face.room(), &out.Result) || cut || x.Meta.Truncated
	show := []mcp.Content{text(lines(out.Result, at.notes()))}
	if r != nil {
		show = append(show, images(r.Results)...)
	}
	return answer{value: out, show: show}, nil
}

// Bounds on the names of modules in an answer.
const (
	maxModules    = 16
	maxModuleName = 64 // more than any that is meant
)

// someModules returns the first names of a list, as many as cost no more than most, and
// reports whether something is missing. Code may name whatever it likes.
func someModules(most int, names []string) (some []string, cut bool) {
	some = []string{}
	for _, name := range names[:min(len(names), maxModules)] {
		if short := upTo(name, maxModuleName); short != name {
			name, cut = short+"…", true
		}
		some = append(some, name)
	}
	some = some[:within(most, some)]
	return some, cut || len(some) < len(names)
}

// longest is the longest time that a call can have.
const longest = 24 * time.Hour

func wallOf(seconds float64) (time.Duration, error) {
	if math.IsNaN(seconds) || seconds < 0 || seconds > longest.Seconds() {
		return 0, cove.InvalidField("timeout", "%s is out of range; use seconds, up to %d", strconv.FormatFloat(seconds, 'g', -1, 64), int(longest.Seconds()))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

func (f *face) ranOf(x *cove.Execution) ran {
	r := ran{
		Outcome: x.Outcome, ExitCode: x.ExitCode, Stdout: string(x.Stdout.Data), Stderr: string(x.Stderr.Data),
		Truncated: x.Stdout.Truncated || x.Stderr.Truncated, OutputID: string(x.OutputID),
		TookMS: float64(x.Wall.Microseconds()) / 1e3,
	}
	if x.Refusal != nil {
		r.Refusal = new(*x.Refusal)
		fit(f.frame()/2, &r.Refusal.Reason, &r.Refusal.Word)
	}
	return r
}

// ending says how a program ended, where a model should know, and how to read what
// was cut.
func ending(x *cove.Execution, r ran) string {
	var how, rest string
	switch x.Outcome {
	case cove.Exited:
		if x.ExitCode != 0 {
			how = fmt.Sprintf("[exit code %d]", x.ExitCode)
		}
	case cove.Signaled:
		how = fmt.Sprintf("[ended by signal %s]", x.Signal)
	case cove.TimedOut:
		how = fmt.Sprintf("[stopped after %s: the time ran out; pass a longer timeout, or run it in the background]", x.Wall.Round(100*time.Millisecond))
	case cove.OutOfMemory:
		how = "[ended: it needed more memory than the sandbox has]"
	case cove.OutputLimit:
		how = "[ended: it wrote more than it may; write to a file instead]"
	case cove.Blocked:
		how = "[blocked by policy: nothing was run]"
		if r.Refusal != nil {
			how = fmt.Sprintf("[blocked by policy, rule %s: %s]", r.Refusal.Rule, r.Refusal.Reason)
		}
	case cove.Killed:
		how = "[killed]"
	}
	switch {
	case r.Truncated && x.OutputID != "":
		rest = fmt.Sprintf("[output was cut; read_file with output_id %s reads the whole]", x.OutputID)
	case r.Truncated:
		rest = "[output was cut; write it to a file and read that in parts]"
	}
	return lines(how, rest)
}

func raised(e *cove.CodeError) string {
	switch {
	case e == nil:
		return ""
	case e.Traceback != "":
		return e.Traceback
	}
	return e.Name + ": " + e.Value
}

func titled(title, body string) string {
	if body == "" {
		return ""
	}
	return lines(title, body)
}

// shown is what a model reads: a text, and what is beside it.
func (c *call) shown(words string, more ...mcp.Content) []mcp.Content {
	if words == "" {
		words = "(no output)"
	}
	return slices.Concat([]mcp.Content{text(words)}, more)
}
