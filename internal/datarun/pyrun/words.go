package pyrun

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// cutMark stands where a stream was cut.
const cutMark = "... (output truncated)"

// maxSentence bounds a message that quotes the sandbox.
const maxSentence = 2000

// cells has tracebacks name the code as what it is.
var cells = strings.NewReplacer(`"<cell 2>"`, `"<run>"`)

func failed(format string, args ...any) *cove.RunError {
	return &cove.RunError{Type: cove.RunPythonFailed, Message: fmt.Sprintf(format, args...)}
}

// raised is what code raised, in one line.
func raised(e *cove.CodeError) string {
	text := sentence(e.Name)
	if value := sentence(e.Value); value != "" {
		text += ": " + value
	}
	if e.Line > 0 && !strings.Contains(text, fmt.Sprintf("line %d)", e.Line)) {
		text += fmt.Sprintf(" (line %d)", e.Line)
	}
	return cells.Replace(text)
}

// mistake is why code cannot be parsed, in one line.
func mistake(e *cove.CodeError) string {
	text, _, _ := strings.Cut(sentence(e.Value), " (<cell ")
	if e.Line > 0 {
		text += fmt.Sprintf(" (line %d)", e.Line)
	}
	return text
}

func isSyntax(name string) bool {
	return slices.Contains([]string{"SyntaxError", "IndentationError", "TabError"}, name)
}

// sentence bounds a text from a sandbox.
func sentence(text string) string {
	if len(text) > maxSentence {
		text = text[:maxSentence] + "…"
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
}

// head keeps the beginning of a stream.
type head struct {
	most int
	text []byte
	cut  bool
}

func (h *head) write(p []byte) {
	n := min(len(p), h.most-len(h.text))
	h.text = append(h.text, p[:n]...)
	h.cut = h.cut || n < len(p)
}

// String is what was kept, with a mark in its end where there was more. It is not
// longer than it may be.
func (h *head) String() string {
	text := string(h.text)
	if h.cut {
		text = text[:max(h.most-len(cutMark), 0)]
		for range utf8.UTFMax - 1 { // no character is cut in two
			if r, n := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || n != 1 {
				break
			}
			text = text[:len(text)-1]
		}
		text += cutMark
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
