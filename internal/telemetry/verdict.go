package telemetry

import (
	"slices"

	"github.com/cove-sandbox/cove"
)

// other stands for every word that is not in a label's set.
const other = "other"

// Words for how a command went that are not outcomes of cove.
const (
	commandOK     = "ok"     // it exited with 0
	commandFailed = "failed" // it exited with another code
	commandError  = "error"  // the platform could not run it
)

// runs are the verbs that run something and wait for it. What is started in
// the background is told of when it ends.
var runs = []cove.Verb{cove.ProcessExec, cove.ContextRun, cove.TrialRun}

// commandOf is the word for how a command went.
func commandOf(o cove.Outcome, exit int, code cove.Code) string {
	switch {
	case o == "":
		return commandError
	case o != cove.Exited:
		return string(o)
	case code != "":
		return commandError
	case exit != 0:
		return commandFailed
	}
	return commandOK
}

// ran reports whether an action is a command, with the word for how it went. A
// start in the background is one only if it came to nothing.
func ran(e cove.Ending) (how string, ok bool) {
	switch {
	case slices.Contains(runs, e.Verb):
	case e.Verb != cove.ProcessStart || e.Code == "":
		return "", false
	}
	return commandOf(e.Outcome, e.ExitCode, e.Code), true
}

// limits are the words of the label limit, by what says that a limit was
// reached: the outcome of a program, or the reason of an error.
var limits = map[string]string{
	string(cove.TimedOut):    "time",
	string(cove.OutOfMemory): "memory",
	string(cove.OutputLimit): "output",

	cove.ReasonFileTooLarge:  "file_size",
	cove.ReasonWorkspaceFull: "workspace",
	cove.ReasonCapacity:      "capacity",
	cove.ReasonQueueFull:     "queue",
	cove.ReasonTenantQuota:   "tenant_quota",
	cove.ReasonTenantDisk:    "tenant_disk",
	cove.ReasonDiskReserve:   "disk_reserve",
	cove.ReasonKeyQuota:      "key_quota",
	cove.ReasonRateLimited:   "rate",
	"body_too_large":         "body_size",
}

// limitOf names the limit that was reached, or is "".
func limitOf(o cove.Outcome, reason string) string {
	if l := limits[string(o)]; l != "" {
		return l
	}
	return limits[reason]
}

// invalid reports whether an action was refused for what was asked: the form of
// the request, or a command that policy does not let run.
func invalid(e cove.Ending) bool {
	return e.Outcome == cove.Blocked || e.Code == cove.Invalid && limitOf("", e.Reason) == ""
}

// noteEvicted is the journal's word for a session that was stopped for room.
const noteEvicted = "session.evicted"

// noteInstead is the journal's word for a session that another provider serves
// than the one that was to.
const noteInstead = "session.instead"

// notes are the journal's words for what the engine does by itself.
var notes = []string{
	noteEvicted, noteInstead, "session.expired", "session.lost", "session.recovered", "session.aborted", "session.paused", "session.stopped", "session.resumed", "session.overrun",
	"process.lost", "sandbox.orphan_removed", "snapshot.aborted", "volume.aborted", "trial.lost", "artifact.failed",
}

// causes are why sessions end.
var causes = []string{cove.ReasonSessionExpired, cove.ReasonSessionClosed, cove.ReasonNodeLost, cove.ReasonVolumeOverrun, cove.ReasonKernelMemory}

// errorCodes are those of errors.
var errorCodes = func() []string {
	var list []string
	for _, c := range cove.Codes() {
		list = append(list, string(c))
	}
	return list
}()

// oneOf is a word of a set, or other.
func oneOf(set []string, word string) string {
	if slices.Contains(set, word) {
		return word
	}
	return other
}
