package main

import (
	"context"
	_ "embed" // the program that uses the SDK for Python
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/measure"
)

// sdkOptions says how the SDK for Python is measured beside the Go client.
type sdkOptions struct {
	restartOptions // how to start the server; its sessions and rounds are not used

	python  string // the executable
	source  string // the folder that has the package
	rounds  int    // of which each client has a turn
	turn    int    // commands in one
	imports int    // fresh interpreters for each of the two modules
}

//go:embed sdk.py
var sdkProgram []byte

func sdkPart(ctx context.Context, o options) (string, []row, error) {
	if _, err := exec.LookPath(o.sdk.python); err != nil {
		return absent(o, partSDK, "there is no "+o.sdk.python)
	}
	rows, err := sdkRows(ctx, o.sdk)
	return render("what the SDK for Python costs", rows), rows, err
}

// sdkRows measures both on one server, in one session.
func sdkRows(ctx context.Context, o sdkOptions) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "cove-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	env, err := o.environment(dir)
	if err != nil {
		return nil, err
	}
	imported, err := o.importRow(ctx, dir, env)
	if err != nil {
		return nil, err
	}
	h := newHome(o.restartOptions, filepath.Join(dir, "home"))
	defer func() { err = errors.Join(err, h.end(ctx)) }()
	if err := h.start(ctx); err != nil {
		return nil, err
	}
	b := &served{serverOptions: serverOptions{restartOptions: o.restartOptions}, home: h}
	err = b.inSessions(ctx, 1, cove.Spec{}, func(c *client.Client, ids []cove.ID) (err error) {
		address, key, err := h.door()
		if err != nil {
			return err
		}
		guest, err := beginGuest(ctx, dir, "sdk.py", sdkProgram, o.python,
			append(env, "SESSION="+string(ids[0]), "SOCKET=unix://"+filepath.Join(h.dir, "cove.sock"), "ADDRESS="+address, "KEY="+key)...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, guest.end()) }()
		rows, err = o.execRows(ctx, guest, ids[0], map[string]*client.Client{"socket": h.client, "tcp": c, "asyncio": c})
		return err
	})
	return append(rows, imported), told(err)
}

// environment is one in which the package is found, and what is compiled of it is
// kept out of its folder.
func (o sdkOptions) environment(dir string) ([]string, error) {
	source, err := filepath.Abs(o.source)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(source, "cove")); err != nil {
		return nil, fmt.Errorf("-sdk %s: the package is not there: %w", o.source, err)
	}
	return []string{"PYTHONPATH=" + source, "PYTHONPYCACHEPREFIX=" + filepath.Join(dir, "compiled")}, nil
}

// execRows has the clients run `true` in turns, in the same session.
func (o sdkOptions) execRows(ctx context.Context, guest *guestProgram, id cove.ID, clients map[string]*client.Client) (rows []row, err error) {
	for _, way := range []struct{ call, name string }{
		{"socket", "exec `true` in a live session by the Python client ÷ by the Go client, over the unix socket"},
		{"tcp", "the same over TCP, with a key"},
		{"asyncio", "the same in asyncio, over TCP, with a key"},
	} {
		var theirs, ours measure.Series
		for range o.rounds {
			ran, err := guest.ask(way.call, o.turn)
			if err != nil {
				return nil, err
			}
			theirs = append(theirs, ran.Took...)
			for range o.turn {
				began := time.Now()
				if err := execTrue(ctx, clients[way.call], id); err != nil {
					return nil, err
				}
				ours = append(ours, time.Since(began))
			}
		}
		rows = append(rows, rowsOver(3, ours, []measure.Series{theirs}, way.name)...)
	}
	return rows, nil
}

// warmImports are interpreters that are started before any is measured: they leave
// compiled files behind.
const warmImports = 3

// importRow compares how long a fresh interpreter takes to import cove and http.client.
func (o sdkOptions) importRow(ctx context.Context, dir string, env []string) (row, error) {
	var ours, base, allowed measure.Series
	for i := range warmImports + o.imports {
		for _, one := range []struct {
			module string
			took   *measure.Series
		}{{"http.client", &base}, {"cove", &ours}} {
			took, err := o.importing(ctx, dir, env, one.module)
			if err != nil {
				return row{}, err
			}
			if i >= warmImports {
				*one.took = append(*one.took, took)
			}
		}
	}
	for _, one := range base {
		allowed = append(allowed, one*3/2)
	}
	return row{
		name: "`import cove` in a fresh interpreter − 1.5 × `import http.client`", measured: taken(ours), baseline: taken(base),
		value: micros(minus(ours, allowed)) / 1000, unit: " ms", must: 30,
	}, nil
}

// importing returns how long one import took, by the interpreter's own clock: its
// start is not counted.
func (o sdkOptions) importing(ctx context.Context, dir string, env []string, module string) (time.Duration, error) {
	code := "import time; began = time.perf_counter_ns(); import " + module + "; print(time.perf_counter_ns() - began)"
	cmd := exec.CommandContext(ctx, o.python, "-c", code) //nolint:gosec // the operator names the executable
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return 0, fmt.Errorf("import %s: %w: %.500s", module, err, failed.Stderr)
	}
	if err != nil {
		return 0, err
	}
	took, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("import %s: %w", module, err)
	}
	return time.Duration(took), nil
}
