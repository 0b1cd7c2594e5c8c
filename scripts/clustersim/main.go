// Command clustersim plays a day of a cluster and prints what came of it: how even
// the load was, who waited, what was lost and what the directory was asked. The
// model is internal/clustersim.
//
//	go run ./scripts/clustersim -nodes 10 -sandboxes 1000
//	go run ./scripts/clustersim -nodes 10 -sandboxes 1000 -compare
//	go run ./scripts/clustersim -record trace.jsonl
//	go run ./scripts/clustersim -replay trace.jsonl
//	go run ./scripts/clustersim -write docs/scale.md
//
// -compare plays the same day with each placement. -record writes what happened to
// each session, as the trace of a real run would. -replay predicts what should
// have come of the arrivals of a real run, and fails where it did not. -write makes
// the tables of a page anew, each by the flags that stand above it.
//
// It must not start a node or reach a directory: it only counts.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/clustersim"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	err := command(args, stdout, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "clustersim:", err)
		return 1
	}
	return 0
}

// options are the flags.
type options struct {
	clustersim.Config

	compare               bool
	record, replay, write string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var memory, place string
	f := flag.NewFlagSet("clustersim", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Uint64Var(&o.Seed, "seed", 1, "of all chance")
	f.IntVar(&o.Nodes, "nodes", 3, "how many")
	f.IntVar(&o.Sandboxes, "sandboxes", 10, "at once, at the busiest time of the day")
	f.DurationVar(&o.Length, "length", 24*time.Hour, "how long the day is")
	f.StringVar(&memory, "memory", "", "of a node, such as 64g; a third more than the busiest time needs")
	f.IntVar(&o.NodeSessions, "sessions", 0, "of a node; the same")
	f.IntVar(&o.Queue, "queue", 64, "how many may wait at a node")
	f.DurationVar(&o.Patience, "patience", 30*time.Second, "how long they do; 0s is not at all")
	f.StringVar(&place, "placement", string(clustersim.BetterOfTwo), "better-of-two, least-loaded or chance")
	f.DurationVar(&o.Median, "median", 20*time.Minute, "how long sessions last")
	f.DurationVar(&o.Pace, "pace", 20*time.Second, "from one request of a session to its next")
	f.Float64Var(&o.Crashes, "crashes", 0.2, "of a node in a day")
	f.DurationVar(&o.Restart, "restart", 2*time.Minute, "until a node that crashed is back")
	f.IntVar(&o.Drains, "drains", 3, "of nodes in the day")
	f.Float64Var(&o.Movable, "movable", 0.3, "share of sessions that a drain can move")
	f.DurationVar(&o.Outage, "outage", 30*time.Second, "of the directory, once in the day")
	f.BoolVar(&o.compare, "compare", false, "play the day with each placement")
	f.StringVar(&o.record, "record", "", "write the day to this file, as a trace")
	f.StringVar(&o.replay, "replay", "", "compare with the run in this file")
	f.StringVar(&o.write, "write", "", "make the tables of this page anew")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, cove.Errorf(cove.Invalid, "%.40q is no flag", f.Arg(0))
	}
	o.Placement = clustersim.Placement(place)
	if memory != "" {
		room, err := cove.ParseBytes(memory)
		if err != nil {
			return o, err
		}
		o.NodeMemory = room
	}
	return o, nil
}

func command(args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	switch {
	case o.write != "":
		return rewrite(o.write, stderr)
	case o.record != "":
		return record(o)
	case o.replay != "":
		return replay(o, stdout)
	}
	return table(o, stdout)
}

// table plays the day, or the same one with each placement.
func table(o options, stdout io.Writer) error {
	ways := []clustersim.Placement{o.Placement}
	if o.compare {
		ways = clustersim.Placements()
	}
	var titles []string
	var days []*clustersim.Stats
	for _, way := range ways {
		o.Placement = way
		s, err := clustersim.Run(o.Config)
		if err != nil {
			return err
		}
		days = append(days, s)
		titles = append(titles, strings.ReplaceAll(string(way), "-", " "))
	}
	return clustersim.Table(stdout, titles, days)
}

func record(o options) error {
	trace, err := clustersim.Record(o.Config)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, e := range trace {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return os.WriteFile(o.record, b.Bytes(), 0o600)
}

func replay(o options, stdout io.Writer) error {
	file, err := os.Open(o.replay)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	trace, err := clustersim.ReadTrace(file)
	if err != nil {
		return err
	}
	return clustersim.Replay(stdout, o.Config, trace)
}
