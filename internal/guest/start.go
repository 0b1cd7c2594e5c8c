//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Start runs a program, under the contract of [cove.Sandbox].
func (c *Conn) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	req, err := c.opts.Load().request(cmd)
	if err != nil {
		return nil, err
	}
	if l := cmd.Programs; l != nil && c.lists {
		req.Programs = &protocol.Programs{Names: l.Names, Helpers: l.Helpers, Offline: l.Offline}
	}
	if req.Keep, err = c.keepName(cmd); err != nil {
		return nil, err
	}
	p := c.program(cmd)
	p.keep, p.started = req.Keep, time.Now()
	if _, inside := p.holder.(inside); inside && p.keep != "" {
		return c.startHeld(ctx, p, cmd, req)
	}
	streams, err := p.connect(&cmd, &req)
	if err != nil {
		p.abandon(streams)
		return nil, err
	}
	if err := p.record(cmd); err != nil {
		p.abandon(streams)
		return nil, err
	}
	body := req.Encode()
	if len(body) > protocol.MaxBody {
		p.abandon(streams)
		return p.refused(cmd, syscall.E2BIG), nil
	}
	if err := p.hold(ctx, cmd); err != nil {
		p.abandon(streams)
		return nil, err
	}
	id, ch, err := c.begin(ctx, p)
	if err != nil {
		p.abandon(streams)
		return nil, err
	}
	a, err := c.finish(ctx, id, ch, protocol.KindStart, body, streams)
	if err != nil {
		c.drop(p)
		p.abandon(nil)
		p.forsake()
		return nil, err
	}
	return c.started(p, cmd, a)
}

func newProcess(cmd cove.Command, starved func() bool) *process {
	p := &process{
		starved: starved, done: make(chan struct{}), over: make(chan struct{}),
		budget: int64(cmd.Limits.Output), limited: cmd.Limits.Output > 0, left: func() bool { return false },
	}
	p.pending.Store(2)
	return p
}

// program is one that the agent is asked about.
func (c *Conn) program(cmd cove.Command) *process {
	p := newProcess(cmd, c.starved)
	p.relayed, p.holder, p.left = c.link.Relayed(), c.holder(), c.hasLeft
	p.guarded = !p.relayed && c.version >= protocol.Guards
	p.poke = func(ctx context.Context, kind protocol.Kind, to protocol.Poke) error {
		return c.plain(ctx, kind, to.Encode())
	}
	return p
}

// starved is [Options.OutOfMemory] as it is now: whose sandbox it has become
// since the program was started may be able to tell.
func (c *Conn) starved() bool {
	ask := c.opts.Load().OutOfMemory
	return ask != nil && ask()
}

// started goes on with what the agent said about a start.
func (c *Conn) started(p *process, cmd cove.Command, a answer) (cove.Process, error) {
	if !a.OK() {
		c.drop(p)
		p.abandon(a.streams)
		if a.Reason == protocol.ReasonExec {
			return p.refused(cmd, syscall.Errno(a.Errno)), nil
		}
		return nil, fault(a.Reply, cmd.Dir)
	}
	if err := c.terminal(p, cmd, a.streams); err != nil {
		p.abandon(a.streams)
		p.forsake()
		return nil, err
	}
	if err := p.holdTerminal(cmd); err != nil {
		c.drop(p)
		p.abandon(nil)
		p.forsake()
		return nil, err
	}
	p.run(cmd)
	return p, nil
}

// run lets the streams flow, and the time.
func (p *process) run(cmd cove.Command) {
	p.pump(cmd)
	if wall := cmd.Limits.Wall; wall > 0 {
		p.watchdog(wall, p.started)
	}
}

// request checks a command and turns it into words for who is inside.
func (o Options) request(cmd cove.Command) (protocol.Start, error) {
	req := protocol.Start{Argv: cmd.Argv, Processes: uint32(o.Processes)} //nolint:gosec // the spec's bound is far below
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return req, cove.InvalidField("command", "is empty; name a program")
	}
	if len(cmd.Argv) > protocol.MaxArgs {
		return req, cove.InvalidField("command", "has %d arguments; the most is %d", len(cmd.Argv), protocol.MaxArgs)
	}
	for _, a := range cmd.Argv {
		if strings.IndexByte(a, 0) >= 0 {
			return req, cove.InvalidField("command", "holds a NUL byte")
		}
	}
	var err error
	if req.Dir, err = o.dir(cmd.Dir); err != nil {
		return req, err
	}
	req.Env = make([]string, 0, len(o.Env)+len(cmd.Env))
	for k, v := range o.Env {
		if _, own := cmd.Env[k]; !own {
			req.Env = append(req.Env, k+"="+v)
		}
	}
	for k, v := range cmd.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.IndexByte(v, 0) >= 0 {
			return req, cove.InvalidField("env", "%.40q cannot be set; names have no = and nothing has a NUL", k)
		}
		req.Env = append(req.Env, k+"="+v)
	}
	if t := cmd.TTY; t != nil {
		if t.Cols == 0 || t.Rows == 0 {
			return req, cove.InvalidField("tty", "a terminal of %d columns and %d rows cannot be", t.Cols, t.Rows)
		}
		req.Cols, req.Rows = t.Cols, t.Rows
	}
	return req, nil
}

func (o Options) dir(name string) (string, error) {
	if name == "" {
		return o.Dir, nil
	}
	return o.name(name)
}

// connect makes the pipes of a program and says so in the request. Input that is all in its
// pipe is none of the command any more.
func (p *process) connect(cmd *cove.Command, req *protocol.Start) ([]*protocol.Stream, error) {
	if cmd.TTY != nil {
		req.Stdio = protocol.TTY
		return nil, nil
	}
	var streams []*protocol.Stream
	if cmd.Stdin != nil {
		s, err := p.connectInput(cmd, req)
		streams = append(streams, s...)
		if err != nil {
			return streams, err
		}
	}
	stdout, stderr := cmd.Stdout, cmd.Stderr
	merged := stdout != nil && stderr != nil && same(stdout, stderr)
	if p.limited || p.keep != "" { // what is thrown away is counted, too, or wanted later
		stdout, stderr = orDiscard(stdout), orDiscard(stderr)
	}
	for _, o := range []struct {
		bit protocol.Stdio
		w   io.Writer
	}{{protocol.Stdout, stdout}, {protocol.Stderr, stderr}} {
		switch {
		case o.w == nil:
			continue
		case o.bit == protocol.Stderr && merged:
			req.Stdio |= protocol.Merged
			continue
		}
		f, s, err := protocol.Pipe(protocol.Writable)
		if err != nil {
			return streams, pipeFault(err)
		}
		p.outs = append(p.outs, &output{p: p, file: f, to: o.w, stderr: o.bit == protocol.Stderr})
		streams, req.Stdio = append(streams, s), req.Stdio|o.bit
	}
	return streams, nil
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// same reports whether two writers are one, to which nobody may write twice at
// the same time.
func same(a, b io.Writer) bool {
	return reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

func pipeFault(err error) error {
	return cove.Wrap(cove.Exhausted, err, "the host has no descriptor left for the program's streams; raise its limit on open files").Reason(cove.ReasonCapacity)
}

// terminal takes the terminal that the agent made.
func (c *Conn) terminal(p *process, cmd cove.Command, streams []*protocol.Stream) error {
	if cmd.TTY == nil && len(streams) == 0 {
		return nil
	}
	if cmd.TTY == nil || len(streams) != 1 || !isTerminal(streams[0].FD(), p.relayed) {
		err := lost(errors.New("it attached what it was not asked for"))
		c.fail(err)
		return err
	}
	p.tty = true
	master := streams[0].File("terminal")
	p.outs = []*output{{p: p, file: master, to: orDiscard(cmd.Stdout)}}
	p.stdin = master
	return nil
}

// refused is a program that could not be executed: it ended before it began.
func (p *process) refused(cmd cove.Command, errno syscall.Errno) cove.Process {
	code := complain(cmd, errno)
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	close(p.over)
	p.result = cove.Result{Outcome: cove.Exited, ExitCode: code, Wall: max(time.Since(p.started), 1)}
	close(p.done)
	return p
}

// complain says that a program could not be executed as a shell does, and returns
// the exit code for it.
func complain(cmd cove.Command, errno syscall.Errno) (code int) {
	code, why := 126, errno.Error()
	if errno == syscall.ENOENT {
		code, why = 127, "not found"
	}
	w := cmd.Stderr
	if cmd.TTY != nil {
		w = cmd.Stdout
	}
	if w != nil {
		// A caller whose writer fails learns the rest from the code.
		_, _ = fmt.Fprintf(w, "cove: %.4096s: %s\n", cmd.Argv[0], why)
	}
	return code
}
