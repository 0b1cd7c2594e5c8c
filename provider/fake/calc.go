package fake

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// value is a number or a text.
type value struct {
	n    int64
	text string
	str  bool
}

func (v value) String() string {
	if v.str {
		return v.text
	}
	return strconv.FormatInt(v.n, 10)
}

// calcRun is one run of a script.
type calcRun struct {
	k       *kernel
	ctx     context.Context //nolint:containedctx // it lives for one call of Run
	stop    <-chan struct{}
	late    <-chan time.Time
	out     func(cove.Chunk)
	most    cove.Bytes
	env     map[string]string
	written int64
}

// raised is an error of the script.
type raised struct{ name, text string }

func (e *raised) Error() string { return e.name + ": " + e.text }

// halted is what ends a script from outside.
type halted struct {
	outcome    cove.Outcome
	name, text string
}

func (e *halted) Error() string { return e.text }

func traceback(line int, name, text string) string {
	return fmt.Sprintf("line %d\n%s: %s", line, name, text)
}

// run checks all lines, then plays them.
func (r *calcRun) run(code string) (*cove.CodeResult, error) {
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		if err := syntaxCheck(line); err != nil {
			return failure(cove.Exited, "SyntaxError", err.Error(), i+1), nil
		}
	}
	res := &cove.CodeResult{}
	res.Outcome = cove.Exited
	for i, line := range lines {
		v, err := r.line(strings.TrimSpace(line))
		if err != nil {
			return r.ended(err, i+1)
		}
		res.Results = nil
		if v != nil {
			res.Results = []cove.Rich{{"text/plain": v.String()}}
		}
	}
	return res, nil
}

// ended says how a script that did not reach its end stopped.
func (r *calcRun) ended(err error, line int) (*cove.CodeResult, error) {
	if e, ok := errors.AsType[*raised](err); ok {
		return failure(cove.Exited, e.name, e.text, line), nil
	}
	if e, ok := errors.AsType[*halted](err); ok {
		return failure(e.outcome, e.name, e.text, line), nil
	}
	return nil, err
}

// statement takes the word off a line that is no expression.
func statement(line string) (word, rest string) {
	word, rest, _ = strings.Cut(line, " ")
	switch word {
	case "raise", "sleep", "loop", "die":
		return word, strings.TrimSpace(rest)
	}
	return "", line
}

// line plays one line; an expression has a value.
func (r *calcRun) line(line string) (*value, error) {
	select {
	case <-r.stop:
		return nil, interrupted()
	default:
	}
	if line == "" || strings.HasPrefix(line, "#") {
		return nil, nil
	}
	switch word, rest := statement(line); word {
	case "raise":
		name, text, _ := strings.Cut(rest, " ")
		return nil, &raised{name, text}
	case "sleep":
		d, err := duration(rest)
		if err != nil {
			return nil, &raised{"ValueError", err.Error()}
		}
		return nil, r.wait(d)
	case "loop":
		return nil, r.wait(-1)
	case "die":
		if err := r.k.Close(r.ctx); err != nil {
			return nil, err
		}
		return nil, &halted{cove.Signaled, "KernelDied", "the interpreter has ended; its variables are gone"}
	}
	for _, call := range []struct {
		name   string
		stream cove.Stream
	}{{"print(", cove.Stdout}, {"warn(", cove.Stderr}} {
		if args, ok := strings.CutPrefix(line, call.name); ok {
			return nil, r.print(call.stream, strings.TrimSuffix(args, ")"))
		}
	}
	if name, expr, ok := strings.Cut(line, "="); ok {
		v, err := r.eval(expr)
		if err == nil {
			r.k.vars[strings.TrimSpace(name)] = v
		}
		return nil, err
	}
	v, err := r.eval(line)
	return &v, err
}

func interrupted() error {
	return &halted{cove.Exited, "Interrupted", "the run was interrupted"}
}

// wait stops for a time, or for good if it is negative.
func (r *calcRun) wait(d time.Duration) error {
	var timer <-chan time.Time
	if d >= 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-timer:
		return nil
	case <-r.stop:
		return interrupted()
	case <-r.late:
		return &halted{cove.TimedOut, "TimeoutError", "the time limit was reached"}
	case <-r.k.dead:
		return &halted{cove.Signaled, "KernelDied", "the interpreter has ended; its variables are gone"}
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

func (r *calcRun) print(stream cove.Stream, args string) error {
	var parts []string
	for arg := range strings.SplitSeq(args, ",") {
		v, err := r.eval(arg)
		if err != nil {
			return err
		}
		parts = append(parts, v.String())
	}
	data := []byte(strings.Join(parts, " ") + "\n")
	over := r.most > 0 && cove.Bytes(r.written)+cove.Bytes(len(data)) > r.most
	if over {
		data = data[:int64(r.most)-r.written]
	}
	if r.out != nil && len(data) > 0 {
		r.out(cove.Chunk{Stream: stream, Offset: r.written, Data: data})
	}
	r.written += int64(len(data))
	if over {
		return &halted{cove.OutputLimit, "OutputLimit", "the output limit was reached"}
	}
	return nil
}

func (r *calcRun) eval(text string) (value, error) {
	e := expression{rest: strings.TrimSpace(text), vars: r.k.vars, env: r.env}
	v := e.sum()
	if e.err == nil && e.rest != "" {
		e.err = &raised{"SyntaxError", "unexpected " + strconv.Quote(e.rest)}
	}
	return v, e.err
}

// syntaxCheck finds lines that no run could play.
func syntaxCheck(line string) error {
	line = strings.TrimSpace(line)
	if word, _ := statement(line); word != "" || line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	if strings.Count(line, "(") != strings.Count(line, ")") {
		return errors.New("a parenthesis has no partner")
	}
	if strings.Count(line, `"`)%2 != 0 {
		return errors.New("a text has no end")
	}
	if name, _, ok := strings.Cut(line, "="); ok && !isName(strings.TrimSpace(name)) {
		return fmt.Errorf("%q is not a name", strings.TrimSpace(name))
	}
	return nil
}

func isName(s string) bool {
	for i, c := range s {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
