package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
)

// serverOptions says how much is measured of a server.
type serverOptions struct {
	restartOptions // how to start it; its sessions and rounds are not used

	rounds   int           // of one exec over HTTP beside one in process
	execs    int           // after which its memory is looked at
	callers  int           // who make them
	transfer cove.Bytes    // the size of the file that goes in and out
	burst    int           // sessions that are opened at once
	sessions int           // that run programs at once
	each     int           // programs of each of them, in a row
	churn    int           // sessions that are made and destroyed
	look     time.Duration // between two looks at its memory
}

// The flavors of the server: one of which a hundred fit, and one with room for a
// large file. Both may use more processors than a program here does, or that bound
// would be measured as slowness.
const (
	roomy = "roomy"

	serverSettings = `flavors:
  tiny: {cpus: 4, memory: 64m, pids: 64}
  roomy: {cpus: 4, memory: 6g, pids: 64}
session: {flavor: tiny, idle_timeout: 1h}
workspace: {max_file_size: 4g}
`
)

// serverRows measures a server that is started for it, over the network and with a
// key, as its callers come: with its log, as an operator would have it. open opens
// the provider that the same is done with in process.
func serverRows(ctx context.Context, o serverOptions, open func(dir string) (cove.Provider, error)) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "cove-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o.env = append(o.env, "COVE_LOG_LEVEL=info")
	h := newHome(o.restartOptions, filepath.Join(dir, "home"))
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(h.dir, "config.yaml"), []byte(serverSettings), 0o600); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.end(ctx)) }()
	if err := h.start(ctx); err != nil {
		return nil, err
	}
	b := &served{serverOptions: o, home: h, open: open}
	for _, part := range []func(context.Context) ([]row, error){b.execRow, b.steadyRow, b.transferRow, b.burstRow, b.crowdRow, b.churnRow} {
		more, err := part(ctx)
		if err != nil {
			return nil, told(err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// served is a server under measurement.
type served struct {
	serverOptions

	home *home
	open func(dir string) (cove.Provider, error)
}

// dial returns a client that comes over the network and shows the first key.
func (b *served) dial() (*client.Client, error) {
	address, key, err := b.home.door()
	if err != nil {
		return nil, err
	}
	return client.New(address, key)
}

// door is where the server is reached over the network, and the first key.
func (h *home) door() (address, key string, err error) {
	text, err := os.ReadFile(filepath.Join(h.dir, "cove.lock"))
	if err != nil {
		return "", "", err
	}
	var holder struct {
		Address string `json:"address"`
	}
	if err := json.Unmarshal(text, &holder); err != nil {
		return "", "", fmt.Errorf("cove.lock: %w", err)
	}
	first, err := os.ReadFile(filepath.Join(h.dir, "admin.key"))
	return holder.Address, strings.TrimSpace(string(first)), err
}

// with does something with a new client.
func (b *served) with(do func(*client.Client) error) error {
	c, err := b.dial()
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}

// inSessions does something with that many new sessions, and closes them.
func (b *served) inSessions(ctx context.Context, n int, spec cove.Spec, do func(*client.Client, []cove.ID) error) error {
	return b.with(func(c *client.Client) (err error) {
		ids := make([]cove.ID, 0, n)
		defer func() { err = errors.Join(err, closeAll(ctx, c, ids)) }()
		for range n {
			s, err := c.Sessions().Open(ctx, cove.OpenRequest{Spec: spec})
			if err != nil {
				return err
			}
			ids = append(ids, s.ID)
		}
		return do(c, ids)
	})
}

func closeAll(ctx context.Context, p cove.Platform, ids []cove.ID) error {
	var all error
	for _, id := range ids {
		_, err := p.Sessions().Close(context.WithoutCancel(ctx), id, false)
		all = errors.Join(all, err)
	}
	return all
}

// execTrue runs `true` in a session. It must succeed.
func execTrue(ctx context.Context, p cove.Platform, id cove.ID) error {
	x, err := p.Processes(id).Exec(ctx, cove.ExecRequest{Argv: []string{"true"}})
	if err == nil && (x.Outcome != cove.Exited || x.ExitCode != 0) {
		err = fmt.Errorf("true %s with exit code %d", x.Outcome, x.ExitCode)
	}
	return err
}
