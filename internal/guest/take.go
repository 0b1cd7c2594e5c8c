//go:build linux

package guest

import (
	"context"
	"os"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Planted is what a program is made with that is put into a sandbox from outside.
type Planted struct {
	Files     [3]int // its standard streams; -1 for one that it does not have
	Env       []string
	Dir       string
	Processes int // how many it may have, as in [Options]
}

// Take is Start for a program that plant puts into the sandbox, as a child of the
// agent, instead of the agent. plant returns its number inside, and a file from which the
// program reads one byte before it begins: one that ended before the agent knows it could
// be reaped as a stranger. The files of Planted are not its to close. The command must
// not ask for a terminal, nor be kept.
func (c *Conn) Take(ctx context.Context, cmd cove.Command, plant func(context.Context, Planted) (int, *os.File, error)) (cove.Process, error) {
	req, err := c.opts.Load().request(cmd)
	if err != nil {
		return nil, err
	}
	if cmd.TTY != nil || cmd.Keep != "" && !cmd.Record || cmd.Programs != nil || c.link.Relayed() {
		return nil, cove.Errorf(cove.Unsupported, "a program that is put into a sandbox has no terminal, no name and no list of programs")
	}
	p := c.program(cmd)
	p.started, p.guarded = time.Now(), false // the agent gets no streams
	if p.keep, err = c.keepName(cmd); err != nil {
		return nil, err
	}
	streams, err := p.connect(&cmd, &req)
	if err == nil {
		err = p.record(cmd)
	}
	if err != nil {
		p.abandon(streams)
		return nil, err
	}
	if p.recording != nil {
		p.recording.unnamed = true
	}
	with := Planted{Files: [3]int{-1, -1, -1}, Env: req.Env, Dir: req.Dir, Processes: int(req.Processes)}
	next := 0
	for i, bit := range []protocol.Stdio{protocol.Stdin, protocol.Stdout, protocol.Stderr} {
		if req.Stdio&bit != 0 {
			with.Files[i] = streams[next].FD()
			next++
		}
	}
	if req.Stdio&protocol.Merged != 0 {
		with.Files[2] = with.Files[1]
	}
	pid, begin, err := plant(ctx, with)
	if err != nil {
		p.abandon(streams)
		return nil, err
	}
	defer func() { _ = begin.Close() }() // a program that waits for it ends
	for _, s := range streams {
		s.Close()
	}
	id, ch, err := c.begin(ctx, p)
	if err != nil {
		p.abandon(nil)
		return nil, err
	}
	a, err := c.finish(ctx, id, ch, protocol.KindTake, protocol.Poke{Program: uint64(pid)}.Encode(), nil) //nolint:gosec // a pid
	if err != nil {
		c.drop(p)
		p.abandon(nil)
		p.forsake()
		return nil, err
	}
	taken, err := c.started(p, cmd, a)
	if err != nil {
		return nil, err
	}
	_, _ = begin.Write([]byte{1}) // a program that was killed meanwhile has its end told
	return taken, nil
}
