package gvisor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/cove-sandbox/cove"
)

var _ cove.SparePreloader = (*spare)(nil)

// StartPreloaded implements [cove.SparePreloader]. The interpreter is the one that
// was in the image that the spare was restored from. A spare that has none says so,
// and those that are prepared later will have one.
func (s *spare) StartPreloaded(ctx context.Context, cmd cove.Command, r cove.Resources, modules []string) (cove.Process, error) {
	if !isPython(cmd.Argv) || cmd.Stdin == nil || cmd.TTY != nil || cmd.Dir != "/" {
		return nil, notAhead()
	}
	of := interpreter{cmd.Argv[0], cmd.Env, modules}
	s.p.images.want(s.mold, of)
	s.mu.Lock()
	has := s.ahead != nil && s.ahead.equal(of)
	if has {
		s.ahead = nil
	}
	s.mu.Unlock()
	if !has {
		return nil, notAhead()
	}
	return s.start(ctx, r, func(ctx context.Context) (cove.Process, error) {
		return s.wake(ctx, cmd, r)
	})
}

func notAhead() error {
	return cove.Errorf(cove.Unsupported, "nothing is imported ahead for this program")
}

// isPython reports whether a command runs a piece of code with nothing of its user's
// around it.
func isPython(argv []string) bool {
	return len(argv) == 4 && strings.HasPrefix(argv[0], "python3") && argv[1] == "-I" && argv[2] == "-c"
}

// wake makes the interpreter that waits run code.
func (s *spare) wake(ctx context.Context, cmd cove.Command, r cove.Resources) (cove.Process, error) {
	code := cmd.Argv[3]
	cmd.Stdin = io.MultiReader(strings.NewReader(fmt.Sprintf("%d %d\n%s", r.PIDs, len(code), code)), cmd.Stdin)
	if cmd.Stdout != nil {
		cmd.Stdout = &after{w: cmd.Stdout, left: len(aheadReady)}
	}
	keep := aheadName
	if cmd.Record {
		// It is counted from here on, without what the interpreter said when it was ready.
		if err := s.conn.Rename(ctx, aheadName, cmd.Keep); err != nil {
			return nil, err
		}
		keep = cmd.Keep
	}
	p, err := s.conn.Inherit(ctx, keep, cmd)
	if err != nil {
		return nil, err
	}
	go s.bury(context.WithoutCancel(ctx), p, keep)
	return p, nil
}

// bury forgets the interpreter when it has ended, as the agent does with all that are
// not kept.
func (s *spare) bury(ctx context.Context, p cove.Process, keep string) {
	if _, err := p.Wait(ctx); err == nil { // at the latest with the connection
		_ = s.conn.Forget(ctx, keep)
	}
}

// after is a writer without the beginning of what is written.
type after struct {
	w    io.Writer
	left int
}

// Write implements [io.Writer].
func (a *after) Write(b []byte) (int, error) {
	skip := min(a.left, len(b))
	a.left -= skip
	if skip == len(b) {
		return skip, nil
	}
	n, err := io.Copy(a.w, bytes.NewReader(b[skip:]))
	return skip + int(n), err
}

// lonely ends an interpreter of the image that nobody took.
func (s *spare) lonely(ctx context.Context) error {
	s.mu.Lock()
	has := s.ahead != nil
	s.ahead = nil
	s.mu.Unlock()
	if !has {
		return nil
	}
	return s.conn.Forget(ctx, aheadName)
}
