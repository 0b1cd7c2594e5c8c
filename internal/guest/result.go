//go:build linux

package guest

import (
	"strconv"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
)

// killStatus is the status of a program that SIGKILL ended.
const killStatus = uint32(syscall.SIGKILL)

// rareSignals end programs and cannot be sent by callers.
var rareSignals = map[syscall.Signal]cove.Signal{
	syscall.SIGILL: "ILL", syscall.SIGTRAP: "TRAP", syscall.SIGBUS: "BUS", syscall.SIGFPE: "FPE", syscall.SIGSTKFLT: "STKFLT",
	syscall.SIGXCPU: "XCPU", syscall.SIGXFSZ: "XFSZ", syscall.SIGVTALRM: "VTALRM", syscall.SIGPROF: "PROF", syscall.SIGIO: "IO",
	syscall.SIGPWR: "PWR", syscall.SIGSYS: "SYS",
}

func signalName(sig syscall.Signal) cove.Signal {
	if s, err := cove.ParseSignal(strconv.Itoa(int(sig))); err == nil {
		return s
	}
	if s, ok := rareSignals[sig]; ok {
		return s
	}
	return cove.Signal(strconv.Itoa(int(sig)))
}

// conclude turns the status into a result. It is called once.
func (p *process) conclude() cove.Result {
	if p.err != nil {
		return cove.Result{}
	}
	p.mu.Lock()
	x, why, wall := p.exit, p.why, p.wall
	p.mu.Unlock()
	r := cove.Result{
		Outcome: cove.Exited, Wall: max(wall, 1),
		CPU:        max(time.Duration(x.CPU)*time.Microsecond, 0),
		PeakMemory: cove.Bytes(max(x.MaxRSS, 0)) * cove.KiB,
	}
	status := syscall.WaitStatus(x.Status)
	switch {
	case why == cove.OutputLimit:
		// It may have died of the pipe that we closed, before we killed it.
		r.Outcome, r.ExitCode, r.Signal = why, 128+int(syscall.SIGKILL), "KILL"
	case !status.Signaled():
		r.ExitCode = status.ExitStatus()
	case why == cove.TimedOut:
		r.Outcome, r.ExitCode, r.Signal = why, -1, "KILL"
	default:
		r.Outcome, r.ExitCode, r.Signal = cove.Signaled, 128+int(status.Signal()), signalName(status.Signal())
		if status.Signal() == syscall.SIGKILL {
			r.Outcome = p.killed(why, x.Starved)
		}
	}
	return r
}

// killed says who sent SIGKILL.
func (p *process) killed(why cove.Outcome, starved bool) cove.Outcome {
	if why == cove.Killed || why == cove.OutOfMemory {
		return why
	}
	if starved || p.starved != nil && p.starved() {
		return cove.OutOfMemory
	}
	return cove.Signaled
}
