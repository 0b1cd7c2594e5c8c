package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// CodeRequest asks for code to be run in a context that remembers.
type CodeRequest struct {
	Language  string    `json:"language,omitempty" jsonschema:"such as python, node or bash"`
	Code      string    `json:"code"`
	ContextID string    `json:"context_id,omitempty" jsonschema:"left out, the language's default context"`
	Timeout   *float64  `json:"timeout,omitempty" jsonschema:"seconds"`
	MaxOutput *Quantity `json:"max_output,omitempty" jsonschema:"bytes of both streams together"`
}

// CodeRequestOf returns the form of r.
func CodeRequestOf(r cove.CodeRequest) CodeRequest {
	return CodeRequest{
		Language: r.Language, Code: r.Code, ContextID: r.Context,
		Timeout: optional(r.Limits.Wall, time.Second), MaxOutput: bytesQuantity(r.Limits.Output),
	}
}

// Cove returns the platform's own form.
func (w CodeRequest) Cove() (cove.CodeRequest, error) {
	l, err := limits(w.Timeout, w.MaxOutput)
	return cove.CodeRequest{Language: w.Language, Code: w.Code, Context: w.ContextID, Limits: l}, err
}

// CodeResult is the answer about code that has run.
type CodeResult struct {
	Execution

	ContextID string              `json:"context_id"`
	Success   bool                `json:"success" jsonschema:"it ran to its end and raised nothing"`
	Results   []map[string]string `json:"results" jsonschema:"the values it showed: text, html, png, json and so on; other forms by their MIME type"`
	Error     *cove.CodeError     `json:"error" jsonschema:"what it raised"`
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
	w := CodeResult{Execution: ExecutionOf(&r.Execution), ContextID: r.Context, Results: []map[string]string{}, Error: r.Error}
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
	r := &cove.CodeResult{Execution: *w.Execution.Cove(), Context: w.ContextID, Error: w.Error}
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
