package escape

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// endingAttacks are programs that do not want to end.
func endingAttacks() []Attack {
	parentless := kernel("survivors_sibling", "outlive a kill as a process that nobody has as a child")
	parentless.run = siblings
	return []Attack{
		{Name: "survivors_kill", Try: "outlive a kill: background, nohup, setsid, double fork", Via: programs, run: outliveKill},
		{Name: "survivors_timeout", Try: "outlive a time limit in the same ways", Via: programs, run: outliveTimeout},
		{Name: "survivors_destroy", Try: "outlive the sandbox in the same ways", Via: programs, own: fresh, run: outliveSandbox},
		parentless,
		{Name: "busy_loop", Try: "compute past a time limit", Via: everyWay, run: overtime(`echo ready; while :; do :; done`)},
		{Name: "ignored_signals", Try: "ignore every signal past a time limit", Via: everyWay, run: overtime(`trap '' HUP INT QUIT TERM USR1 USR2 ALRM PIPE TSTP TTIN TTOU; echo ready; sleep "$0"; sleep "$0"`)},
		{Name: "stopped", Try: "stop with SIGSTOP, parent and child, past a time limit", Via: everyWay, run: overtime(`echo ready; (kill -STOP $$; sleep "$0") & sleep "$0"; kill -STOP $$; sleep "$0"`)},
		{Name: "output_flood", Try: "write more than the limit on output", Via: everyWay, run: flood},
	}
}

// survivors starts children in every way that leaves the parent behind.
const survivors = `sleep "$0" &
setsid sleep "$0" &
(setsid sh -c '(sleep "$0" &)' "$0" &)
nohup sleep "$0" >/dev/null 2>&1 &
setsid setsid sh -c 'trap "" HUP INT TERM; sleep "$0"; sleep "$0"' "$0" >/dev/null 2>&1 </dev/null &
`

// inside counts the processes with a mark that the sandbox shows, for hosts
// that cannot look into it.
const inside = `n=0
for f in /proc/[0-9]*/cmdline; do
	case $({ tr '\0' ' ' <"$f"; } 2>/dev/null) in *"$1$2"*) n=$((n+1));; esac
done
echo "$n left"`

// endTime is how long processes may take to disappear.
const endTime = 3 * time.Second

// gone says whether every process with a mark has ended. seen is how many the
// host saw before.
func (r *round) gone(ctx context.Context, mark string, seen int) verdict {
	if seen == 0 {
		got, err := r.shell(ctx, inside, mark[:4], mark[4:])
		if err != nil {
			return failed(err)
		}
		if strings.TrimSpace(got.text) != "0 left" {
			return breach("inside the sandbox: " + clip(got.text))
		}
		return heldBy("none is left inside")
	}
	if !until(ctx, endTime, func() bool { return len(processesWith(mark)) == 0 }) {
		return breach(fmt.Sprintf("the host still sees %d of %d processes", len(processesWith(mark)), seen))
	}
	return heldBy(fmt.Sprintf("all %d processes are gone from the host", seen))
}

// settled waits until all processes with a mark are there, and counts them.
func settled(ctx context.Context, mark string, want int) int {
	until(ctx, 2*time.Second, func() bool { return len(processesWith(mark)) >= want })
	return len(processesWith(mark))
}

func outliveKill(ctx context.Context, r *round) verdict {
	return r.beside(ctx, []string{"sh", "-c", survivors + "echo ready; wait"}, func(p cove.Process, mark string) verdict {
		seen := 0
		if len(processesWith(mark)) > 0 {
			seen = settled(ctx, mark, 6)
		}
		if err := p.Kill(ctx); err != nil {
			return failed(err)
		}
		return r.gone(ctx, mark, seen)
	})
}

// siblings uses a flag of clone that makes the child a child of the parent's
// parent.
func siblings(ctx context.Context, r *round) verdict {
	mark, out := newMark(), newOutput()
	p, err := r.start(ctx, out, usualLimits, cove.WorkspacePath+"/"+Name, "survivors_sibling", encode(mission{Token: mark}))
	if err != nil {
		return failed(err)
	}
	result, err := p.Wait(ctx)
	if err != nil {
		return failed(err)
	}
	seen := len(processesWith(mark))
	if err := p.Kill(ctx); err != nil {
		return failed(err)
	}
	v, facts := ran{result, out.String()}.verdict()
	if len(facts) == 0 {
		return v
	}
	return r.gone(ctx, mark, seen)
}

func outliveTimeout(ctx context.Context, r *round) verdict {
	return r.limited(ctx, survivors+"echo ready; wait", 6)
}

// overtime runs a script past its time.
func overtime(script string) func(ctx context.Context, r *round) verdict {
	return func(ctx context.Context, r *round) verdict { return r.limited(ctx, script, 1) }
}

// limited runs a script, whose $0 is a mark, until its time is over.
func (r *round) limited(ctx context.Context, script string, want int) verdict {
	const wall = 500 * time.Millisecond
	mark, out := newMark(), newOutput()
	p, err := r.start(ctx, out, cove.Limits{Wall: wall, Output: maxOutput}, "sh", "-c", script, mark)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = p.Kill(context.WithoutCancel(ctx)) }() // Destroy would end it too
	seen := 0
	until(ctx, wall/2, func() bool {
		seen = max(seen, len(processesWith(mark)))
		return seen >= want
	})
	result, err := p.Wait(ctx)
	switch {
	case err != nil:
		return breach("it runs on after its time: " + cove.MessageOf(err))
	case result.Outcome != cove.TimedOut:
		return untold(fmt.Sprintf("it was %s with code %d and said %q", result.Outcome, result.ExitCode, clip(out.String())))
	}
	return heldBy("killed when the time was over").also(r.gone(ctx, mark, seen))
}

func outliveSandbox(ctx context.Context, r *round) verdict {
	mark, out := newMark(), newOutput()
	p, err := r.start(ctx, out, cove.Limits{Output: maxOutput}, "sh", "-c", survivors+"echo ready", mark)
	if err != nil {
		return failed(err)
	}
	if _, err := p.Wait(ctx); err != nil {
		return failed(err)
	}
	seen := 0
	until(ctx, 300*time.Millisecond, func() bool {
		seen = max(seen, len(processesWith(mark)))
		return seen >= 4
	})
	if err := r.box.Destroy(ctx); err != nil {
		return failed(err)
	}
	if seen == 0 {
		// On a terminal they may have ended with it; on another machine only
		// that machine could tell.
		return heldBy("the host sees no process of the sandbox")
	}
	return r.gone(ctx, mark, seen)
}

// flood writes many times what it may, from three programs at once.
func flood(ctx context.Context, r *round) verdict {
	const allowed = cove.MiB
	out := newOutput()
	p, err := r.start(ctx, out, cove.Limits{Wall: wallTime, Output: allowed}, "sh", "-c", "yes | head -c 8388608 & yes | head -c 8388608 >&2 & yes | head -c 8388608; wait")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = p.Kill(context.WithoutCancel(ctx)) }() // it has ended
	result, err := p.Wait(ctx)
	if err != nil {
		return failed(err)
	}
	out.mu.Lock()
	total := out.total
	out.mu.Unlock()
	switch {
	case total > int64(allowed):
		return breach(fmt.Sprintf("%d bytes came out where %d were allowed", total, int64(allowed)))
	case result.Outcome != cove.OutputLimit:
		return untold(fmt.Sprintf("it was %s after %d bytes", result.Outcome, total))
	}
	return heldBy(fmt.Sprintf("killed at %d bytes of output", total))
}
