package gvisor

import (
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
	"github.com/cove-sandbox/cove/internal/template"
)

// Config says what sandboxes are made with.
type Config struct {
	// Dir is a directory for this provider alone. Only one provider may use it at a
	// time.
	Dir string
	// Runsc is the path of another gVisor than ours; "" takes what this build has.
	Runsc string
	// Platform is how gVisor catches system calls: systrap, kvm or ptrace; "" is systrap.
	Platform string
	// Agent is the path of an executable that is the agent and needs no library; ""
	// takes what this build has.
	Agent string
	// Around is the name of the control group around those of all providers, and Together
	// the memory that all sandboxes in it have together; 0 is no bound.
	Around   string
	Together cove.Bytes
	// Egress says what the ways out of sandboxes have in common.
	Egress egress.Settings
	// Templates are what sandboxes can be made from beside the base; nil is none.
	Templates template.Set

	// own is where tests have the runtime of this build.
	own string
	// patience is how long tests wait for a call of the runtime; 0 is the usual time.
	patience time.Duration
}

// Base is the template that this provider always has: the host's own programs.
const Base = "base"

// Names and numbers of a sandbox.
const (
	name = "gvisor"
	host = "sandbox"
	user = 1000

	agentUser = 999 // the agent's own, which no program can be
)

// What a sandbox gets when nobody says anything else.
const (
	workspaceFiles = 100_000
	tempFiles      = 65_536
	sharedSize     = 64 * cove.MiB
	sharedFiles    = 4096
	openFiles      = 8192
)
