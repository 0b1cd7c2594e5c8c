package wire

import (
	"encoding/json"

	"github.com/cove-sandbox/cove"
)

// Command is a line for the shell, written as text, or the words of a program,
// written as a list.
type Command struct {
	Line string
	Argv []string
}

// UnmarshalJSON takes text or a list of texts.
func (c *Command) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &c.Line) == nil {
		return nil
	}
	c.Line = ""
	if err := json.Unmarshal(data, &c.Argv); err != nil {
		return cove.Wrap(cove.Invalid, err, "must be a line of text or a list of texts")
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON takes.
func (c Command) MarshalJSON() ([]byte, error) {
	if len(c.Argv) > 0 {
		return json.Marshal(c.Argv)
	}
	return json.Marshal(c.Line)
}
