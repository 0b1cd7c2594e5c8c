package cove

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Command is one program to run inside a sandbox.
type Command struct {
	Argv   []string          // Argv[0] is looked up in the sandbox's PATH
	Dir    string            // "" means the workspace; a missing one is Invalid
	Env    map[string]string // on top of the sandbox's own
	Stdin  io.Reader         // nil means empty; one that fails has the program Killed, see Keep
	Stdout io.Writer         // nil means thrown away; with TTY it gets everything
	Stderr io.Writer
	TTY    *WindowSize // not nil means a terminal
	Limits Limits
	// Programs, where it is not nil, is all that the program and what it starts may
	// execute, and with them the sandbox's bash, which runs lines. It is enforced where
	// Isolation.Policy is Hard, and nothing looks at it elsewhere.
	Programs *Programs

	// Keep names a program that is to outlive the process that starts it, where
	// the sandbox is a Resumer; it is new in its sandbox, at most 64 letters,
	// digits and "-". Note is held with it, up to 16 KiB. When Stdin ends with an
	// error other than io.EOF, the program's input stays open for who resumes it.
	// A sandbox that is no Resumer does not look at them.
	Keep string
	// Record has a kept program's output recorded from the last [Mark] on instead of
	// from the first byte, where the Sandbox is a Recorder. Nothing of it is dropped: a
	// program that has no reader waits. Its input stays open until it is forgotten.
	Record bool
	Note   []byte
}

// WindowSize is that of a terminal.
type WindowSize struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// Limits bounds one program; zero means the session's own bound.
type Limits struct {
	Wall   time.Duration `json:"wall,omitempty"`   // then it is killed: TimedOut
	Output Bytes         `json:"output,omitempty"` // both streams together, delivered to the byte; then it is killed: OutputLimit
}

// Tighten returns the smaller of each bound; zero is no bound.
func (l Limits) Tighten(by Limits) Limits {
	if by.Wall != 0 && (l.Wall == 0 || by.Wall < l.Wall) {
		l.Wall = by.Wall
	}
	if by.Output != 0 && (l.Output == 0 || by.Output < l.Output) {
		l.Output = by.Output
	}
	return l
}

// A Process is a started Command. Methods are safe for concurrent use.
type Process interface {
	// Wait returns when the program has ended and all it wrote has been
	// delivered. Waiting again gives the same answer. When ctx ends first, the
	// program runs on and the error is the context's.
	Wait(ctx context.Context) (Result, error)
	// Signal sends to the program alone. After its end it is NotFound.
	Signal(ctx context.Context, sig Signal) error
	// Kill ends the program and all it started, also what left its process
	// group and what outlived it. It is idempotent; the Result is Killed unless
	// the program had ended before.
	Kill(ctx context.Context) error
	// Resize is Unsupported without a terminal.
	Resize(ctx context.Context, size WindowSize) error
}

// Result says how a program ended. A program that fails is a Result; only a
// platform that fails is an error.
type Result struct {
	Outcome    Outcome       `json:"outcome"`
	ExitCode   int           `json:"exit_code"` // 128+n for a signal, as a shell has it, so 137 when we killed it; −1 when timed out
	Signal     Signal        `json:"signal,omitempty"`
	Wall       time.Duration `json:"wall"`
	CPU        time.Duration `json:"cpu"`
	PeakMemory Bytes         `json:"peak_memory,omitempty"`
}

// Outcome is why a program stopped.
type Outcome string

// Why programs stop.
const (
	Exited      Outcome = "exited"
	Signaled    Outcome = "signaled"
	TimedOut    Outcome = "timed_out"
	OutOfMemory Outcome = "out_of_memory"
	OutputLimit Outcome = "output_limit"
	Blocked     Outcome = "blocked" // policy said no: it never ran
	Killed      Outcome = "killed"  // by a caller, or because the caller went away
)

// Outcomes returns every outcome.
func Outcomes() []Outcome {
	return []Outcome{Exited, Signaled, TimedOut, OutOfMemory, OutputLimit, Blocked, Killed}
}

// Signal is the name of a signal without SIG, such as "TERM".
type Signal string

// signalNumbers are those a caller may send, with Linux's numbers.
var signalNumbers = map[Signal]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "SEGV": 11, "USR2": 12,
	"PIPE": 13, "ALRM": 14, "TERM": 15, "CONT": 18, "STOP": 19, "TSTP": 20, "WINCH": 28,
}

// ParseSignal reads "TERM", "SIGTERM", "term" or "15".
func ParseSignal(text string) (Signal, error) {
	name := Signal(strings.TrimPrefix(strings.ToUpper(text), "SIG"))
	if _, ok := signalNumbers[name]; ok {
		return name, nil
	}
	if n, err := strconv.Atoi(text); err == nil {
		for s, number := range signalNumbers {
			if n == number {
				return s, nil
			}
		}
	}
	var names []Signal
	for s := range signalNumbers {
		names = append(names, s)
	}
	slices.Sort(names)
	return "", InvalidField("signal", "%.40q is unknown; use one of %s", text, joined(names))
}

// Number returns Linux's number of the signal, or 0 for an unknown one.
func (s Signal) Number() int { return signalNumbers[s] }
