package msbapi

import (
	"fmt"
	"strings"

	"github.com/cove-sandbox/cove"
)

// ran is how a command went.
type ran struct {
	Command  string   `json:"command"`
	Args     []string `json:"args"`
	ExitCode int      `json:"exit_code"`
	Success  bool     `json:"success"`
	Output   []line   `json:"output"`
}

// refusedCode is the exit code of what policy refused, as a shell has it for what
// cannot be executed.
const refusedCode = 126

// run runs a program as it is, without a shell.
func (c *call) run(p params) (any, error) {
	if p.Command == "" {
		return nil, wrong("command says which program to run")
	}
	limits, err := p.limits()
	if err != nil {
		return nil, err
	}
	if p.Args == nil {
		p.Args = []string{}
	}
	s, err := c.find(p)
	if err != nil {
		return nil, err
	}
	out := newLines()
	x, err := c.platform.Processes(s.ID).Exec(c.ctx, cove.ExecRequest{
		Argv: append([]string{p.Command}, p.Args...), Dir: s.Spec.Metadata[metaWorkdir], Limits: limits, OnOutput: out.take,
	})
	if err != nil {
		return nil, runFailed(err)
	}
	r := ran{Command: p.Command, Args: p.Args, ExitCode: x.ExitCode}
	switch {
	case x.Outcome == cove.TimedOut:
		return nil, broken(cove.Errorf(cove.Timeout, "the command did not end within %s", limits.Wall))
	case x.Outcome == cove.Blocked:
		out.text(stderr, refusal(x.Refusal))
		r.ExitCode = refusedCode
	}
	r.Output = out.done()
	if notFound(r) {
		return nil, broken(cove.Errorf(cove.Invalid, "%s", strings.TrimPrefix(r.Output[0].Text, said)))
	}
	r.Success = x.Outcome == cove.Exited && r.ExitCode == 0
	return r, nil
}

// said is before what the platform writes in the place of a program that cannot be
// executed.
const said = "cove: "

// notFound reports whether the program could not be executed: the original has no
// exit code for that.
func notFound(r ran) bool {
	if r.ExitCode != 127 && r.ExitCode != refusedCode || len(r.Output) != 1 || r.Output[0].Stream != stderr {
		return false
	}
	text := r.Output[0].Text
	return strings.HasPrefix(text, said+r.Command+": ") || text == r.Command+": command not found"
}

// refusal is what policy says of a program that it does not let run.
func refusal(r *cove.Refusal) string {
	if r == nil {
		return "refused by policy"
	}
	text := "refused by policy: " + r.Reason + " (rule " + r.Rule
	if r.Word != "" {
		text += ", word " + r.Word
	}
	if r.Line > 0 {
		text += fmt.Sprintf(", line %d, column %d", r.Line, r.Column)
	}
	return text + ")"
}

// runFailed is the answer where the platform failed. What the request itself got
// wrong is said; a sandbox that is not there is the original's internal error.
func runFailed(err error) error {
	if code := cove.CodeOf(err); code == cove.NotFound || code == cove.Unsupported {
		return broken(err)
	}
	return err
}
