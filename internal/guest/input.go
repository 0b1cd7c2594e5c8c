//go:build linux

package guest

import (
	"bytes"
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// A program that reads the end of its input believes that it has all of it. So the end must
// come from the caller: not from a reader that broke, nor from this process being killed,
// with which the kernel closes our end of the pipe. Input that is in the pipe as a whole
// before the program begins is safe. Of other input the agent has our end of the pipe, too,
// until we shut it; when this host is gone, the agent ends the program first.

// pipeBytes is how much a pipe takes before it is read.
const pipeBytes = 64 << 10

// connectInput makes the pipe for the input of a program.
func (p *process) connectInput(cmd *cove.Command, req *protocol.Start) ([]*protocol.Stream, error) {
	f, s, err := protocol.Pipe(protocol.Readable)
	if err != nil {
		return nil, pipeFault(err)
	}
	req.Stdio |= protocol.Stdin
	streams := []*protocol.Stream{s}
	if data := inMemory(cmd.Stdin); data != nil {
		n, _ := unix.Write(fdOf(f), data)
		if data = data[max(n, 0):]; len(data) == 0 {
			cmd.Stdin = nil
			return streams, f.Close()
		}
		cmd.Stdin = bytes.NewReader(data) // the pipe is smaller than usual
	}
	p.stdin = f
	p.guarded = p.guarded && p.keep == "" // the keeper or the agent holds the input of what is kept
	if !p.guarded {
		return streams, nil
	}
	fd, err := unix.FcntlInt(uintptr(fdOf(f)), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return streams, pipeFault(err)
	}
	req.Stdio |= protocol.Guarded
	return append(streams, protocol.NewStream(fd, protocol.Writable)), nil
}

// inMemory returns what a reader has, where that is in memory and fits into a pipe, without
// reading it: the program may not start.
func inMemory(from io.Reader) []byte {
	r, ok := from.(interface {
		io.ReaderAt

		Len() int
		Size() int64
	})
	if !ok || r.Len() > pipeBytes {
		return nil
	}
	data := make([]byte, r.Len())
	if n, _ := r.ReadAt(data, r.Size()-int64(len(data))); n < len(data) {
		return nil
	}
	return data
}

// feed copies the caller's input. It ends with the program as soon as the
// reader lets it.
func (p *process) feed(from io.Reader) {
	broke, err := p.copyInput(from)
	if broke && !errors.Is(err, io.EOF) {
		// For a program that is kept, the input goes on with the next host. Any other must
		// not take this for the end.
		if !p.held && p.recording == nil {
			p.end(cove.Killed)
			return
		}
		if !p.tty {
			_ = p.stdin.Close()
		}
		return
	}
	if p.tty {
		if !p.isOver() {
			_, _ = io.WriteString(p.stdin, endOfInput)
		}
		return
	}
	_ = p.stdin.Close()
	p.shut()
}

// copyInput returns how the reader ended, or with broke false, the program's interest in it.
func (p *process) copyInput(from io.Reader) (broke bool, err error) {
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 {
			if _, err := p.stdin.Write(buf[:n]); err != nil {
				return false, err
			}
		}
		if err != nil {
			return true, err
		}
	}
}

// shut says that there is no more input, to the holder or to the agent. When the program has
// ended they know, and when this host has left the input goes on with the next.
func (p *process) shut() {
	switch {
	case p.isOver():
	case p.held:
		p.later(func(ctx context.Context) { _ = p.holder.Shut(ctx, p.keep) })
	case p.guarded:
		p.later(func(ctx context.Context) { _ = p.poke(ctx, protocol.KindShut, protocol.Poke{Program: p.id}) })
	}
}
