//go:build linux

package microsandbox

import (
	"context"
	"io"

	"github.com/cove-sandbox/cove"
)

// The names of the transports.
const (
	transportRPC = "rpc"
	transportCLI = "cli"
)

// transport is a way to make machines and to run programs in them.
type transport interface {
	// kind is rpc or cli.
	kind() string
	// probe says why no machine can be made, with a remedy; nil if one can.
	probe(ctx context.Context) error
	// networks are the modes that it can give, and how far they hold.
	networks() ([]cove.NetworkMode, cove.Enforcement)
	// fence says what stands around its machines, where they are the sandboxes of
	// another Cove: programs are not root in them. It is nil where they are virtual
	// machines, in which they are.
	fence() *cove.Isolation
	// start makes a machine. It returns when programs can be run in it.
	start(ctx context.Context, m machine) error
	// stop ends a machine, whatever state it is in; one that is not there is no
	// error.
	stop(ctx context.Context, name string) error
	// machines returns those that there are; the value is whether they run.
	machines(ctx context.Context) (map[string]bool, error)
	// run runs a program as root, without input, to its end. An error means that it
	// is not known whether it ran.
	run(ctx context.Context, name string, argv ...string) (finished, error)
	// install puts a file into a machine, executable by everybody.
	install(ctx context.Context, name, path string, content []byte) error
	// connect reaches an agent in a machine, whose things are in dir, and ends the
	// one before.
	connect(ctx context.Context, name, dir string) (io.ReadWriteCloser, error)
	// memory is what a machine uses; 0 if nobody can tell.
	memory(ctx context.Context, name string) cove.Bytes
}

// machine is what a transport is asked for.
type machine struct {
	name    string
	image   string
	cpus    int
	memory  cove.Bytes
	network cove.NetworkMode
}

// finished is how a program ended. What it wrote may lack lines.
type finished struct {
	code   int
	stdout string
	stderr string
}

// gone is the error of a machine that is not there any more.
func gone(name string) error {
	return cove.Errorf(cove.NotFound, "the machine %.80s is gone: somebody removed it, or it ended by itself", name).
		Reason(cove.ReasonNodeLost).Remedy("open a new session")
}
