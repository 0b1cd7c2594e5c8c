//go:build linux

package microsandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// connect opens a door to the agent, by the input and output of msb exec.
func (c *cli) connect(ctx context.Context, name, dir string) (io.ReadWriteCloser, error) {
	path, err := c.path()
	if err != nil {
		return nil, err
	}
	// One that runs already stays.
	if f, err := c.run(ctx, name, agentIn(dir), mailboxName, "start", fmt.Sprint(user)); err != nil || f.code != 0 {
		return nil, errors.Join(err, c.startFault(f))
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	args := append([]string{"exec", "-q", "--stream", "-u", "0", name, "--"}, guest.DoorArgs(agentIn(dir))...)
	cmd := command(life, path, args...)
	l := &cliLink{end: end, done: make(chan struct{})}
	cmd.Stderr = &l.said
	l.in, err = cmd.StdinPipe()
	if err == nil {
		l.out, err = cmd.StdoutPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		end()
		return nil, cove.Wrap(cove.Unavailable, err, "msb cannot be run").Reason(cove.ReasonConnection).Remedy("check MSB_PATH")
	}
	l.wait = cmd.Wait
	return l, nil
}

// startFault says that the agent did not start; nil if it did.
func (c *cli) startFault(f finished) error {
	if f.code == 0 {
		return nil
	}
	return c.failure("exec", f)
}

// cliLink is the stream to an agent.
type cliLink struct {
	in   io.WriteCloser
	out  io.ReadCloser
	said capped
	end  context.CancelFunc
	wait func() error
	once sync.Once
	done chan struct{}
}

// Read implements [io.Reader].
func (l *cliLink) Read(b []byte) (int, error) { return l.out.Read(b) }

// Write implements [io.Writer].
func (l *cliLink) Write(b []byte) (int, error) { return l.in.Write(b) }

// Close lets msb end by itself for a moment, as it does when its input ends.
func (l *cliLink) Close() error {
	l.once.Do(func() {
		defer close(l.done)
		_ = l.in.Close()
		timer := time.AfterFunc(byeTime, l.end)
		defer timer.Stop()
		defer l.end()
		_, _ = io.Copy(io.Discard, l.out) // the end comes when the agent has ended
		_ = l.wait()
	})
	<-l.done
	return nil
}
