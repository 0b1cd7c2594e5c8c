package e2bapi

import (
	"context"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

// maxPiece bounds the output in one message.
const maxPiece = 32 << 10

// teller sends what a program writes to a client.
type teller struct {
	out    *streamWriter
	tty    bool
	halves map[cove.Stream]*halves // of runes
}

func newTeller(out *streamWriter, tty bool) teller {
	return teller{out: out, tty: tty, halves: map[cove.Stream]*halves{cove.Stdout: {}, cove.Stderr: {}}}
}

// begin tells the number of the program, and from now on that the stream lives.
func (t teller) begin(pid int) error {
	if err := t.out.send(processEvent{processNews{Start: &startEvent{PID: pid}}}); err != nil {
		return err
	}
	t.out.beat(processEvent{processNews{Keepalive: &empty{}}})
	return nil
}

// output sends a chunk in pieces.
func (t teller) output(c cove.Chunk) error {
	for data := c.Data; len(data) > 0; {
		n := min(len(data), maxPiece)
		if err := t.send(c.Stream, t.whole(c.Stream, data[:n])); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// whole leaves half a rune at the end for the next piece. A terminal's client reads
// bytes, and wants them at once.
func (t teller) whole(from cove.Stream, data []byte) []byte {
	if h := t.halves[from]; h != nil && !t.tty {
		return h.whole(data)
	}
	return data
}

func (t teller) send(from cove.Stream, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	return t.out.send(processEvent{processNews{Data: t.piece(from, data)}})
}

// rest sends what was left for a next piece that does not come.
func (t teller) rest() error {
	for _, from := range []cove.Stream{cove.Stdout, cove.Stderr} {
		if err := t.send(from, t.halves[from].rest()); err != nil {
			return err
		}
	}
	return nil
}

func (t teller) piece(from cove.Stream, data []byte) *dataEvent {
	switch {
	case t.tty:
		return &dataEvent{PTY: data}
	case from == cove.Stderr:
		return &dataEvent{Stderr: data}
	}
	return &dataEvent{Stdout: data}
}

// finish tells how the program ended. One that ran out of time is the call's
// deadline.
func (t teller) finish(x *cove.Execution) error {
	if err := t.rest(); err != nil {
		return err
	}
	if x.Outcome == cove.TimedOut {
		return errPassed
	}
	return t.out.hold(processEvent{processNews{End: endOf(x)}})
}

// killedExit is what a shell says of a program that was killed.
const killedExit = 137

// endOf is the end of a program in the words of the daemon in E2B's machines.
func endOf(x *cove.Execution) *endEvent {
	e := &endEvent{ExitCode: x.ExitCode, Exited: x.Outcome == cove.Exited || x.Outcome == cove.Blocked}
	switch {
	case e.Exited:
		e.Status = "exit status " + strconv.Itoa(x.ExitCode)
	case x.Outcome == cove.Signaled:
		e.Status = "signal: " + signalText(x.Signal)
	case x.Outcome == cove.OutOfMemory:
		e.Status = "signal: killed (out of memory)"
	case x.Outcome == cove.OutputLimit:
		e.Status = "signal: killed (output limit)"
	default:
		e.Status = "signal: killed"
	}
	if e.ExitCode < 0 { // timed out
		e.ExitCode = killedExit
	}
	if !e.Exited || x.ExitCode != 0 {
		e.Error = e.Status
	}
	return e
}

// signalTexts are what Go, and so E2B's daemon, calls signals.
var signalTexts = map[cove.Signal]string{
	"HUP": "hangup", "INT": "interrupt", "QUIT": "quit", "ABRT": "aborted", "KILL": "killed", "USR1": "user defined signal 1",
	"SEGV": "segmentation fault", "USR2": "user defined signal 2", "PIPE": "broken pipe", "ALRM": "alarm clock", "TERM": "terminated",
}

func signalText(s cove.Signal) string {
	if text := signalTexts[s]; text != "" {
		return text
	}
	return "SIG" + strings.ToUpper(string(s))
}

// connect tells what a program writes from now on, and its end.
func (c *call) connect(ctx context.Context, in connectRequest, out *streamWriter) error {
	info, err := c.process(ctx, in.Process)
	if err != nil {
		return err
	}
	page, err := c.processes().Output(ctx, info.OutputID, cove.OutputRange{Limit: 1})
	if err != nil {
		return err
	}
	t := newTeller(out, info.TTY)
	if err := t.begin(int(info.PID)); err != nil {
		return err
	}
	next := page.Total + page.Dropped
	for chunk, err := range c.processes().Connect(ctx, info.PID, next) {
		if err != nil {
			return err
		}
		if chunk.Offset > next {
			return cove.Errorf(cove.Exhausted, "%d bytes of output came faster than they were taken, and are lost", chunk.Offset-next).
				Remedy("connect again for what comes now, or have the program write to a file")
		}
		if err := t.output(chunk); err != nil {
			return err
		}
		next = chunk.Offset + int64(len(chunk.Data))
	}
	x, err := c.processes().Wait(ctx, info.PID)
	if err == nil {
		err = t.rest()
	}
	if err != nil {
		return err
	}
	return t.out.hold(processEvent{processNews{End: endOf(x)}}) // its deadline was not this call's
}
