// Command bench measures what Cove promises about speed and prints its tables:
// each row is a ratio or a difference against a baseline taken in the same run,
// because machines differ and are noisy. It exits 1 when a row misses what it
// must reach. It must not be used to assert anything in a unit test.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/kernel"
	"github.com/cove-sandbox/cove/internal/measure"
	"github.com/cove-sandbox/cove/provider/local"
)

func main() {
	local.Main() // the keeper of its sandboxes is this program
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options is what the flags say.
type options struct {
	document       string
	only           string
	scale, samples int
	local          localOptions
	living         livingOptions
	server         serverOptions
	code           codeOptions
	gvisor         gvisorOptions
	docker         dockerOptions
	sql            sqlOptions
	e2b            e2bOptions
	sdk            sdkOptions
	cluster        clusterOptions
}

// The parts, in their order.
const (
	partLocal   = "local"
	partEngine  = "engine"
	partLiving  = "living"
	partServer  = "server"
	partCode    = "code"
	partGvisor  = "gvisor"
	partDocker  = "docker"
	partSQL     = "sql"
	partE2B     = "e2b"
	partSDK     = "sdk"
	partCluster = "cluster"
)

func parts() []string {
	return []string{partLocal, partEngine, partLiving, partServer, partCode, partGvisor, partDocker, partSQL, partE2B, partSDK, partCluster}
}

func (o options) wants(part string) bool { return o.only == "" || o.only == part }

func parse(args []string) (options, error) {
	o := options{living: livingOptions{
		rounds: 15, fill: fill100, download: 512 * 1_000_000, patience: 30 * time.Second,
		restart: restartOptions{provider: partLocal, sessions: 50, rounds: 5, patience: 30 * time.Second},
	}, server: serverOptions{
		restartOptions: restartOptions{provider: partLocal, patience: 30 * time.Second},
		rounds:         400, callers: 8, transfer: 2_000_000_000, burst: 100, sessions: 50, each: 20, look: 50 * time.Millisecond,
	}, code: codeOptions{
		python: "/usr/bin/python3", node: "/usr/bin/node", rounds: 100, sessions: 8, frame: oneFrame, patience: 30 * time.Second, kernels: kernel.New(),
	}, gvisor: gvisorOptions{rounds: ladderRounds}, docker: dockerOptions{rounds: ladderRounds}, sql: sqlOptions{
		rows: 1_000_000, rounds: 60, group: groupSQL, one: oneSQL, hungry: hungrySQL,
	}, e2b: e2bOptions{
		restartOptions: restartOptions{provider: partLocal, patience: 30 * time.Second}, rounds: 10, turn: 30, row: 600, files: 10_000,
	}, sdk: sdkOptions{
		restartOptions: restartOptions{provider: partLocal, patience: 30 * time.Second}, rounds: 20, turn: 20, imports: 40,
	}, cluster: clusterOptions{
		restartOptions: restartOptions{provider: partLocal, patience: 30 * time.Second}, rounds: 400, creates: 200, execs: 1000, each: 20,
	}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.document, "write", "", "put the tables into this document, between its bench markers")
	flags.StringVar(&o.only, "only", "", "measure only this part: "+strings.Join(parts(), ", "))
	flags.IntVar(&o.scale, "scale", 10_000, "how many sessions the engine's flatness is measured with")
	flags.IntVar(&o.samples, "samples", 400, "how often each thing of the engine is measured")
	flags.IntVar(&o.local.rounds, "rounds", 400, "how often each contender of the local provider runs")
	flags.IntVar(&o.local.churn, "churn", 1000, "how many sandboxes are made and destroyed to see what is left")
	flags.StringVar(&o.local.cove, "cove", "bin/cove", "the executable for cove run and cove serve")
	flags.IntVar(&o.server.execs, "execs", 100_000, "after how many execs the memory of a server is looked at")
	flags.StringVar(&o.docker.host, "docker", "", "where a Docker engine listens")
	flags.StringVar(&o.docker.image, "docker-image", "cove-sandbox:test", "the image of its sandboxes")
	flags.StringVar(&o.gvisor.runsc, "runsc", "", "the executable of gVisor to compare with")
	flags.StringVar(&o.sql.duckdb, "duckdb", "", "the executable of DuckDB, as make build embeds it")
	flags.StringVar(&o.e2b.node, "node", "/usr/bin/node", "the executable of Node.js for E2B's client")
	flags.StringVar(&o.e2b.modules, "e2b", "", "the node_modules with E2B's client in it")
	flags.StringVar(&o.sdk.python, "python", "/usr/bin/python3", "the executable of Python for our own SDK")
	flags.StringVar(&o.sdk.source, "sdk", "sdk/python/src", "the folder with that SDK in it")
	flags.StringVar(&o.cluster.redis, "redis", "redis-server", "the executable of Redis, which nodes share")
	flags.StringVar(&o.local.judge, "judge", "", "the executable of go-judge")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for _, exe := range []*string{&o.living.restart.cove, &o.server.cove, &o.e2b.cove, &o.sdk.cove, &o.cluster.cove} {
		*exe = o.local.cove
	}
	o.server.churn = o.local.churn
	switch {
	case o.only != "" && !slices.Contains(parts(), o.only):
		return o, fmt.Errorf("-only %s: use one of %s", o.only, strings.Join(parts(), ", "))
	case o.document != "" && o.only != "":
		return o, errors.New("-write goes with all parts; leave -only out")
	case min(o.scale, o.samples, o.local.rounds, o.local.churn, o.server.execs) < 1:
		return o, errors.New("-scale, -samples, -rounds, -churn and -execs start at 1")
	}
	return o, nil
}

// run measures everything and writes the tables to out, and into a document
// when asked to.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	var text strings.Builder
	var all []row
	text.WriteString(described(measure.ThisMachine(), o))
	for _, part := range []struct {
		name    string
		measure func(context.Context, options) (string, []row, error)
	}{{partLocal, localPart}, {partEngine, enginePart}, {partLiving, livingPart}, {partServer, serverPart}, {partCode, codePart}, {partGvisor, gvisorPart}, {partDocker, dockerPart}, {partSQL, sqlPart}, {partE2B, e2bPart}, {partSDK, sdkPart}, {partCluster, clusterPart}} {
		if !o.wants(part.name) {
			continue
		}
		table, rows, err := part.measure(ctx, o)
		if err != nil {
			return err
		}
		text.WriteString("\n" + table)
		all = append(all, rows...)
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	if o.document != "" {
		if err := writeInto(o.document, text.String()); err != nil {
			return err
		}
	}
	return missed(all)
}

func localPart(ctx context.Context, o options) (string, []row, error) {
	found, err := measureLocal(ctx, o.local, openLocal)
	if err != nil {
		return "", nil, err
	}
	rows, err := found.rows()
	return render("what", rows) + "\n" + renderPeers(found), rows, err
}

func enginePart(ctx context.Context, o options) (string, []row, error) {
	rows, err := engineRows(ctx, o.scale, o.samples)
	return render("what", rows), rows, err
}

func livingPart(ctx context.Context, o options) (string, []row, error) {
	_, own, err := ownName(ctx)
	if err != nil {
		return "", nil, err
	}
	rows, err := livingRows(ctx, o.living, func(dir string) (cove.Provider, error) { return openLiving(dir, own) })
	return render("what sessions can do", rows), rows, err
}

func serverPart(ctx context.Context, o options) (string, []row, error) {
	rows, err := serverRows(ctx, o.server, func(dir string) (cove.Provider, error) { return openLiving(dir, nil) })
	return render("what a server costs", rows), rows, err
}

func codePart(ctx context.Context, o options) (string, []row, error) {
	rows, kept, err := codeRows(ctx, o.code, func(dir string) (cove.Provider, error) {
		return openWith(local.Config{Dir: dir, Keeper: true, Templates: hostData{}})
	})
	return render("what code that remembers costs", rows) + "\n" + renderKept(kept), rows, err
}

// described is the sentence about the machine.
func described(m measure.Machine, o options) string {
	who := "an ordinary user"
	if m.AsRoot {
		who = "root"
	}
	return fmt.Sprintf("Measured on %d cores (%s), %s, %s, as %s, in %d rounds.\n", m.Cores, m.Arch, m.OS, m.Go, who, o.local.rounds)
}

// openLocal opens the local provider as cove run does.
func openLocal(dir string) (cove.Provider, error) { return openWith(local.Config{Dir: dir}) }

// openLiving opens it as a server does, with a keeper. Sandboxes may reach some
// addresses that are not public.
func openLiving(dir string, private []netip.Addr) (cove.Provider, error) {
	cfg := local.Config{Dir: dir, Keeper: true}
	for _, a := range private {
		cfg.Egress.Private = append(cfg.Egress.Private, netip.PrefixFrom(a, a.BitLen()))
	}
	return openWith(cfg)
}

// openWith opens the local provider. Without the lean agent this program would have
// to be the agent, and would measure itself.
func openWith(cfg local.Config) (cove.Provider, error) {
	agent, err := guest.Executable()
	if err != nil {
		return nil, err
	}
	if agent == "/proc/self/exe" {
		return nil, errors.New("this build has no lean agent in it; run make bench")
	}
	p, err := local.New(cfg)
	if err != nil {
		return nil, told(err)
	}
	return p, nil
}
