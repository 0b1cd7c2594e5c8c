package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
)

// guestProgram uses a client in another language: it does what it is asked, a line
// of JSON at a time.
type guestProgram struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	said string // the file with its complaints
}

// guestAnswer is what it says.
type guestAnswer struct {
	ID    cove.ID        `json:"id"`
	Took  measure.Series `json:"took"`
	Lost  int            `json:"lost"`
	Why   string         `json:"why"`
	Error string         `json:"error"`
}

// beginGuest has an interpreter run a program, which is put into a file in dir.
func beginGuest(ctx context.Context, dir, name string, text []byte, interpreter string, env ...string) (*guestProgram, error) {
	script := filepath.Join(dir, name)
	if err := os.WriteFile(script, text, 0o600); err != nil {
		return nil, err
	}
	said, err := os.Create(script + ".log") //nolint:gosec // a file of our own
	if err != nil {
		return nil, err
	}
	defer func() { _ = said.Close() }()                  // the program has it
	cmd := exec.CommandContext(ctx, interpreter, script) //nolint:gosec // the operator names the executable
	cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, env...)
	cmd.Stderr = said
	g := &guestProgram{cmd: cmd, said: said.Name()}
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
func (g *guestProgram) ask(call string, times int) (a guestAnswer, err error) {
	if _, err := fmt.Fprintf(g.in, "{\"call\":%q,\"times\":%d}\n", call, times); err != nil {
		return a, fmt.Errorf("%s: %w: %.500s", call, err, g.complaints())
	}
	if !g.out.Scan() {
		return a, fmt.Errorf("%s: the program has ended: %.500s", call, g.complaints())
	}
	if err := json.Unmarshal(g.out.Bytes(), &a); err != nil {
		return a, fmt.Errorf("%s: %w", call, err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("%s: %.500s", call, a.Error)
	}
	return a, nil
}

func (g *guestProgram) complaints() []byte {
	text, _ := os.ReadFile(g.said) // an error that is told already says more
	return text
}

// end has it end.
func (g *guestProgram) end() error { return errors.Join(g.in.Close(), g.cmd.Wait()) }
