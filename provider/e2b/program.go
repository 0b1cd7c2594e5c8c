//go:build linux

package e2b

import (
	"context"
	"errors"
	"io"

	"github.com/cove-sandbox/cove"
)

// start runs a program and returns its stream when it has begun, with its number.
func (m *machine) start(ctx context.Context, user string, program processConfig, tag string, stdin bool) (*stream, int, error) {
	in := struct {
		Process processConfig `json:"process"`
		Tag     string        `json:"tag,omitempty"`
		Stdin   bool          `json:"stdin"`
	}{program, tag, stdin}
	s, err := m.open(ctx, procStart, user, in)
	if err != nil {
		return nil, 0, err
	}
	stop := context.AfterFunc(ctx, s.close)
	e, err := s.next()
	if !stop() {
		return nil, 0, context.Cause(ctx)
	}
	if err != nil || e.Start == nil || e.Start.PID <= 0 {
		s.close()
		return nil, 0, cove.Wrap(cove.Unavailable, err, "%s cannot start a program", whomMachine).
			Remedy("check that the template in E2B_TEMPLATE has /bin/sh")
	}
	return s, e.Start.PID, nil
}

// maxText bounds what is kept of the output of a short program.
const maxText = 4 << 10

// run runs a short program to its end.
func (m *machine) run(ctx context.Context, user, script string, args ...string) (code int, out string, err error) {
	s, _, err := m.start(ctx, user, shell(script, args...), "", false)
	if err != nil {
		return 0, "", err
	}
	defer s.close()
	defer context.AfterFunc(ctx, s.close)()
	code = -1
	for {
		e, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return code, out, nil
		case ctx.Err() != nil:
			return 0, "", context.Cause(ctx)
		case err != nil:
			return 0, "", unreachable(ctx, whomMachine, err)
		case e.End != nil:
			code = e.End.ExitCode
		case e.Data != nil:
			out += string(e.Data.Stdout[:min(len(e.Data.Stdout), maxText-len(out))])
		}
	}
}

// shell is a script with its arguments.
func shell(script string, args ...string) processConfig {
	return processConfig{Cmd: "/bin/sh", Args: append([]string{"-c", script, "sh"}, args...), Cwd: "/"}
}
