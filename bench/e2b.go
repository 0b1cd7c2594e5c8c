package main

import (
	"bufio"
	"context"
	_ "embed" // the program that uses E2B's client
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

func (o e2bOptions) measure(ctx context.Context, guest *e2bGuest, c *client.Client) ([]row, error) {
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

func lostRow(name string, a e2bAnswer) row {
	return row{name: name, measured: strings.TrimSpace(fmt.Sprintf("%d lost %.80s", a.Lost, a.Why)), baseline: "none", value: float64(a.Lost), must: 0}
}

// e2bGuest is the program that uses E2B's client.
type e2bGuest struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	said string // the file with its complaints
}

// e2bAnswer is what it says.
type e2bAnswer struct {
	ID    cove.ID        `json:"id"`
	Took  measure.Series `json:"took"`
	Lost  int            `json:"lost"`
	Why   string         `json:"why"`
	Error string         `json:"error"`
}

// begin starts the program.
func (o e2bOptions) begin(ctx context.Context, dir string, h *home) (*e2bGuest, error) {
	address, key, err := h.door()
	if err != nil {
		return nil, err
	}
	script := filepath.Join(dir, "e2b.js")
	if err := os.WriteFile(script, e2bProgram, 0o600); err != nil {
		return nil, err
	}
	said, err := os.Create(filepath.Join(dir, "e2b.log")) //nolint:gosec // a file of our own
	if err != nil {
		return nil, err
	}
	defer func() { _ = said.Close() }()             // the program has it
	cmd := exec.CommandContext(ctx, o.node, script) //nolint:gosec // the operator names the executable
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "NODE_PATH=" + o.modules,
		"E2B_API_KEY=" + key, "E2B_API_URL=" + address, "E2B_SANDBOX_URL=" + address,
	}
	cmd.Stderr = said
	g := &e2bGuest{cmd: cmd, said: said.Name()}
	if g.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	g.out = bufio.NewScanner(out)
	g.out.Buffer(nil, 1<<20)
	return g, cmd.Start()
}

// ask has it do something so often.
func (g *e2bGuest) ask(call string, times int) (a e2bAnswer, err error) {
	if _, err := fmt.Fprintf(g.in, "{\"call\":%q,\"times\":%d}\n", call, times); err != nil {
		return a, fmt.Errorf("%s: %w: %.500s", call, err, g.complaints())
	}
	if !g.out.Scan() {
		return a, fmt.Errorf("%s: E2B's client has ended: %.500s", call, g.complaints())
	}
	if err := json.Unmarshal(g.out.Bytes(), &a); err != nil {
		return a, fmt.Errorf("%s: %w", call, err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("%s: %.500s", call, a.Error)
	}
	return a, nil
}

func (g *e2bGuest) complaints() []byte {
	text, _ := os.ReadFile(g.said) // an error that is told already says more
	return text
}

// end has it end.
func (g *e2bGuest) end() error { return errors.Join(g.in.Close(), g.cmd.Wait()) }
