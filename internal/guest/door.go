//go:build linux

package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// ListenArgs is the command, inside the sandbox, of an agent that waits for hosts
// to come through doors. path is where its executable is there.
func ListenArgs(path string) []string { return []string{path, protocol.ListenWord} }

// FilteredArgs is [ListenArgs] in a sandbox that shares its kernel with others: the
// agent keeps itself, and with it all that it starts, from the system calls that no
// program needs, whatever else filters them. It ends where it cannot.
func FilteredArgs(path string) []string { return append(ListenArgs(path), protocol.FilterWord) }

// DoorArgs is the command, inside the sandbox, of a door: it makes its standard
// input and output the link of a host. It must be started as root, without any
// capability, by who may do that from outside; programs must not be able to.
func DoorArgs(path string) []string { return []string{path, protocol.DoorWord} }

// maxPrelude bounds what is said before an agent is.
const maxPrelude = 4 << 10

// Door is the transport through the standard streams of a door, which it takes
// over, also when it fails. It returns when the agent has them. The end of the
// transport is that of the door, and not of the agent, which goes on with what is
// kept until the next door.
func Door(ctx context.Context, rw io.ReadWriteCloser) (Transport, error) {
	stop := context.AfterFunc(ctx, func() { _ = rw.Close() })
	said, err := prelude(rw)
	if !stop() {
		return Transport{}, ctx.Err()
	}
	if err != nil {
		_ = rw.Close()
		return Transport{}, cove.Wrap(cove.Unavailable, fmt.Errorf("%w: %q", err, strings.TrimSpace(string(said))), "the sandbox's agent opened no door").
			Remedy("make the sandbox anew if it goes on")
	}
	return Framed(rw), nil
}

// prelude reads up to where the agent begins to speak, and returns what came
// before. It reads no more than that.
func prelude(r io.Reader) ([]byte, error) {
	var said []byte
	var b [1]byte
	for len(said) < maxPrelude {
		n, err := r.Read(b[:])
		if said = append(said, b[:n]...); bytes.HasSuffix(said, []byte(protocol.Magic)) {
			return nil, nil
		}
		if err != nil {
			return said, err
		}
	}
	return said, errors.New("somebody else speaks")
}
