package escape

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// round is one attack by one way in.
type round struct {
	*arena

	box cove.Sandbox
	via Via

	needs  Attack         // the one that is made
	solos  []cove.Sandbox // those of single programs
	inputs []io.Closer
}

// Bounds on what a program of an attack may take.
const (
	wallTime  = 30 * time.Second
	maxOutput = 256 * cove.KiB
)

// ran is how a program ended and what it wrote.
type ran struct {
	cove.Result

	text string
}

// output holds what a program writes, up to a bound: the provider's own limit
// on output is among what is attacked.
type output struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	total int64
	wrote chan struct{} // closed at the first byte
}

func newOutput() *output { return &output{wrote: make(chan struct{})} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.total == 0 && len(b) > 0 {
		close(o.wrote)
	}
	o.total += int64(len(b))
	if room := int(2*maxOutput) - o.buf.Len(); room > 0 {
		o.buf.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// start starts a program by the way of the round.
func (r *round) start(ctx context.Context, out *output, limits cove.Limits, argv ...string) (cove.Process, error) {
	cmd := cove.Command{Argv: argv, Stdout: out, Stderr: out, Limits: limits}
	if r.via == Terminal {
		cmd.TTY = &cove.WindowSize{Cols: 80, Rows: 24}
	}
	if r.via == Solo {
		return r.startSolo(ctx, cmd)
	}
	return r.box.Start(ctx, cmd)
}

// do runs a program to its end, and ends what it left.
func (r *round) do(ctx context.Context, limits cove.Limits, argv ...string) (ran, error) {
	if r.via == Kernel {
		return r.interpret(ctx, limits, bySubprocess, argv...)
	}
	out := newOutput()
	p, err := r.start(ctx, out, limits, argv...)
	if err != nil {
		return ran{}, fmt.Errorf("start: %w", err)
	}
	result, err := p.Wait(ctx)
	if killed := p.Kill(context.WithoutCancel(ctx)); err == nil {
		err = killed
	}
	if err != nil {
		return ran{}, fmt.Errorf("wait: %w", err)
	}
	return ran{result, out.String()}, nil
}

var usualLimits = cove.Limits{Wall: wallTime, Output: maxOutput}

func (r *round) shell(ctx context.Context, script string, args ...string) (ran, error) {
	return r.do(ctx, usualLimits, append([]string{"sh", "-c", script, "sh"}, args...)...)
}

// alive says whether the sandbox still does what it is for.
func (r *round) alive(ctx context.Context) verdict {
	got, err := r.do(ctx, usualLimits, "echo", "alive")
	if err != nil {
		return breach("the sandbox does not answer any more: " + cove.MessageOf(err))
	}
	if strings.TrimSpace(got.text) != "alive" {
		return breach(fmt.Sprintf("the sandbox is broken: echo is %s with code %d and says %q", got.Outcome, got.ExitCode, clip(got.text)))
	}
	return heldBy("")
}

// others says whether another sandbox does what it is for: what one does to itself
// must not reach it.
func (r *round) others(ctx context.Context) verdict {
	box, err := r.neighbour(ctx)
	if err != nil {
		return breach("there is no sandbox beside it: " + cove.MessageOf(err))
	}
	return (&round{arena: r.arena, box: box, via: Exec}).alive(ctx)
}

// attack runs the attacker and returns its verdict and the facts it told.
func (r *round) attack(ctx context.Context, name string) (verdict, []string) {
	mission, err := json.Marshal(r.mission())
	if err != nil {
		return failed(err), nil
	}
	argv := []string{cove.WorkspacePath + "/" + Name, name, string(mission)}
	if r.via == Kernel {
		return r.attackTwice(ctx, argv...)
	}
	got, err := r.do(ctx, usualLimits, argv...)
	if err != nil {
		return failed(err), nil
	}
	return got.verdict()
}

// Words that begin the lines of the attacker.
const (
	wordHeld   = "HELD "
	wordBreach = "BREACH "
	wordFact   = "FACT "
)

// verdict judges how the attacker ended and what it said. Only a program that
// was killed for a system call may say nothing: that the host has seen itself.
func (g ran) verdict() (verdict, []string) {
	v, facts := g.said()
	switch {
	case !v.held && v != silent:
		return v, facts
	case g.Outcome == cove.Signaled && g.Signal == "SYS":
		return heldBy("SIGSYS: the seccomp filter killed the program"), facts
	case v == silent || g.Outcome != cove.Exited || g.ExitCode != 0:
		return untold(fmt.Sprintf("the attacker was %s with code %d and said %q", g.Outcome, g.ExitCode, clip(g.text))), facts
	}
	return v, facts
}

// silent is the verdict of an attacker that said none.
var silent = untold("the attacker said nothing")

// said reads the lines of the attacker.
func (g ran) said() (v verdict, facts []string) {
	v = silent
	for line := range strings.Lines(g.text) {
		line = strings.TrimRight(line, "\r\n")
		if fact, ok := strings.CutPrefix(line, wordFact); ok {
			facts = append(facts, fact)
		}
		if detail, ok := strings.CutPrefix(line, wordBreach); ok {
			return breach(clip(detail)), facts
		}
		if by, ok := strings.CutPrefix(line, wordHeld); ok {
			v = heldBy(clip(by))
		}
	}
	return v, facts
}
