//go:build linux

package docker

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// The streams that an engine marks what it sends with.
const (
	streamOut = 1
	streamErr = 2
)

// mostSaid bounds what is kept of what a door complains about.
const mostSaid = 4 << 10

// doorway is the engine's end of a door: what it sends is in pieces, each with a
// header that says which stream it is of.
type doorway struct {
	conn net.Conn
	r    *bufio.Reader
	left uint32 // of the piece that is being read
	ends func() // called once, at the end

	once sync.Once
	mu   sync.Mutex
	said strings.Builder // on the error stream; guarded by mu
}

// Read implements [io.Reader].
func (d *doorway) Read(b []byte) (int, error) {
	n, err := d.read(b)
	if err != nil {
		d.once.Do(d.ends)
	}
	return n, err
}

func (d *doorway) read(b []byte) (int, error) {
	for d.left == 0 {
		var head [8]byte
		if _, err := io.ReadFull(d.r, head[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(head[4:])
		switch head[0] {
		case streamOut:
			d.left = size
		case streamErr:
			if err := d.complaint(int64(size)); err != nil {
				return 0, err
			}
		default:
			return 0, fmt.Errorf("the engine sent a piece of stream %d", head[0])
		}
	}
	n, err := d.r.Read(b[:min(len(b), int(d.left))])
	d.left -= uint32(n) //nolint:gosec // no more than what is left
	return n, err
}

// complaint keeps the beginning of what a door says is wrong.
func (d *doorway) complaint(size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	keep := min(size, max(0, mostSaid-int64(d.said.Len())))
	if _, err := io.CopyN(&d.said, d.r, keep); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, d.r, size-keep)
	return err
}

func (d *doorway) complaints() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.TrimSpace(d.said.String())
}

// Write implements [io.Writer]. Who writes may see the end before who reads.
func (d *doorway) Write(b []byte) (int, error) {
	n, err := d.conn.Write(b)
	if err != nil {
		d.once.Do(d.ends)
	}
	return n, err
}

// Close implements [io.Closer].
func (d *doorway) Close() error { return d.conn.Close() }

// enter opens a door into a container. ends is called when the engine has no more
// to send.
func (e *engine) enter(ctx context.Context, container string, ends func()) (guest.Transport, error) {
	do, cancel := within(ctx, doPatience)
	defer cancel()
	made, err := e.ExecCreate(do, container, client.ExecCreateOptions{
		User: "0:0", Cmd: guest.DoorArgs(agentName), AttachStdin: true, AttachStdout: true, AttachStderr: true, WorkingDir: "/",
	})
	if err != nil {
		return guest.Transport{}, e.fault(ctx, err, "open a door into a container")
	}
	stream, err := e.ExecAttach(do, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return guest.Transport{}, e.fault(ctx, err, "open a door into a container")
	}
	d := &doorway{conn: stream.Conn, r: stream.Reader, ends: ends}
	t, err := guest.Door(do, d)
	if err != nil {
		if said := d.complaints(); said != "" {
			err = fmt.Errorf("%w: %.500q", err, said)
		}
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		return t, cove.Wrap(cove.Unavailable, err, "the container's agent does not answer").Reason(cove.ReasonSandboxCreation).
			Remedy("open a new sandbox; if it stays so, see whether the image runs on this machine")
	}
	return t, nil
}
