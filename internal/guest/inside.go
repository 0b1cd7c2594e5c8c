//go:build linux

package guest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"os"
	"slices"
	"syscall"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Of what a program writes, an agent keeps this much, or less where memory is
// scarce.
const (
	keptBytes = 16 * cove.MiB
	keptShare = 16 // of the memory, for one program
)

// inside is the holder where nobody outside can be one: the agent itself. It knows
// when programs end, and forgets them when the connection does.
type inside struct {
	c     *Conn
	alone bool // nobody else will ever follow what this follows
}

var _ Holder = inside{}

// holder is who keeps programs; nil if nobody does.
func (c *Conn) holder() Holder {
	if h := c.opts.Load().Holder; h != nil {
		return h
	}
	if c.link.Relayed() && c.version >= protocol.Doors {
		return inside{c: c}
	}
	return nil
}

// startHeld is Start for a program whose streams the agent holds.
func (c *Conn) startHeld(ctx context.Context, p *process, cmd cove.Command, req protocol.Start) (cove.Process, error) {
	note, err := json.Marshal(record{Started: p.started, TTY: cmd.TTY != nil, Note: cmd.Note})
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the program cannot be kept")
	}
	req.Stdio = heldStdio(cmd)
	most := keptBytes
	if memory := c.opts.Load().Memory; memory > 0 {
		most = min(most, memory/keptShare)
	}
	body := protocol.Hold{Start: req, Note: note, Most: uint64(most)}.Encode()
	if len(body) > protocol.MaxBody {
		return p.refused(cmd, syscall.E2BIG), nil
	}
	id, ch, err := c.begin(ctx, p)
	if err != nil {
		return nil, err
	}
	a, err := c.finish(ctx, id, ch, protocol.KindHold, body, nil)
	if err != nil {
		c.drop(p)
		p.forsake()
		return nil, err
	}
	if !a.OK() {
		c.drop(p)
		closeAll(a.streams)
		return nil, fault(a.Reply, cmd.Dir)
	}
	want := 0
	if cmd.Stdin != nil {
		want = 1
	}
	if len(a.streams) != want {
		closeAll(a.streams)
		err := lost(errors.New("it attached what it was not asked for"))
		c.fail(err)
		return nil, err
	}
	p.held, p.tty = true, cmd.TTY != nil
	if want > 0 {
		p.stdin = a.streams[0].File("input")
	}
	p.run(cmd)
	return p, nil
}

// heldStdio says what the agent is to hold. All output is: it may be wanted later.
func heldStdio(cmd cove.Command) protocol.Stdio {
	var s protocol.Stdio
	if cmd.Stdin != nil {
		s |= protocol.Stdin
	}
	switch {
	case cmd.TTY != nil:
		return s | protocol.TTY
	case cmd.Stdout != nil && cmd.Stderr != nil && same(cmd.Stdout, cmd.Stderr):
		return s | protocol.Stdout | protocol.Merged
	default:
		return s | protocol.Stdout | protocol.Stderr
	}
}

func closeAll(streams []*protocol.Stream) {
	for _, s := range streams {
		s.Close()
	}
}

// ask sends a request about a program that is kept, with a stream to read from if
// there is one to be written.
func (h inside) ask(ctx context.Context, kind protocol.Kind, keep string, written bool) (answer, *os.File, error) {
	h.c.mu.Lock()
	k := h.c.kept[keep]
	h.c.mu.Unlock()
	if k == nil {
		if err := h.c.over(); err != nil {
			return answer{}, nil, err
		}
		return answer{}, nil, cove.Errorf(cove.NotFound, "no program named %.80s is kept", keep)
	}
	var from *os.File
	var streams []*protocol.Stream
	if written {
		f, s, err := protocol.Pipe(protocol.Writable)
		if err != nil {
			return answer{}, nil, pipeFault(err)
		}
		from, streams = f, append(streams, s)
	}
	poke := protocol.Poke{Program: k.id}
	if h.alone && kind == protocol.KindFollow {
		poke.Signal = protocol.Alone
	}
	a, err := h.c.call(ctx, kind, poke.Encode(), streams...)
	if err == nil {
		err = fault(a.Reply, keep)
	}
	if err != nil {
		closeAll(a.streams)
		if from != nil {
			_ = from.Close()
		}
		return answer{}, nil, err
	}
	return a, from, nil
}

// over is why the connection has ended, if it has.
func (c *Conn) over() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Keep implements [Holder]: what an agent holds was never anybody else's.
func (h inside) Keep(context.Context, string, []byte, int, int, int) error {
	return cove.Errorf(cove.Unsupported, "an agent holds only the streams that it made")
}

// Names implements [Holder].
func (h inside) Names(context.Context) ([]string, error) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	return slices.Sorted(maps.Keys(h.c.kept)), h.c.err
}

// Look implements [Holder].
func (h inside) Look(ctx context.Context, keep string) ([]byte, int, error) {
	a, from, err := h.ask(ctx, protocol.KindLook, keep, true)
	if err != nil {
		return nil, -1, err
	}
	defer func() { _ = from.Close() }()
	defer context.AfterFunc(ctx, func() { _ = from.Close() })()
	kind, note, err := protocol.NewRecordReader(from).Next()
	if err == nil && (kind != protocol.RecordData || len(a.streams) > 1) {
		err = protocol.ErrMalformed
	}
	if err != nil {
		closeAll(a.streams)
		if ctx.Err() != nil {
			return nil, -1, ctx.Err()
		}
		return nil, -1, lost(err)
	}
	if len(a.streams) == 0 {
		return note, -1, nil
	}
	return note, a.streams[0].Take(), nil
}

// Follow implements [Holder].
func (h inside) Follow(ctx context.Context, keep string) iter.Seq2[cove.Chunk, error] {
	return func(yield func(cove.Chunk, error) bool) {
		a, from, err := h.ask(ctx, protocol.KindFollow, keep, true)
		closeAll(a.streams)
		if err != nil {
			yield(cove.Chunk{}, err)
			return
		}
		defer func() { _ = from.Close() }()
		defer context.AfterFunc(ctx, func() { _ = from.Close() })()
		r := protocol.NewRecordReader(from)
		for {
			kind, data, err := r.Next()
			if err == nil && kind == protocol.RecordLost {
				if !yieldLost(data, yield) {
					return
				}
				continue
			}
			c := cove.Chunk{Stream: cove.Stdout, Data: data}
			switch {
			case err != nil:
			case kind == protocol.RecordEnd:
				return
			case kind == protocol.RecordErrs:
				c.Stream = cove.Stderr
			case kind != protocol.RecordData:
				err = protocol.ErrMalformed
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// yieldLost yields chunks that stand for output that was dropped.
func yieldLost(data []byte, yield func(cove.Chunk, error) bool) bool {
	lost, err := protocol.DecodeLost(data)
	if err != nil {
		yield(cove.Chunk{}, err)
		return false
	}
	for stream, n := range map[cove.Stream]uint64{cove.Stdout: lost.Stdout, cove.Stderr: lost.Stderr} {
		if n > 0 && !yield(cove.Chunk{Stream: stream, Offset: int64(n)}, nil) { //nolint:gosec // bounded
			return false
		}
	}
	return true
}

// Shut implements [Holder].
func (h inside) Shut(ctx context.Context, keep string) error {
	_, _, err := h.ask(ctx, protocol.KindShut, keep, false)
	return err
}

// Finish implements [Holder]: the agent knows.
func (h inside) Finish(context.Context, string) error { return nil }

// Forget implements [Holder]: the connection does it.
func (h inside) Forget(context.Context, string) error { return nil }

// Cause is why the agent ended the sandbox, once Done is closed; nil if it did not.
func (c *Conn) Cause() error {
	if err := c.over(); cove.ReasonOf(err) == cove.ReasonKernelMemory {
		return err
	}
	return nil
}
