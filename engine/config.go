package engine

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/hostpath"
)

// KeepEnded is how long a session that has ended is remembered unless it is set.
const KeepEnded = 24 * time.Hour

// Config is what an Engine is made of. Providers, Provider, Policy, Store,
// Journal, Archives and Output are required; every other zero value is a
// default that is said beside it.
type Config struct {
	Providers []cove.Provider
	Provider  string   // the one that serves when a request names none
	Fallback  []string // tried in order when Provider is not ready; never implicit
	Policy    cove.Policy
	Policies  []string // the command policies that a session may name
	Store     cove.Store
	// Keeps reports whether the directory may have lost the record of a session of this
	// node: what belongs to that is not removed though no session is known. nil: never.
	Keeps func(cove.ID) bool
	// Directory is the Store once more where other nodes have it, too; nil: nobody has.
	Directory cove.Directory
	Journal   cove.Journal
	Archives  cove.Archives
	// Same says that two requests are the same, for idempotency keys, by a digest that
	// all nodes make alike. nil: the journal's, which is this node's own.
	Same func(request []byte) string
	// Moving keeps the workspaces of stopped sessions that any node may start. nil:
	// none moves.
	Moving cove.Archives
	Output *os.Root // where long output is kept
	// Kernels are the interpreters by the name of a provider; those under "" serve
	// all others. Where there are none, running code in a context is Unsupported.
	Kernels map[string]cove.Kernels
	// Runners answer questions to data, by the name of a provider as Kernels do.
	// Where there is none, runs are Unsupported.
	Runners map[string]cove.Runner
	// OpenPlaces lets providers answer questions that cannot close the network of a
	// sandbox. Otherwise they are refused: what sees data reaches nobody.
	OpenPlaces bool
	// Templates keeps what sessions are made from. nil: there is what providers have.
	Templates cove.TemplateMaker
	// Datasets are what questions can be asked of. nil: there are none.
	Datasets cove.DatasetSource
	// Responder answers the messages of chats. nil: chats are Unsupported.
	Responder cove.Responder
	// Analyzers find the imports of Python code, by the name of a provider as
	// Kernels are. Where there is none, asking for it is Unsupported.
	Analyzers map[string]cove.Analyzer
	// Warm has interpreters started in the spares of the pool before anybody asks
	// for one, where the provider can. They are those that sessions of the same kind
	// used lately; at first Python, and Node for the template node.
	Warm bool
	// Preload names the modules that a warm interpreter imports ahead, by the full name of a template
	// and language. nil: none.
	Preload func(template, language string) []string
	// Folders keeps the files of volumes. nil: volumes by name are Unsupported.
	Folders cove.Folders
	// Artifacts keeps code and what came of it. nil: nothing is kept.
	Artifacts cove.Artifacts
	// Approve asks a person about an action that policy wants agreed to. nil: no
	// one can be asked, and such an action is denied.
	Approve func(ctx context.Context, a cove.Action, d cove.Decision) (bool, error)
	// Sign makes the URL of a grant, for whoever serves it to find the grant in
	// again. nil: nobody serves links, and making one is Unsupported.
	Sign   func(g cove.Grant) (url string, err error)
	Logger *slog.Logger // nil: silent
	// Observer is told what happens. nil: nobody looks, which costs nothing.
	Observer cove.Observer
	Node     string // this server's name, in records and the journal
	Version  string // of this server, for who lists nodes
	// Cluster is the servers that this one works with. nil: it is alone.
	Cluster cove.Nodes
	// Fleeting says that the sessions end with this process, and nobody asks for
	// them afterwards. Then no record of them is kept, and a journal line that must
	// be on the disk before an action may also get there while the action goes on,
	// if the Journal has Begin; the answer waits for it. That a session is closed need
	// not be on the disk.
	Fleeting bool
	// Fresh says that nothing of an earlier process is there. Where a Fleeting engine
	// is Solo, too, it has nothing to do in the background then but to watch expiry.
	Fresh bool
	// Solo says that each session runs one program, in the foreground and without a
	// terminal, and nothing else. Where the provider can, and the spec asks for
	// nothing that stays, its sandbox is made for that: [cove.Mold].
	Solo bool
	// Spare returns a spare that somebody prepared for a session before the engine
	// was there. It is asked before the pool. nil: there is none.
	Spare func(ctx context.Context, m cove.Mold) (cove.Spare, bool)

	Flavors  map[string]cove.Resources // nil: small, medium, large
	Sizes    map[string]cove.Resources // by provider: what its sessions have, whatever their flavor says
	Defaults cove.Spec                 // what requests mean where they and their key say nothing
	Volumes  []string                  // host paths below which volumes may be, read-only unless :rw stands at the end
	Private  []string                  // host paths that no volume may show a part of, nor hold
	Shared   []cove.Volume             // mounted in every session
	Paths    hostpath.Filter           // the paths that only operators are told

	VolumeSize  cove.Bytes // of one that is made; 0: 1 GiB
	VolumeFiles int64      // files and folders in it; 0: 100000
	MaxVolumes  int        // of one tenant; 0: 100

	MaxSessions int        // sessions with a sandbox at once; 0: no bound but memory
	MaxMemory   cove.Bytes // their flavors' memory together; 0: no bound
	Evict       bool       // make room by stopping the least recently used idle session
	QueueLength int        // callers that may wait for room; 0: 100
	PoolSize    int        // spares kept ready of each kind; 0: none
	MaxPool     int        // spares in all; 0: 100

	ExecTimeout  time.Duration // for a program that asks for none; 0: 33 s
	StartTimeout time.Duration // for creating a sandbox; 0: 180 s
	KeepStopped  time.Duration // how long a stopped session is kept; 0: 24 h
	KeepPaused   time.Duration // how long one with a fixed end, or that says what happens at its end, is kept paused or stopped; 0: 30 days
	KeepEnded    time.Duration // how long an ended one is remembered; 0: KeepEnded
	KeepRuns     time.Duration // how long a run that has ended is remembered; 0: 24 h
	MaxRuns      int           // those of one tenant that are; 0: 1000
	KeepChats    time.Duration // how long a message of a chat is remembered; 0: 30 days

	CleanupInterval time.Duration // between looks for expired sessions; 0: 60 s
	OrphanInterval  time.Duration // between looks for orphans; 0: 600 s
	PoolInterval    time.Duration // between looks at the pool; 0: 10 s

	// Descriptors refuses to make so many sandboxes at once, those that are being made
	// included, where the file descriptors of this process do not suffice; nil: they do.
	Descriptors func(making int64) error

	TenantDisk  cove.Bytes                 // that a tenant without a bound of its own may keep on the disk; 0: no bound
	DiskReserve cove.Bytes                 // of the disk that tenants leave to the journal and the database
	Free        func() (cove.Bytes, error) // the free space of that disk; nil: it is not checked

	OutputBudget cove.Bytes // of one stream, in an answer; 0: 20 KiB
	OutputKept   cove.Bytes // of one program, on disk; 0: 16 MiB
	MaxFileSize  cove.Bytes // of one file that a caller writes; 0: 100 MiB

	Prices cove.Prices // for the estimates in reports on tenants; without a currency there are none
}

// BuiltinFlavors are the sizes that exist unless the operator says otherwise.
func BuiltinFlavors() map[string]cove.Resources {
	return map[string]cove.Resources{
		"small":  {CPUs: 1, Memory: cove.GiB, PIDs: 256},
		"medium": {CPUs: 2, Memory: 2 * cove.GiB, PIDs: 512},
		"large":  {CPUs: 4, Memory: 4 * cove.GiB, PIDs: 1024},
	}
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Flavors == nil {
		c.Flavors = BuiltinFlavors()
	}
	c.Defaults = fill(c.Defaults, cove.Spec{
		Template: "base", Flavor: "small", Idle: 30 * time.Minute,
		Network:   cove.Network{Mode: cove.NetworkNone},
		Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 500 * cove.MiB, Files: 100_000},
	})
	orInt(&c.QueueLength, 100)
	orInt(&c.MaxPool, 100)
	orInt(&c.ExecTimeout, 33*time.Second)
	orInt(&c.StartTimeout, 180*time.Second)
	orInt(&c.KeepStopped, 24*time.Hour)
	orInt(&c.KeepPaused, 30*24*time.Hour)
	orInt(&c.KeepEnded, KeepEnded)
	orInt(&c.KeepRuns, 24*time.Hour)
	orInt(&c.MaxRuns, 1000)
	orInt(&c.KeepChats, 30*24*time.Hour)
	orInt(&c.VolumeSize, cove.GiB)
	orInt(&c.VolumeFiles, 100_000)
	orInt(&c.MaxVolumes, 100)
	orInt(&c.CleanupInterval, 60*time.Second)
	orInt(&c.OrphanInterval, 600*time.Second)
	orInt(&c.PoolInterval, 10*time.Second)
	orInt(&c.OutputBudget, 20*cove.KiB)
	orInt(&c.OutputKept, 16*cove.MiB)
	orInt(&c.MaxFileSize, 100*cove.MiB)
	return c
}

func orInt[T ~int | ~int64](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// validate reports what an operator wrote that cannot be meant.
func (c Config) validate() error {
	names := c.providerNames()
	for _, name := range append([]string{c.Provider}, c.Fallback...) {
		if !slices.Contains(names, name) {
			return cove.InvalidField("SANDBOX_PROVIDER", "%q is not a provider of this build; use one of %s", name, strings.Join(names, ", "))
		}
	}
	if _, ok := c.Flavors[c.Defaults.Flavor]; !ok {
		return cove.InvalidField("MSB_DEFAULT_FLAVOR", "%q is unknown; use one of %s", c.Defaults.Flavor, c.flavorNames())
	}
	return c.Defaults.Validate()
}

func (c Config) providerNames() []string {
	names := make([]string, len(c.Providers))
	for i, p := range c.Providers {
		names[i] = p.Name()
	}
	return names
}

func (c Config) flavorNames() string {
	var names []string
	for name := range c.Flavors {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return int(c.Flavors[a].Memory/cove.MiB) - int(c.Flavors[b].Memory/cove.MiB)
	})
	return strings.Join(names, ", ")
}
