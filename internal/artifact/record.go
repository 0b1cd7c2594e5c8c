package artifact

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// record is one file. Its form is told in docs/code.md.
type record struct {
	Version       int       `json:"version"`
	At            time.Time `json:"at"`
	Session       cove.ID   `json:"session_id"`
	Tenant        string    `json:"tenant"`
	Language      string    `json:"language"`
	Template      string    `json:"template"`
	Provider      string    `json:"provider"`
	Code          string    `json:"code"`
	CodeBytes     int       `json:"code_bytes"`
	CodeTruncated bool      `json:"code_truncated"`
	Result        result    `json:"result"`
}

type result struct {
	Outcome     cove.Outcome    `json:"outcome"`
	ExitCode    int             `json:"exit_code"`
	DurationMS  float64         `json:"duration_ms"`
	Stdout      string          `json:"stdout"`
	Stderr      string          `json:"stderr"`
	StdoutBytes int64           `json:"stdout_bytes"`
	StderrBytes int64           `json:"stderr_bytes"`
	Values      []string        `json:"values,omitempty"`
	Error       *cove.CodeError `json:"error"`
	Refusal     *cove.Refusal   `json:"refusal,omitempty"`
	Meta        meta            `json:"meta"`
}

type meta struct {
	Context        string   `json:"context_id"`
	Truncated      bool     `json:"truncated"`
	TimedOut       bool     `json:"timed_out"`
	BlockedImports []string `json:"blocked_imports"`
}

// Bounds on how much is written down of what comes in numbers.
const (
	maxValues  = 64
	maxImports = 32
	maxModule  = 64
)

// newRecord returns all that is known of a run, without secrets. Of a text that
// is longer than most the middle is left out before it is looked through: what
// encode leaves of it is shorter still.
func newRecord(a cove.Artifact, secrets *redactor, most int) *record {
	clean := func(text string) string {
		text, _ = cut(text, most)
		return secrets.clean(strings.ToValidUTF8(text, "\uFFFD"))
	}
	r := a.Result
	rec := &record{
		Version: 1, At: a.At.UTC(), Session: a.Session, Tenant: a.Tenant, Language: a.Language, Template: r.Template, Provider: r.Provider,
		Code: clean(a.Code), CodeBytes: len(a.Code), CodeTruncated: len(a.Code) > most,
		Result: result{
			Outcome: r.Outcome, ExitCode: r.ExitCode, DurationMS: float64(r.Wall) / float64(time.Millisecond),
			Stdout: clean(string(r.Stdout.Data)), Stderr: clean(string(r.Stderr.Data)), StdoutBytes: r.Stdout.Bytes, StderrBytes: r.Stderr.Bytes,
			Meta: meta{Context: r.Context, Truncated: r.Stdout.Truncated || r.Stderr.Truncated || r.Truncated, TimedOut: r.Outcome == cove.TimedOut, BlockedImports: imports(r.Security.Modules(), secrets)},
		},
	}
	for _, v := range r.Results[:min(len(r.Results), maxValues)] {
		rec.Result.Values = append(rec.Result.Values, clean(v["text/plain"]))
	}
	if e := r.Error; e != nil {
		rec.Result.Error = &cove.CodeError{Name: clean(e.Name), Value: clean(e.Value), Traceback: clean(e.Traceback), Line: e.Line}
	}
	if f := r.Refusal; f != nil {
		c := *f
		c.Reason, c.Word = clean(f.Reason), clean(f.Word)
		rec.Result.Refusal = &c
	}
	return rec
}

// imports are the first modules, without secrets: code chooses their names.
func imports(modules []string, secrets *redactor) []string {
	out := make([]string, 0, min(len(modules), maxImports))
	for _, m := range modules[:cap(out)] {
		m = secrets.clean(m)
		out = append(out, strings.ToValidUTF8(m[:min(len(m), maxModule)], ""))
	}
	return out
}

// encode writes the record in at most so many bytes, which are enough for all
// that is not text: the texts get shorter until it fits.
func (r *record) encode(most int) ([]byte, error) {
	for share := most / 2; ; share /= 2 {
		text, err := r.within(share).marshal()
		if err != nil || len(text) <= most || share == 0 {
			return text, err
		}
	}
}

func (r *record) marshal() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(r)
	return b.Bytes(), err
}

// within returns the record with each text cut to a share: the code to the whole
// of it, the others to parts.
func (r *record) within(share int) *record {
	c := *r
	var was bool
	c.Code, was = cut(r.Code, share)
	c.CodeTruncated = r.CodeTruncated || was
	short := func(text string, most int) string {
		text, was := cut(text, most)
		c.Result.Meta.Truncated = c.Result.Meta.Truncated || was
		return text
	}
	c.Result.Stdout, c.Result.Stderr = short(r.Result.Stdout, share/4), short(r.Result.Stderr, share/4)
	c.Result.Values = nil
	for _, v := range r.Result.Values {
		c.Result.Values = append(c.Result.Values, short(v, share/(4*len(r.Result.Values))))
	}
	if e := r.Result.Error; e != nil {
		c.Result.Error = &cove.CodeError{Name: short(e.Name, share/8), Value: short(e.Value, share/8), Traceback: short(e.Traceback, share/4), Line: e.Line}
	}
	if f := r.Result.Refusal; f != nil {
		short := *f
		short.Reason, _ = cut(f.Reason, share/8)
		short.Word, _ = cut(f.Word, share/8)
		c.Result.Refusal = &short
	}
	return &c
}

// marker stands where something was left out.
const marker = "\n... (output truncated)\n"

// cut returns the head and the tail of a text within so many bytes, and whether
// something was left out.
func cut(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	rest := most - len(marker)
	if rest <= 0 {
		return "", true
	}
	head, tail := rest-rest/2, len(text)-rest/2
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + marker + text[tail:], true
}
