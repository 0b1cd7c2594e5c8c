package e2bapi

import (
	"encoding/json"

	"github.com/cove-sandbox/cove"
)

// selector names a process by its number or by its tag.
type selector struct {
	PID *int64 `json:"pid,omitempty"`
	Tag string `json:"tag,omitempty"`
}

// processConfig is a program as clients describe one.
type processConfig struct {
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args"`
	Envs map[string]string `json:"envs"`
	Cwd  string            `json:"cwd,omitempty"`
}

// terminal is the size of one.
type terminal struct {
	Size struct {
		Cols uint32 `json:"cols"`
		Rows uint32 `json:"rows"`
	} `json:"size"`
}

// size is that of the engine, or Invalid.
func (t terminal) size() (cove.WindowSize, error) {
	const most = 1<<16 - 1
	cols, rows := t.Size.Cols, t.Size.Rows
	if cols == 0 || rows == 0 || cols > most || rows > most {
		return cove.WindowSize{}, cove.InvalidField("pty.size", "%d × %d is no size of a terminal; use 1 to %d for each", cols, rows, most)
	}
	return cove.WindowSize{Cols: uint16(cols), Rows: uint16(rows)}, nil
}

// startRequest asks for a program.
type startRequest struct {
	Process *processConfig `json:"process"`
	PTY     *terminal      `json:"pty"`
	Tag     string         `json:"tag"`
	Stdin   *bool          `json:"stdin"` // left out, as by old clients, it is open
}

// connectRequest names a process, and nothing more.
type connectRequest struct {
	Process selector `json:"process"`
}

// inputRequest is what a program is to read.
type inputRequest struct {
	Process selector     `json:"process"`
	Input   processInput `json:"input"`
}

// processInput has one of the two.
type processInput struct {
	Stdin []byte `json:"stdin"`
	PTY   []byte `json:"pty"`
}

func (p processInput) bytes() []byte {
	if len(p.PTY) > 0 {
		return p.PTY
	}
	return p.Stdin
}

// streamInput is one message of a stream of input. One field is set.
type streamInput struct {
	Start *struct {
		Process selector `json:"process"`
	} `json:"start"`
	Data *struct {
		Input processInput `json:"input"`
	} `json:"data"`
}

// signalRequest asks for a signal.
type signalRequest struct {
	Process selector   `json:"process"`
	Signal  signalName `json:"signal"`
}

// signalName is one of the two signals that clients can name, by name or number.
type signalName cove.Signal

// UnmarshalJSON implements json.Unmarshaler.
func (s *signalName) UnmarshalJSON(text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	switch v {
	case "SIGNAL_SIGTERM", float64(15):
		*s = "TERM"
	case "SIGNAL_SIGKILL", float64(9):
		*s = "KILL"
	default:
		*s = ""
	}
	return nil
}

// updateRequest asks for another size of a terminal.
type updateRequest struct {
	Process selector  `json:"process"`
	PTY     *terminal `json:"pty"`
}

// processEvent is one of what a stream tells of a program. One field is set.
type processEvent struct {
	Event processNews `json:"event"`
}

type processNews struct {
	Start     *startEvent `json:"start,omitempty"`
	Data      *dataEvent  `json:"data,omitempty"`
	End       *endEvent   `json:"end,omitempty"`
	Keepalive *empty      `json:"keepalive,omitempty"`
}

type startEvent struct {
	PID int `json:"pid"`
}

// dataEvent has one of the three.
type dataEvent struct {
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	PTY    []byte `json:"pty,omitempty"`
}

type endEvent struct {
	ExitCode int    `json:"exitCode"`
	Exited   bool   `json:"exited"`
	Status   string `json:"status"`
	Error    string `json:"error,omitempty"`
}

// processList is what runs in a sandbox.
type processList struct {
	Processes []listedProcess `json:"processes"`
}

type listedProcess struct {
	Config processConfig `json:"config"`
	PID    int           `json:"pid"`
	Tag    string        `json:"tag,omitempty"`
}

// empty is a message that says nothing.
type empty struct{}
