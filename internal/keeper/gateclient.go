//go:build linux && !lean

package keeper

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

// Sockets are descriptors of those through which a sandbox reaches its gateway.
type Sockets struct {
	Packets, Streams []int // of the name server
	Ports            []int
}

// parts yields the sockets with their names, few enough at a time for a message.
func (s Sockets) parts() (names [][]string, files [][]int) {
	const most = maxFiles - 1 // a note may be among them
	add := func(prefix string, list []int) {
		for i, fd := range list {
			if n := len(names); n == 0 || len(names[n-1]) == most {
				names, files = append(names, nil), append(files, nil)
			}
			last := len(names) - 1
			names[last] = append(names[last], fmt.Sprint(prefix, i))
			files[last] = append(files[last], fd)
		}
	}
	add(packetSocket, s.Packets)
	add(streamSocket, s.Streams)
	add(portSocket, s.Ports)
	return names, files
}

// Gate opens the way out of a sandbox that is held, which has none yet. It goes on
// while there is no server, and ends with the sandbox. The descriptors stay the
// caller's.
func (c *Client) Gate(ctx context.Context, sandbox string, cfg egress.Config, s Sockets) error {
	names, files := s.parts()
	first := &request{kind: kindGate, sandbox: sandbox}
	var with []int
	if len(names) > 0 {
		first.names, with = names[0], files[0]
	}
	if err := c.noted(ctx, first, cfg, with); err != nil || len(names) < 2 {
		return err
	}
	for i := range names[1:] {
		if err := c.plain(ctx, &request{kind: kindListen, sandbox: sandbox, names: names[i+1]}, files[i+1]...); err != nil {
			return err
		}
	}
	return nil
}

// Listen adds sockets to a gateway.
func (c *Client) Listen(ctx context.Context, sandbox string, s Sockets) error {
	names, files := s.parts()
	for i := range names {
		if err := c.plain(ctx, &request{kind: kindListen, sandbox: sandbox, names: names[i]}, files[i]...); err != nil {
			return err
		}
	}
	return nil
}

// Set replaces what may go out.
func (c *Client) Set(ctx context.Context, sandbox string, cfg egress.Config) error {
	return c.noted(ctx, &request{kind: kindSet, sandbox: sandbox}, cfg, nil)
}

// Connections returns what the gateway knows of connections above a number.
func (c *Client) Connections(ctx context.Context, sandbox string, after int64) ([]cove.Connection, error) {
	var all []cove.Connection
	for {
		a, err := c.call(ctx, &request{kind: kindConnections, sandbox: sandbox, offset: after}, nil)
		closeAll(a.files)
		if err != nil {
			return nil, err
		}
		var some []cove.Connection
		if err := json.Unmarshal([]byte(a.note), &some); err != nil {
			return nil, err
		}
		if len(some) == 0 || some[len(some)-1].Number <= after {
			return all, nil
		}
		all = append(all, some...)
		after = some[len(some)-1].Number
	}
}

// Ungate closes a gateway and ends its connections.
func (c *Client) Ungate(ctx context.Context, sandbox string) error {
	return c.plain(ctx, &request{kind: kindUngate, sandbox: sandbox})
}

// noted sends a request with a config as its note.
func (c *Client) noted(ctx context.Context, r *request, cfg egress.Config, files []int) error {
	text, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	if len(text) <= inlineNote {
		r.note = string(text)
		return c.plain(ctx, r, files...)
	}
	note, err := noteFile(text)
	if err != nil {
		return err
	}
	defer func() { _ = note.Close() }()
	return c.plain(ctx, withFile(r, noteName), append(files, int(note.Fd()))...)
}
