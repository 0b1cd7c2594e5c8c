package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

// Bounds on the values of one answer, beside the budget of what is read as text.
const (
	maxImage = 4 * cove.MiB // of one image, as it travels
	maxData  = cove.MiB     // of one value as data
	maxForms = 16           // of one value
)

// fit cuts the values and the traceback of an answer to the budget, as settle
// does with what was written. All values share the budget of each kind of text.
func (e *Engine) fit(out *cove.CodeResult) {
	f := fitting{budget: e.cfg.OutputBudget, used: map[string]cove.Bytes{}}
	for i, v := range out.Results {
		out.Results[i] = f.value(v)
	}
	if out.Error != nil {
		c := *out.Error
		c.Name, c.Value, c.Traceback = f.text("name", c.Name), f.text("value", c.Value), f.text("traceback", c.Traceback)
		out.Error = &c
	}
	out.Truncated = out.Truncated || f.cut
}

// fitting is what the values of one answer have used so far.
type fitting struct {
	budget cove.Bytes
	used   map[string]cove.Bytes // by kind of text
	cut    bool
}

// value returns a value in the forms that there is room for. Where none is left,
// a note takes their place.
func (f *fitting) value(v cove.Rich) cove.Rich {
	fits := cove.Rich{}
	var left []string
	for _, kind := range slices.Sorted(maps.Keys(v)) {
		text := v[kind]
		switch {
		case len(fits) >= maxForms || !f.takes(kind, cove.Bytes(len(text))):
			left = append(left, fmt.Sprintf("%s of %s", kind, cove.Bytes(len(text))))
		case cuttable(kind):
			fits[kind] = f.text(kind, text)
		default:
			fits[kind] = text
		}
	}
	if len(left) > 0 {
		f.cut = true
	}
	if len(fits) == 0 && len(left) > 0 {
		fits["text/plain"] = fmt.Sprintf("(left out, for want of room in the answer: %s)", strings.Join(left[:min(len(left), maxForms)], ", "))
	}
	return fits
}

// takes reports whether a form of a value has room, and counts what it takes.
// What can be cut always has.
func (f *fitting) takes(kind string, size cove.Bytes) bool {
	switch {
	case cuttable(kind):
		return true
	case strings.HasPrefix(kind, "image/"):
		return size <= maxImage
	case strings.HasPrefix(kind, "text/"):
		// A part of such a text, of HTML for example, is none.
		f.used[kind] += size
		return f.used[kind] <= f.budget
	}
	return size <= maxData
}

// cuttable says which texts are still good for something without their middle.
func cuttable(kind string) bool { return kind == "text/plain" || kind == "text/markdown" }

// text cuts a text to what is left of the budget of its kind.
func (f *fitting) text(kind, text string) string {
	text, cut := spool.Cut(text, f.budget-f.used[kind])
	f.used[kind] += cove.Bytes(len(text))
	f.cut = f.cut || cut
	return text
}
