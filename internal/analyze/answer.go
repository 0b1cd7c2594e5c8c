package analyze

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Bounds on what a process may say: its answers come from a sandbox.
const (
	maxAnswer = 1 << 20
	maxHeader = 16
	maxFound  = 1001
	maxWord   = 256
	maxText   = 8 << 10
)

// answers takes what a process writes apart. It implements io.Writer.
type answers struct {
	got chan answer

	mu   sync.Mutex
	text []byte // guarded by mu; of the answer that has begun
	want int    // how long it is; −1 as long as that is not known
	bad  bool   // nothing more is believed
}

// answer is one answer as it came; nil where it could not be understood.
type answer []byte

func newAnswers() *answers { return &answers{got: make(chan answer, 1), want: -1} }

// Write implements io.Writer. It never fails: a process that says too much is
// ended by who asked it.
func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(p)
	for len(p) > 0 && !a.bad {
		p = a.take(p)
	}
	return n, nil
}

// take uses up a part of p and returns the rest.
func (a *answers) take(p []byte) []byte {
	if a.want < 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		a.text = append(a.text, line[:min(len(line), maxHeader+1)]...)
		if len(a.text) > maxHeader {
			a.give(nil)
			return nil
		}
		if !ended {
			return nil
		}
		size, err := strconv.Atoi(string(a.text))
		if err != nil || size < 0 || size > maxAnswer {
			a.give(nil)
			return nil
		}
		a.want, a.text, p = size, nil, rest
	}
	n := min(a.want-len(a.text), len(p))
	a.text = append(a.text, p[:n]...)
	if len(a.text) == a.want {
		a.give(a.text)
	}
	return p[n:]
}

// give hands an answer over. One that nobody asked for spoils all that follow.
func (a *answers) give(text []byte) {
	if a.bad = text == nil; !a.bad {
		a.want, a.text = -1, nil
	}
	select {
	case a.got <- text:
	default:
		a.bad = true
	}
}

// found is an answer as serve.py writes it.
type found struct {
	Imports []cove.Import   `json:"imports"`
	Syntax  *cove.CodeError `json:"syntax"`
	Unread  string          `json:"unread"`
}

// report reads an answer.
func (a answer) report() (*cove.SecurityReport, error) {
	var f found
	if err := json.Unmarshal(a, &f); err != nil || a == nil || len(f.Imports) > maxFound {
		return nil, misunderstood()
	}
	r := &cove.SecurityReport{Imports: f.Imports, Syntax: f.syntax(), Unread: cut(f.Unread, maxWord)}
	if r.Imports == nil {
		r.Imports = []cove.Import{}
	}
	for i, m := range r.Imports {
		r.Imports[i] = cove.Import{Module: cut(m.Module, maxWord), Name: cut(m.Name, maxWord), How: cut(m.How, maxWord), Line: max(m.Line, 0), Column: max(m.Column, 0)}
	}
	return r, nil
}

// syntax is the mistake in the code, cut to its bounds; nil if there is none.
func (f found) syntax() *cove.CodeError {
	s := f.Syntax
	if s == nil {
		return nil
	}
	return &cove.CodeError{Name: cut(s.Name, maxWord), Value: cut(s.Value, maxText), Traceback: cut(s.Traceback, maxText), Line: max(s.Line, 0)}
}

func misunderstood() error {
	return cove.Errorf(cove.Unavailable, "what looks into the code gave an answer that cannot be understood").Remedy("try again")
}

func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// last is the last line of what was said: what comes before it is a trace.
func last(said string) string {
	text := strings.TrimSpace(strings.ToValidUTF8(said, "\uFFFD"))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
