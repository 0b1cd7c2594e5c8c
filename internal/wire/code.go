package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// CodeRequest asks for code to be run in a context that remembers.
type CodeRequest struct {
	Language  string            `json:"language,omitempty" jsonschema:"such as python, node, typescript or bash"`
	Code      string            `json:"code"`
	ContextID string            `json:"context_id,omitempty" jsonschema:"left out, the language's default context"`
	Timeout   *float64          `json:"timeout,omitempty" jsonschema:"seconds"`
	MaxOutput *Quantity         `json:"max_output,omitempty" jsonschema:"bytes of both streams together"`
	Env       map[string]string `json:"env,omitempty" jsonschema:"for this run alone, on top of what the context has"`
	Values    bool              `json:"values,omitempty" jsonschema:"in an event stream: an event for each value when it is shown, whole"`
	Imports   cove.ImportMode   `json:"imports,omitempty" jsonschema:"off, warn or block: what becomes of Python code that imports os, subprocess and the like; only stricter than the server's setting"`
	Trusted   bool              `json:"trusted,omitempty" jsonschema:"skip the look at imports, with the scope trusted"`
}

// CodeRequestOf returns the form of r.
func CodeRequestOf(r cove.CodeRequest) CodeRequest {
	return CodeRequest{
		Language: r.Language, Code: r.Code, ContextID: r.Context,
		Timeout: optional(r.Limits.Wall, time.Second), MaxOutput: bytesQuantity(r.Limits.Output),
		Env: r.Env, Values: r.OnResult != nil, Imports: r.Imports, Trusted: r.Trusted,
	}
}

// Cove returns the platform's own form.
func (w CodeRequest) Cove() (cove.CodeRequest, error) {
	l, err := limits(w.Timeout, w.MaxOutput)
	return cove.CodeRequest{Language: w.Language, Code: w.Code, Context: w.ContextID, Limits: l, Env: w.Env, Imports: w.Imports, Trusted: w.Trusted}, err
}

// Value is one value that code showed, in all its forms.
type Value struct {
	Forms map[string]string `json:"forms" jsonschema:"text, html, png, json and so on; other forms by their MIME type"`
	Main  bool              `json:"main,omitempty" jsonschema:"it is that of the last expression"`
}

// ValueOf returns the form of a value.
func ValueOf(v cove.Rich, main bool) Value { return Value{Forms: renamed(v, shortNames), Main: main} }

// Cove returns the platform's own form.
func (w Value) Cove() (cove.Rich, bool) { return renamed(w.Forms, longNames), w.Main }

// CodeResult is the answer about code that has run.
type CodeResult struct {
	Execution

	ContextID string               `json:"context_id"`
	Success   bool                 `json:"success" jsonschema:"it ran to its end and raised nothing"`
	Results   []map[string]string  `json:"results" jsonschema:"the values it showed: text, html, png, json and so on; other forms by their MIME type"`
	Main      int                  `json:"main_result,omitempty" jsonschema:"which of the values is that of the last expression, from 1"`
	Error     *cove.CodeError      `json:"error" jsonschema:"what it raised"`
	Count     int                  `json:"execution_count,omitempty" jsonschema:"how many pieces of code the interpreter has run, this one included"`
	Fresh     bool                 `json:"context_fresh" jsonschema:"the interpreter was started for this call and remembers nothing of earlier ones"`
	Template  string               `json:"template,omitempty" jsonschema:"of the session"`
	Security  *cove.SecurityReport `json:"security,omitempty" jsonschema:"what was found in the code, where somebody looked"`
	Cut       bool                 `json:"results_truncated,omitempty" jsonschema:"values or the traceback were cut to the budget"`
	Meta      CodeMeta             `json:"meta"`
}

// CodeMeta is what held for code that has run, in a few words.
type CodeMeta struct {
	Runtime        string     `json:"runtime" jsonschema:"the provider of the sandbox"`
	Truncated      bool       `json:"truncated" jsonschema:"something was cut: output, values or the traceback"`
	TimedOut       bool       `json:"timed_out"`
	BlockedImports []string   `json:"blocked_imports" jsonschema:"modules that policy refused or warned of"`
	ResourceLimits CodeLimits `json:"resource_limits"`
}

// CodeLimits are the bounds of code that has run.
type CodeLimits struct {
	TimeoutSec  float64 `json:"timeout_sec"`
	MaxOutputKB float64 `json:"max_output_kb" jsonschema:"of each stream, and of the values, in the answer"`
}

func codeMetaOf(r *cove.CodeResult) CodeMeta {
	return CodeMeta{
		Runtime: r.Provider, Truncated: r.Stdout.Truncated || r.Stderr.Truncated || r.Truncated, TimedOut: r.Outcome == cove.TimedOut, BlockedImports: r.Security.Modules(),
		ResourceLimits: CodeLimits{TimeoutSec: in(r.Timeout, time.Second), MaxOutputKB: float64(r.Budget) / float64(cove.KiB)},
	}
}

// shortNames are the words for the usual forms of a value.
var shortNames = map[string]string{
	"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "text/latex": "latex",
	"image/png": "png", "image/jpeg": "jpeg", "image/svg+xml": "svg",
	"application/json": "json", "application/javascript": "javascript", "application/pdf": "pdf",
}

var longNames = func() map[string]string {
	long := map[string]string{}
	for mime, short := range shortNames {
		long[short] = mime
	}
	return long
}()

func renamed(in cove.Rich, words map[string]string) map[string]string {
	out := make(map[string]string, len(in))
	for name, value := range in {
		if word, ok := words[name]; ok {
			name = word
		}
		out[name] = value
	}
	return out
}

// CodeResultOf returns the form of r for the session it ran in.
func CodeResultOf(session cove.ID, r *cove.CodeResult) CodeResult {
	w := CodeResult{Execution: ExecutionOf(&r.Execution), ContextID: r.Context, Results: []map[string]string{}, Main: r.Main, Error: r.Error, Count: r.Count, Fresh: r.Fresh, Template: r.Template, Security: r.Security, Cut: r.Truncated, Meta: codeMetaOf(r)}
	if w.SessionID == "" {
		w.SessionID = session
	}
	w.Success = w.Status == Success && r.Error == nil
	for _, rich := range r.Results {
		w.Results = append(w.Results, renamed(rich, shortNames))
	}
	return w
}

// Cove returns the platform's own form.
func (w CodeResult) Cove() *cove.CodeResult {
	r := &cove.CodeResult{Execution: *w.Execution.Cove(), Context: w.ContextID, Main: w.Main, Error: w.Error, Count: w.Count, Fresh: w.Fresh, Template: w.Template, Security: w.Security, Truncated: w.Cut}
	r.Timeout, r.Budget = of(w.Meta.ResourceLimits.TimeoutSec, time.Second), cove.Bytes(w.Meta.ResourceLimits.MaxOutputKB*float64(cove.KiB))
	for _, rich := range w.Results {
		r.Results = append(r.Results, renamed(rich, longNames))
	}
	return r
}

// ContextRequest asks for a context.
type ContextRequest struct {
	ID       string `json:"id,omitempty" jsonschema:"left out, a fresh one"`
	Language string `json:"language"`
	Cwd      string `json:"cwd,omitempty" jsonschema:"left out, the workspace"`
}

// ContextRequestOf returns the form of s.
func ContextRequestOf(s cove.ContextSpec) ContextRequest {
	return ContextRequest{ID: s.Name, Language: s.Language, Cwd: s.Dir}
}

// Cove returns the platform's own form.
func (w ContextRequest) Cove() cove.ContextSpec {
	return cove.ContextSpec{Name: w.ID, Language: w.Language, Dir: w.Cwd}
}

// Context is the answer about a context.
type Context struct {
	ID        string    `json:"id"`
	Language  string    `json:"language"`
	Cwd       string    `json:"cwd"`
	Busy      bool      `json:"busy"`
	CreatedAt time.Time `json:"created_at"`
}

// ContextOf returns the form of c.
func ContextOf(c cove.CodeContext) Context {
	return Context{ID: c.Name, Language: c.Language, Cwd: c.Dir, Busy: c.Busy, CreatedAt: c.CreatedAt}
}

// Cove returns the platform's own form.
func (w Context) Cove() cove.CodeContext {
	return cove.CodeContext{Name: w.ID, Language: w.Language, Dir: w.Cwd, Busy: w.Busy, CreatedAt: w.CreatedAt}
}
