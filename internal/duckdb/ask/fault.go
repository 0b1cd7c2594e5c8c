package ask

// Fault is why a request was not served. The executable goes on after each.
type Fault struct {
	Kind Kind `json:"kind"`
	// Message is one sentence for people, without the text that was asked.
	Message string `json:"message"`
	// Line and Column, in bytes, count from 1: the place in the text. 0 is unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Offset is the same place in bytes from 0; it means something where Line does.
	Offset int `json:"offset,omitempty"`
}

// Kind is what sort of fault it is.
type Kind string

// The kinds.
const (
	// BadRequest is out of order, out of bounds or not understood: the fault of who
	// sent it.
	BadRequest Kind = "bad_request"
	// Syntax is a text that the parser does not take.
	Syntax Kind = "syntax"
	// NotSelect is a statement of another kind, which a tree cannot be made of and
	// which is not run.
	NotSelect Kind = "not_select"
	// NotOne is a text of no statement, or of more than one.
	NotOne Kind = "not_one"
	// Failed is a statement that does not fit the tables, or went wrong as it ran.
	Failed Kind = "failed"
	// Memory is one that needs more memory than there is.
	Memory Kind = "memory"
	// Stopped was ended by stop.
	Stopped Kind = "stopped"
	// Large is an answer that would not fit a frame.
	Large Kind = "large"
	// File is a frame's file that cannot be written.
	File Kind = "file"
	// Internal is the executable's own fault.
	Internal Kind = "internal"
)

// Error makes it an error, and is its message.
func (f *Fault) Error() string { return f.Message }
