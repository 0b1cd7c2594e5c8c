package local

import "github.com/cove-sandbox/cove"

// Config says where the provider keeps its things.
type Config struct {
	// Dir is a directory for this provider alone. Providers with one directory
	// share their sandboxes' control groups: only one may be open at a time.
	Dir string
	// Agent is the path of an executable that is the agent, and the spawner, by
	// its argv[0]; "" takes what this build has.
	Agent string
	// Once says that few sandboxes will be made: the provider builds them itself
	// where it can, instead of starting a spawner.
	// A directory is always used in the same way: what is left of the one is not
	// looked for by the other.
	Once bool
	// Keeper lets sandboxes outlive this process: another one holds what keeps them
	// alive. It is started from this executable, which must call [Main]. It has no
	// effect with Once.
	Keeper bool
	// Users is the directory that says which users of the host are taken; "" is one
	// for the whole machine. Only root needs it.
	Users string
	// Around is the name of the control group around those of all providers, and Together
	// the memory that all sandboxes in it have together; 0 is no bound.
	// With Once they have no effect.
	Around   string
	Together cove.Bytes
	// Egress says what the ways out of sandboxes have in common.
	Egress Egress
	// Reserve is how much of the disk of Dir snapshots and workspaces on disk leave free.
	Reserve cove.Bytes
	// Templates are what sandboxes can be made from beside the base; nil is none.
	Templates Templates

	// weak leaves out a defence, to see that attacks notice.
	weak weakness
}

// weakness is a set of defences that are left out.
type weakness struct{ filter, processes, network, recursion, layers, settings, volumes, kernel, locks bool }

// Base is the template that this provider always has: the host's own programs.
const Base = "base"

// Names and numbers of a sandbox.
const (
	name = "local"
	host = "sandbox"
	user = 1000
)

// What a sandbox gets when nobody says anything else.
const (
	workspaceFiles = 100_000
	tempFiles      = 65_536
	sharedSize     = 64 * cove.MiB
	sharedFiles    = 4096
	mostFiles      = 16_384 // of an agent; programs may have half of them
	fewFiles       = 1024
)
