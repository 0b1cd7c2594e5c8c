package main

import (
	"context"
	_ "embed" // the program that uses E2B's client
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/measure"
)

// e2bOptions says how E2B's client is measured against a server.
type e2bOptions struct {
	restartOptions // how to start the server; its sessions and rounds are not used

	node    string // the executable
	modules string // where npm put the package e2b; "" where it is not
	rounds  int    // of which each client has a turn
	turn    int    // commands in one
	row     int    // commands without a pause
	files   int    // that are made while somebody watches
}

//go:embed e2b.js
var e2bProgram []byte

func e2bPart(ctx context.Context, o options) (string, []row, error) {
	if o.e2b.modules == "" {
		return absent(o, partE2B, "no folder with E2B's package was named; scripts/bench.sh looks for one")
	}
	rows, err := e2bRows(ctx, o.e2b)
	return render("what E2B's client finds", rows), rows, err
}

// e2bRows measures E2B's client for JavaScript, as it is published, against a
// server on one plain port.
func e2bRows(ctx context.Context, o e2bOptions) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "cove-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	h := newHome(o.restartOptions, filepath.Join(dir, "home"))
	defer func() { err = errors.Join(err, h.end(ctx)) }()
	if err := h.start(ctx); err != nil {
		return nil, err
	}
	b := &served{serverOptions: serverOptions{restartOptions: o.restartOptions}, home: h}
	err = b.with(func(c *client.Client) (err error) {
		guest, err := o.begin(ctx, dir, h)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, guest.end()) }()
		rows, err = o.measure(ctx, guest, c)
		return err
	})
	return rows, told(err)
}

func (o e2bOptions) measure(ctx context.Context, guest *guestProgram, c *client.Client) ([]row, error) {
	opened, err := guest.ask("open", 0)
	if err != nil {
		return nil, err
	}
	var theirs, ours measure.Series
	for range o.rounds {
		ran, err := guest.ask("run", o.turn)
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, ran.Took...)
		for range o.turn {
			began := time.Now()
			x, err := c.Processes(opened.ID).Exec(ctx, cove.ExecRequest{Argv: []string{"/bin/bash", "-l", "-c", "true"}})
			if err == nil {
				err = x.Err()
			}
			if err != nil {
				return nil, err
			}
			ours = append(ours, time.Since(began))
		}
	}
	rows := rowsOver(3, ours, []measure.Series{theirs}, "`commands.run('true')` by E2B's client ÷ the same program by ours, over loopback")
	inRow, err := guest.ask("row", o.row)
	if err != nil {
		return nil, err
	}
	watched, err := guest.ask("watch", o.files)
	if err != nil {
		return nil, err
	}
	rows = append(rows,
		lostRow(fmt.Sprintf("%d short commands in a row by E2B's client: cut", o.row), inRow),
		lostRow(fmt.Sprintf("`watchDir` while %d files are made: not told of", o.files), watched))
	_, err = guest.ask("close", 0)
	return rows, err
}

func lostRow(name string, a guestAnswer) row {
	return row{name: name, measured: strings.TrimSpace(fmt.Sprintf("%d lost %.80s", a.Lost, a.Why)), baseline: "none", value: float64(a.Lost), must: 0}
}

// begin starts the program that uses E2B's client.
func (o e2bOptions) begin(ctx context.Context, dir string, h *home) (*guestProgram, error) {
	address, key, err := h.door()
	if err != nil {
		return nil, err
	}
	return beginGuest(ctx, dir, "e2b.js", e2bProgram, o.node, "NODE_PATH="+o.modules,
		"E2B_API_KEY="+key, "E2B_API_URL="+address, "E2B_SANDBOX_URL="+address)
}
