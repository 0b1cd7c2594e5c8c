package agenttool

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// The words of an answer. They are a part of the interface: agents and their
// tests look for them.
const (
	timedOut   = "Code execution timed out after %ss"
	badSyntax  = "Python syntax error: %s"
	blocked    = "Security policy blocked import: %s"
	refused    = "Security policy blocked this code: %s"
	failed     = "Execution failed: %s"
	truncated  = "... (output truncated)"
	noOutput   = "(no output)"
	restarted  = "[The session had been stopped and was started again: its files are kept, variables and programs that ran are gone.]"
	outputTill = "Output until then:"
)

// Result returns what came of code that the platform has run, or refused to.
func Result(r *cove.CodeResult) ExecutionResult {
	x := ExecutionResult{
		Stdout: string(r.Stdout.Data), Stderr: string(r.Stderr.Data), ExitCode: r.ExitCode, Duration: r.Wall.Seconds(),
		Meta: Meta{
			Runtime: r.Provider, Truncated: r.Stdout.Truncated || r.Stderr.Truncated || r.Truncated, TimedOut: r.Outcome == cove.TimedOut, BlockedImports: r.Security.Modules(),
			ResourceLimits: ResourceLimits{TimeoutSec: r.Timeout.Seconds(), MaxOutputKB: float64(r.Budget) / float64(cove.KiB)},
		},
	}
	if r.Error != nil {
		x.Stderr = joined(x.Stderr, traceback(r.Error))
	}
	x.Text = x.words(r)
	if x.Meta.Truncated && !strings.Contains(x.Text, truncated) {
		x.Text = joined(x.Text, truncated)
	}
	x.Text = joined(x.Text, Notes(&r.Execution))
	return x
}

// Notes is what a model must know of the session that something ran in; "" is nothing.
func Notes(x *cove.Execution) string {
	if x.Restarted {
		return restarted
	}
	return ""
}

// words is the text about code that has run. Output that is no text is shown as
// far as it is one.
func (x ExecutionResult) words(r *cove.CodeResult) string {
	var said string
	switch {
	case r.Outcome == cove.Blocked:
		return refusal(r)
	case r.Error != nil && slices.Contains([]string{"SyntaxError", "IndentationError", "TabError"}, r.Error.Name):
		said = fmt.Sprintf(badSyntax, place(r.Error))
	case x.Meta.TimedOut:
		said = fmt.Sprintf(timedOut, number(x.Meta.ResourceLimits.TimeoutSec))
	case r.Err() != nil:
		said = fmt.Sprintf(failed, x.why(r))
	default:
		out := joined(strings.ToValidUTF8(x.Stdout, "\uFFFD"), values(r.Results))
		if x.Stderr != "" {
			out = joined(out, joined("[stderr]", strings.ToValidUTF8(x.Stderr, "\uFFFD")))
		}
		if out == "" {
			return noOutput
		}
		return strings.TrimRight(out, "\n")
	}
	if out := strings.TrimRight(joined(strings.ToValidUTF8(x.Stdout, "\uFFFD"), values(r.Results)), "\n"); out != "" {
		said = strings.Join([]string{said, "", outputTill, out}, "\n")
	}
	return said
}

// why says what went wrong: in the code's own words, where it has some.
func (x ExecutionResult) why(r *cove.CodeResult) string {
	own := strings.TrimRight(strings.ToValidUTF8(x.Stderr, "\uFFFD"), "\n")
	if own != "" && (r.Outcome == cove.Exited || r.Error != nil) {
		return own
	}
	end := cove.CodeResult{Execution: cove.Execution{Result: r.Result}}
	return joined(own, cove.MessageOf(end.Err()))
}

func refusal(r *cove.CodeResult) string {
	modules := r.Security.Modules()
	switch {
	case len(modules) > 0:
		return fmt.Sprintf(blocked, strings.Join(modules, ", "))
	case r.Security != nil && r.Security.Syntax != nil:
		return fmt.Sprintf(badSyntax, place(r.Security.Syntax))
	case r.Refusal != nil:
		return fmt.Sprintf(refused, r.Refusal.Reason)
	}
	return fmt.Sprintf(refused, "it is not allowed")
}

// Failed returns what is to be said where the platform did not run the code.
func Failed(err error, timeout time.Duration) ExecutionResult {
	x := ExecutionResult{ExitCode: -1, Meta: Meta{BlockedImports: []string{}, ResourceLimits: ResourceLimits{TimeoutSec: timeout.Seconds()}}}
	text := cove.MessageOf(err)
	if cove.CodeOf(err) != cove.Unavailable {
		text = fmt.Sprintf(failed, text)
	}
	x.Text = joined(text, cove.RemedyOf(err))
	x.Stderr = x.Text
	return x
}

// values are the values that the code showed, as text.
func values(list []cove.Rich) string {
	out := ""
	for _, v := range list {
		out = joined(out, Value(v))
	}
	return out
}

// Value is one value as text: its own, or a note of the forms it has.
func Value(v cove.Rich) string {
	text, ok := v["text/plain"]
	if ok && !hasImage(v) {
		return text
	}
	for _, kind := range slices.Sorted(maps.Keys(v)) {
		if kind == "text/plain" {
			continue
		}
		text = joined(text, fmt.Sprintf("[%s, %s]", kind, size(v[kind], strings.HasPrefix(kind, "image/") && kind != "image/svg+xml")))
	}
	return text
}

func hasImage(v cove.Rich) bool {
	for kind := range v {
		if strings.HasPrefix(kind, "image/") {
			return true
		}
	}
	return false
}

// size is how large a form of a value is, for people.
func size(text string, encoded bool) string {
	n := len(text)
	if encoded {
		n = base64.StdEncoding.DecodedLen(n) - strings.Count(text[max(0, n-2):], "=")
	}
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// place is what a syntax error says, with its line and without the name that the
// code has in the interpreter: the model knows of none.
func place(e *cove.CodeError) string {
	text, _, named := strings.Cut(e.Value, " (<")
	if e.Line > 0 && (named || !strings.Contains(text, "(line ")) {
		return fmt.Sprintf("%s (line %d)", text, e.Line)
	}
	return e.Value
}

func traceback(e *cove.CodeError) string {
	if e.Traceback != "" {
		return e.Traceback
	}
	if e.Value == "" {
		return e.Name
	}
	return e.Name + ": " + e.Value
}

// joined puts b on a line of its own after a.
func joined(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	case strings.HasSuffix(a, "\n"):
		return a + b
	}
	return a + "\n" + b
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
