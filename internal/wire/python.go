package wire

import "github.com/cove-sandbox/cove"

// PythonRequest asks for Python code to be run for a model.
type PythonRequest struct {
	Code      string   `json:"code"`
	Timeout   *float64 `json:"timeout,omitempty" jsonschema:"seconds"`
	SessionID cove.ID  `json:"session_id,omitempty" jsonschema:"left out, a sandbox of its own that ends with the call"`
	Template  string   `json:"template,omitempty" jsonschema:"of that sandbox"`
}

// PythonResult is the answer to a PythonRequest. Whatever happened, it is one.
type PythonResult struct {
	Result   string   `json:"result" jsonschema:"a text for the model that wrote the code"`
	Stdout   string   `json:"stdout"`
	Stderr   string   `json:"stderr" jsonschema:"with the traceback"`
	ExitCode int      `json:"exit_code" jsonschema:"-1 when the time ran out, and where nothing ran"`
	Duration float64  `json:"duration" jsonschema:"seconds"`
	Meta     CodeMeta `json:"meta"`
}

// Cove returns the options of the request in the platform's own form.
func (w PythonRequest) Cove() (cove.Limits, error) { return limits(w.Timeout, nil) }
