//go:build linux

package warden

import (
	"os"
	"strings"
)

// Word is the first argument of cove-gvisor for being a warden. The global flags
// of runsc follow. The socket is descriptor [SocketFD].
const Word = "warden"

// SocketFD is the descriptor on which a warden is spoken to.
const SocketFD = 3

// Program is what enters a sandbox from outside, as its root.
type Program struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"`
	// Admin gives it CAP_SYS_ADMIN within the sandbox. Otherwise it has no
	// capability.
	Admin bool `json:"admin,omitempty"`
}

// Streams are the standard streams of a program.
type Streams struct{ In, Out, Err *os.File }

// verb is what is asked for.
type verb string

const (
	enter      verb = "enter"
	pause      verb = "pause"
	resume     verb = "resume"
	checkpoint verb = "checkpoint"
	remove     verb = "remove"
)

// request is a message to the warden.
type request struct {
	ID      uint64   `json:"id"`
	Verb    verb     `json:"verb"`
	Sandbox string   `json:"sandbox"`
	Image   string   `json:"image,omitempty"`
	Program *Program `json:"program,omitempty"`
}

// answer is a message from it. Without a fault it was done.
type answer struct {
	ID    uint64 `json:"id"`
	Fault string `json:"fault,omitempty"`
	Gone  bool   `json:"gone,omitempty"` // there is no such sandbox
}

// Brief keeps the beginning and the end of what gVisor says in its first line, which can
// be longer than anybody reads: what was tried stands at the one, and why it failed at
// the other. What follows is where in gVisor it was.
func Brief(fault string) string {
	fault, _, _ = strings.Cut(fault, "\n")
	if len(fault) <= maxFault {
		return fault
	}
	const gap = " … "
	half := (maxFault - len(gap)) / 2
	return strings.ToValidUTF8(fault[:half], "") + gap + strings.ToValidUTF8(fault[len(fault)-half:], "")
}

// Bounds of messages.
const (
	maxMessage = 64 << 10
	maxFault   = 4 << 10
	maxFiles   = 3
)
