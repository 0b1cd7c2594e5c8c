//go:build linux

package microsandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on msb.
const (
	toolTime = 20 * time.Second
	maxTool  = 8 << 20
)

// cli is the transport by the msb program.
type cli struct {
	program string
}

func newCLI(cfg Config) *cli { return &cli{program: cfg.Program} }

func (c *cli) kind() string { return transportCLI }

func (c *cli) fence() *cove.Isolation { return nil }

func (c *cli) networks() ([]cove.NetworkMode, cove.Enforcement) {
	return []cove.NetworkMode{cove.NetworkNone, cove.NetworkOpen}, cove.Hard
}

// path finds msb.
func (c *cli) path() (string, error) {
	program := c.program
	if program == "" {
		program = "msb"
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", cove.Wrap(cove.Unavailable, err, "there is no msb program (microsandbox 0.6 or later)").
			Reason(cove.ReasonConnection).Remedy("install microsandbox, or set MSB_PATH to msb")
	}
	return path, nil
}

// msb runs the program once, to its end.
func (c *cli) msb(ctx context.Context, bound time.Duration, args ...string) (finished, error) {
	path, err := c.path()
	if err != nil {
		return finished{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	cmd := command(bounded, path, args...)
	var stdout, stderr capped
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	f := finished{stdout: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && bounded.Err() == nil: // it ended, and what it started has its output
		return f, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return f, ctx.Err()
	case bounded.Err() != nil:
		return f, cove.Wrap(cove.Unavailable, err, "msb %s does not come to an end", args[0]).Reason(cove.ReasonConnection).Remedy("run msb doctor by hand")
	case errors.As(err, &exit):
		f.code = exit.ExitCode()
		return f, nil
	}
	return f, cove.Wrap(cove.Unavailable, err, "msb cannot be run").Reason(cove.ReasonConnection).Remedy("check MSB_PATH")
}

// capped keeps the beginning of what is written to it.
type capped struct{ bytes.Buffer }

func (c *capped) Write(b []byte) (int, error) {
	_, _ = c.Buffer.Write(b[:min(len(b), max(maxTool-c.Len(), 0))])
	return len(b), nil
}

// failure turns what msb said into an error.
func (c *cli) failure(verb string, f finished) error {
	told, hints := diagnosis(f.stderr)
	if told == "" {
		told = fmt.Sprintf("it ended with %d", f.code)
	}
	if len(hints) == 0 {
		hints = []string{"run msb doctor by hand"}
	}
	return cove.Wrap(cove.Unavailable, fmt.Errorf("msb %s: code %d: %.500q", verb, f.code, f.stderr), "msb %s: %s", verb, told).
		Remedy("%s", strings.Join(hints, "; "))
}

// diagnosis finds the line with the error, and those with what to do about it.
func diagnosis(stderr string) (told string, hints []string) {
	for line := range strings.Lines(stderr) {
		line = printable(line)
		if text, ok := strings.CutPrefix(line, "error: "); ok && told == "" {
			told = text
		} else if text, ok := strings.CutPrefix(line, "→ "); ok && told != "" && len(hints) < 4 {
			hints = append(hints, text)
		}
	}
	return told, hints
}

// printable makes a line of a tool fit to be shown.
func printable(line string) string {
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, "?"))
	line = strings.TrimSpace(line)
	return line[:min(len(line), 200)]
}

// probe asks msb's own doctor.
func (c *cli) probe(ctx context.Context) error {
	f, err := c.msb(ctx, doctorTime, "doctor")
	if err != nil {
		return err
	}
	if f.code != 0 {
		return c.failure("doctor", f)
	}
	return nil
}

func (c *cli) start(ctx context.Context, m machine) error {
	args := []string{"create", "-q", "-n", m.name, "-c", fmt.Sprint(m.cpus), "-m", fmt.Sprintf("%dM", max(m.memory/cove.MiB, 1))}
	if m.network == cove.NetworkNone {
		args = append(args, "--no-net")
	} else {
		args = append(args, "--net", "public")
	}
	f, err := c.msb(ctx, 24*time.Hour, append(args, m.image)...)
	if err != nil {
		return err
	}
	if f.code != 0 {
		e := c.failure("create", f)
		if ce, ok := errors.AsType[*cove.Error](e); ok {
			return ce.Reason(cove.ReasonSandboxCreation)
		}
		return e
	}
	return nil
}

// missing reports whether msb says that there is no such machine. Other things that
// are not found, such as a library, say nothing about it.
func missing(f finished) bool {
	told, _ := diagnosis(f.stderr)
	return f.code != 0 && strings.HasPrefix(told, "sandbox not found")
}

// stop removes the machine: also one that never started has left a record. With -q
// msb would not say why it did not.
func (c *cli) stop(ctx context.Context, name string) error {
	f, err := c.msb(ctx, stopTime, "rm", "-f", name)
	if err != nil || f.code == 0 || missing(f) {
		return err
	}
	return c.failure("rm", f)
}

func (c *cli) machines(ctx context.Context) (map[string]bool, error) {
	f, err := c.msb(ctx, toolTime, "ls", "--format", "json")
	if err != nil {
		return nil, err
	}
	if f.code != 0 {
		return nil, c.failure("ls", f)
	}
	var all []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	}
	if err := json.Unmarshal([]byte(f.stdout), &all); err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "msb ls does not print what it should").Remedy("use microsandbox 0.6 or 0.7")
	}
	found := map[string]bool{}
	for _, m := range all {
		found[m.Name] = strings.EqualFold(m.Status, "running")
	}
	return found, nil
}

func (c *cli) memory(ctx context.Context, name string) cove.Bytes {
	f, err := c.msb(ctx, toolTime, "metrics", name, "--format", "json")
	var m struct {
		Memory int64 `json:"memory_bytes"`
	}
	if err != nil || f.code != 0 || json.Unmarshal([]byte(f.stdout), &m) != nil {
		return 0
	}
	return cove.Bytes(max(m.Memory, 0))
}

// run: msb's own failures look like those of the program, but for the words.
func (c *cli) run(ctx context.Context, name string, argv ...string) (finished, error) {
	bound := runTime
	if deadline, ok := ctx.Deadline(); ok {
		bound = max(time.Until(deadline), time.Second)
	}
	f, err := c.msb(ctx, bound, append([]string{"exec", "-q", "-u", "0", "--no-tty", name, "--"}, argv...)...)
	if err != nil {
		return f, err
	}
	if missing(f) {
		return f, gone(name)
	}
	return f, nil
}

// install copies the file; cp keeps no modes that we could rely on.
func (c *cli) install(ctx context.Context, name, path string, content []byte) error {
	file, err := os.CreateTemp("", "cove-agent-*")
	if err != nil {
		return stateFault(err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return stateFault(err)
	}
	dir := path[:strings.LastIndexByte(path, '/')]
	steps := [][]string{
		{"exec", "-q", "-u", "0", "--no-tty", name, "--", "mkdir", "-p", "-m", "0755", dir},
		{"cp", "-q", file.Name(), name + ":" + path},
		{"exec", "-q", "-u", "0", "--no-tty", name, "--", "chmod", "0555", path},
	}
	for _, step := range steps {
		f, err := c.msb(ctx, runTime, step...)
		if err != nil {
			return err
		}
		if f.code != 0 {
			return c.failure(step[0], f)
		}
	}
	return nil
}

var _ io.Writer = (*capped)(nil)
