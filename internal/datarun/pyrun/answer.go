package pyrun

import (
	"encoding/json"

	"github.com/cove-sandbox/cove"
)

// resultType is the form in which confine.py and values.py tell something.
const resultType = "application/vnd.cove.run+json"

// Bounds on what a sandbox may say.
const (
	maxColumns = 16384
	maxLabel   = 4096 // bytes
)

// told is a result as values.py writes it.
type told struct {
	Columns   []string          `json:"columns"`
	Types     []string          `json:"types"`
	Rows      []json.RawMessage `json:"rows"`
	Truncated bool              `json:"truncated"`
	Problem   string            `json:"problem"`
}

// take checks a result and puts it into the answer. The code may have forged it: it
// is only taken as far as its form is right.
func (r *run) take(values []cove.Rich) *cove.RunError {
	if len(values) != 1 {
		return misunderstood()
	}
	var t told
	if err := json.Unmarshal([]byte(values[0][resultType]), &t); err != nil {
		return misunderstood()
	}
	if t.Problem != "" {
		return failed("%s", sentence(t.Problem))
	}
	if !r.fits(t) {
		return misunderstood()
	}
	a := r.result.Answer
	a.Columns, a.RowCount = append(a.Columns, t.Columns...), len(t.Rows)
	a.Rows = append(a.Rows, t.Rows...)
	a.Truncated = t.Truncated
	if len(t.Types) > 0 {
		a.Types = t.Types
	}
	return nil
}

// takeConfined checks what the interpreter says before it runs any code of a caller.
func (r *run) takeConfined(values []cove.Rich) *cove.RunError {
	var said struct{ Confined cove.Enforcement }
	if len(values) != 1 || json.Unmarshal([]byte(values[0][resultType]), &said) != nil || said.Confined != cove.Hard && said.Confined != cove.Soft {
		return &cove.RunError{Type: cove.RunInternalError, Message: "the code was not run, because the interpreter does not say whether the kernel confines it"}
	}
	r.result.Answer.Confined = said.Confined
	return nil
}

// fits reports whether a result is a table within the bounds of the question.
func (r *run) fits(t told) bool {
	if len(t.Columns) > maxColumns || len(t.Rows) > r.q.MaxRows || len(t.Types) != 0 && len(t.Types) != len(t.Columns) {
		return false
	}
	for _, name := range append(t.Columns, t.Types...) {
		if len(name) > maxLabel {
			return false
		}
	}
	size := 0
	for _, row := range t.Rows {
		var cells []json.RawMessage
		if err := json.Unmarshal(row, &cells); err != nil || cells == nil || len(cells) != len(t.Columns) {
			return false
		}
		size += len(row) + 1
	}
	return size <= int(r.q.MaxOutput)
}

func misunderstood() *cove.RunError {
	return &cove.RunError{Type: cove.RunInternalError, Message: "the interpreter's answer cannot be understood: the code may have changed what tells its result"}
}
