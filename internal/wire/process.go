package wire

import (
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Process is the answer about a background program.
type Process struct {
	PID       cove.PID      `json:"pid,omitempty" jsonschema:"left out for a program that policy did not let begin"`
	Command   string        `json:"command"`
	Argv      []string      `json:"argv,omitempty" jsonschema:"the list of words that was asked for, cut to 4 KiB; left out for a line"`
	Workdir   string        `json:"workdir,omitempty"`
	Tag       string        `json:"tag,omitempty"`
	TTY       bool          `json:"tty,omitempty"`
	Running   bool          `json:"running"`
	StartedAt time.Time     `json:"started_at"`
	OutputID  cove.OutputID `json:"output_id,omitempty" jsonschema:"reads what it has written, also while it runs"`
	Result    *Execution    `json:"result,omitempty" jsonschema:"when it has ended"`
}

// ProcessOf returns the form of p.
func ProcessOf(p cove.ProcessInfo) Process {
	w := Process{
		PID: p.PID, Command: shown(p.Command), Workdir: shown(p.Dir), Tag: shown(p.Tag),
		TTY: p.TTY, Running: p.Running, StartedAt: p.StartedAt, OutputID: p.OutputID,
	}
	for _, word := range p.Argv {
		w.Argv = append(w.Argv, shown(word))
	}
	if p.Result != nil {
		w.Result = new(ExecutionOf(p.Result))
	}
	return w
}

// shown is a text that JSON can hold.
func shown(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// Cove returns the platform's own form.
func (w Process) Cove() cove.ProcessInfo {
	p := cove.ProcessInfo{
		PID: w.PID, Command: w.Command, Argv: w.Argv, Dir: w.Workdir, Tag: w.Tag,
		TTY: w.TTY, Running: w.Running, StartedAt: w.StartedAt, OutputID: w.OutputID,
	}
	if w.Result != nil {
		p.Result = w.Result.Cove()
	}
	return p
}

// InputRequest writes to the standard input of a background program.
type InputRequest struct {
	Data       *string `json:"data,omitempty"`
	DataBase64 []byte  `json:"data_base64,omitempty"`
	EOF        bool    `json:"eof,omitempty" jsonschema:"and then close it"`
}

// InputRequestOf returns the form of an input.
func InputRequestOf(data []byte, eof bool) InputRequest {
	w := InputRequest{EOF: eof}
	if len(data) > 0 {
		w.Data, w.DataBase64 = texts(data)
	}
	return w
}

// Bytes returns what is to be written.
func (w InputRequest) Bytes() []byte { return untexts(w.Data, w.DataBase64) }

// SignalRequest sends a signal to a background program.
type SignalRequest struct {
	Signal string `json:"signal" jsonschema:"such as TERM, SIGTERM or 15"`
}

// OutputPage is a part of kept output.
type OutputPage struct {
	Data       *string `json:"data,omitempty"`
	DataBase64 []byte  `json:"data_base64,omitempty" jsonschema:"in the place of data where that is not UTF-8"`
	Offset     int64   `json:"offset"`
	Next       int64   `json:"next" jsonschema:"where to go on; -1 at the end"`
	Total      int64   `json:"total" jsonschema:"bytes kept"`
	Dropped    int64   `json:"dropped,omitempty" jsonschema:"bytes written after the cap and not kept"`
}

// OutputPageOf returns the form of p.
func OutputPageOf(p *cove.OutputPage) OutputPage {
	w := OutputPage{Offset: p.Offset, Next: p.Next, Total: p.Total, Dropped: p.Dropped}
	w.Data, w.DataBase64 = texts(p.Data)
	return w
}

// Cove returns the platform's own form.
func (w OutputPage) Cove() *cove.OutputPage {
	return &cove.OutputPage{Data: untexts(w.Data, w.DataBase64), Offset: w.Offset, Next: w.Next, Total: w.Total, Dropped: w.Dropped}
}
