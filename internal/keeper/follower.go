//go:build linux

package keeper

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// The kinds of records to follow by.
const (
	recordOut byte = iota + 1
	recordErr
	recordEnd
	recordLostOut // in the place of the offset: how many bytes of stdout were dropped here
	recordLostErr // the same of stderr
)

const (
	recordHead = 1 + 8 + 4
	maxRecord  = 64 << 10
)

// follower is somebody who reads along.
type follower struct {
	at      int64 // how far he has come; guarded by the program's mu, as is the next
	stalled bool  // nobody waits for him
	cancel  context.CancelFunc
}

var errFollowers = errors.New("too many follow the program")

// follow returns a socket that gets the output from an offset on.
func (p *program) follow(offset int64) (int, error) {
	if total := p.log.Total(); offset < 0 || offset > total {
		return -1, fmt.Errorf("offset %d is not within the %d bytes that were written", offset, total)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, os.NewSyscallError("socketpair", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{at: offset, cancel: cancel}
	p.mu.Lock()
	full := len(p.followers) >= maxFollowers || p.isGone()
	if !full {
		p.followers[f] = true
	}
	p.mu.Unlock()
	if full {
		cancel()
		closeAll(fds[:])
		return -1, errFollowers
	}
	go p.serve(ctx, f, os.NewFile(uintptr(fds[0]), "follower"))
	return fds[1], nil
}

// serve writes the log to one who follows, until its end or his.
func (p *program) serve(ctx context.Context, f *follower, to *os.File) {
	defer f.cancel()
	defer func() { _ = to.Close() }()
	defer p.leave(f)
	go func() {
		_, _ = to.Read(make([]byte, 1)) // he says nothing; it is his end, or ours
		f.cancel()
	}()
	var failed error
	list := p.log.Follow(ctx, f.at)
	if f.at == 0 {
		list = p.log.FollowAll(ctx, func(stdout, stderr int64) { failed = writeLost(to, stdout, stderr) })
	}
	for c, err := range list {
		if err != nil || failed != nil {
			return
		}
		stream := recordOut
		if c.Stream == cove.Stderr {
			stream = recordErr
		}
		if writeRecord(to, stream, c.Offset, c.Data) != nil {
			return
		}
		p.move(f, c.Offset+int64(len(c.Data)))
	}
	_ = writeRecord(to, recordEnd, p.log.Total(), nil)
}

// writeLost writes how much of each stream is missing.
func writeLost(to io.Writer, stdout, stderr int64) error {
	var err error
	if stdout > 0 {
		err = writeRecord(to, recordLostOut, stdout, nil)
	}
	if stderr > 0 && err == nil {
		err = writeRecord(to, recordLostErr, stderr, nil)
	}
	return err
}

func writeRecord(to io.Writer, kind byte, offset int64, data []byte) error {
	b := make([]byte, recordHead, recordHead+len(data))
	b[0] = kind
	binary.BigEndian.PutUint64(b[1:], uint64(offset))    //nolint:gosec // not negative
	binary.BigEndian.PutUint32(b[9:], uint32(len(data))) //nolint:gosec // a chunk of a log
	_, err := to.Write(append(b, data...))
	return err
}

// move notes how far a follower has come.
func (p *program) move(f *follower, to int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.at = to
	p.announce()
}

func (p *program) leave(f *follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.followers, f)
	p.announce()
}

// announce wakes who waits for followers. Called with mu held.
func (p *program) announce() {
	if p.moved != nil {
		close(p.moved)
		p.moved = nil
	}
}

// chunks yields what comes out of a socket to follow by, which it closes. Without
// its end, what came before is not complete.
func chunks(ctx context.Context, from *os.File) iter.Seq2[cove.Chunk, error] {
	return func(yield func(cove.Chunk, error) bool) {
		defer func() { _ = from.Close() }()
		defer context.AfterFunc(ctx, func() { _ = from.Close() })()
		in := bufio.NewReaderSize(from, maxRecord+recordHead)
		for {
			c, err := readRecord(in)
			if errors.Is(err, errEnd) {
				return
			}
			if err != nil {
				if ctx.Err() != nil {
					err = ctx.Err()
				}
				yield(cove.Chunk{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// errEnd is how a log ends.
var errEnd = errors.New("the log ends here")

func readRecord(in io.Reader) (cove.Chunk, error) {
	var head [recordHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return cove.Chunk{}, cut(err)
	}
	c := cove.Chunk{Stream: cove.Stdout, Offset: int64(binary.BigEndian.Uint64(head[1:]))} //nolint:gosec // checked
	size := binary.BigEndian.Uint32(head[9:])
	switch {
	case head[0] == recordEnd && size == 0:
		return c, errEnd
	case c.Offset > 0 && size == 0 && (head[0] == recordLostOut || head[0] == recordLostErr):
		if head[0] == recordLostErr {
			c.Stream = cove.Stderr
		}
		return c, nil
	case head[0] == recordErr:
		c.Stream = cove.Stderr
	case head[0] != recordOut:
		return c, protocol.ErrMalformed
	}
	if c.Offset < 0 || size == 0 || size > maxRecord {
		return c, protocol.ErrMalformed
	}
	c.Data = make([]byte, size)
	_, err := io.ReadFull(in, c.Data)
	return c, cut(err)
}

// cut says that a log has no end.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
