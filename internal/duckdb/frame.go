package duckdb

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// framePath begins the names of the files in which rows go to Python.
const framePath = "/tmp/.cove-frame-"

// frameScript makes a frame in the namespace of code, and removes the file.
//
//go:embed frame.py
var frameScript string

// FrameCode is Python that makes a variable of a frame from the file that
// [Helper.Frame] wrote, and removes the file. It leaves no other name behind. name is
// an identifier.
func FrameCode(name, path string) string {
	quoted := func(text string) string {
		// What JSON makes of a text, Python reads as the same text.
		b, _ := json.Marshal(text) // a string cannot fail
		return string(b)
	}
	return fmt.Sprintf(`exec(compile(%s, "<cove>", "exec"), {"home": globals(), "name": %s, "path": %s})`,
		quoted(ask.FramePython+"\n"+frameScript), quoted(name), quoted(path))
}

// Python runs code in an interpreter of the place where a helper is.
type Python func(ctx context.Context, code string) (*cove.CodeResult, error)

// Save runs one SELECT and makes its rows a frame of pandas in an interpreter that is
// in the same place, as the variable name, an identifier.
func (h *Helper) Save(ctx context.Context, q Question, name string, python Python) (*Answered, error) {
	path := framePath + string(cove.NewID())
	said, err := h.Frame(ctx, q, path)
	if err != nil {
		return nil, err
	}
	out, err := python(ctx, FrameCode(name, path))
	if err == nil && out.Outcome == cove.Exited && out.Error == nil {
		return said, nil
	}
	h.discard(ctx, path) // the interpreter may not have come that far
	if err != nil {
		return nil, err
	}
	return nil, unframed(out)
}

// unframed says why there is no frame.
func unframed(out *cove.CodeResult) error {
	said := "it ended as " + string(out.Outcome)
	if out.Error != nil {
		said = clean(out.Error.Name + ": " + out.Error.Value)
	}
	err := cove.Errorf(cove.Unavailable, "the session's Python cannot make a frame of the rows: %s", said)
	switch {
	case out.Outcome == cove.TimedOut:
		return typed(cove.Errorf(cove.Timeout, "the session's Python took too long to make a frame of the rows").Remedy("ask for fewer rows"), cove.RunTimeout)
	case strings.HasPrefix(said, "ModuleNotFoundError"), strings.HasPrefix(said, "ImportError"):
		err = err.Remedy("open the session with a template that has pandas, such as data")
	case strings.HasPrefix(said, "MemoryError"), out.Outcome == cove.OutOfMemory:
		err = err.Remedy("ask for less, or use a larger flavor")
	default:
		err = err.Remedy("restart the context, or look at what the code before has changed")
	}
	return typed(err, cove.RunPythonFailed)
}

// discard removes a file inside.
func (h *Helper) discard(ctx context.Context, path string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	p, err := h.in.Start(ctx, cove.Command{Argv: []string{"rm", "-f", "--", path}, Dir: "/"})
	if err == nil {
		_, _ = p.Wait(ctx) // what stays goes with the sandbox
	}
}
