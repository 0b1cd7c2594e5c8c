// Package dataruns is the one suite for governed data runs: what [cove.Runs],
// [cove.Datasets] and [cove.Chats] promise whatever provider runs the questions.
// The group acceptance is the list by which a provider is taken: SQL and Python
// succeed, the fields are the same, failures are mapped the same way, nothing is
// left, and nobody else serves in silence.
//
//	func TestDataRuns(t *testing.T) {
//		dataruns.Run(t, func(t *testing.T, s dataruns.Setup) dataruns.Harness { … })
//	}
//
// The suite writes the data that it asks questions of. It must not import an
// implementation, look behind the interface, know a provider or sleep.
package dataruns

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// Setup says what a platform under test is like.
type Setup struct {
	Datasets string // the directory with the datasets
	Model    *Model // what answers in chats; nil: nobody does
	Fault    Fault  // what goes wrong in it
}

// Model is a model that follows a script. What it said and heard belongs to the
// harness; the suite only sees what a platform makes of it.
type Model struct {
	Steps []Step
}

// Step is one answer of a model: tools that it asks for, or what it says.
type Step struct {
	Calls []Call
	Say   func(heard string) string // heard is the last message that it got
}

// Call is a tool that a model asks for.
type Call struct{ Tool, Arguments string }

// Fault is something that goes wrong below the runs.
type Fault string

// The faults.
const (
	FaultNone      Fault = ""
	FaultStart     Fault = "start"     // no sandbox can be made
	FaultTransport Fault = "transport" // there are sandboxes, and no program can be started in them
	FaultAnswer    Fault = "answer"    // the engine of SQL answers with what is no answer
)

// Harness is one platform under test with state of its own.
type Harness interface {
	// As returns the platform bound to a caller with p's name, tenant, scopes and
	// limits. Over a network the name may become another.
	As(p cove.Principal) cove.Platform
	// Provider is the name of what runs the questions.
	Provider() string
	// Told returns the metrics and the log so far; "" where nobody keeps them.
	Told() (metrics, log string)
	// Close frees everything, and fails the test where anything is left.
	Close()
}

// Open makes a platform that shares nothing with any other; the suite closes it. A
// fault that it cannot cause is skipped with t.Skip.
type Open func(t *testing.T, s Setup) Harness

// Run runs the suite, or the groups that are named. A group that the suite does not
// have fails the test, and so does a run in which no case was executed.
func Run(t *testing.T, open Open, only ...string) {
	t.Helper()
	for _, name := range only {
		if !slices.Contains(Groups(), name) {
			t.Fatalf("the suite has no group %q; its groups are %s", name, strings.Join(Groups(), ", "))
		}
	}
	s := &suite{open: open, shared: open(t, Setup{Datasets: writeData(t)})}
	t.Cleanup(s.shared.Close)
	for _, g := range groups() {
		if len(only) > 0 && !slices.Contains(only, g.name) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					defer func() {
						if !t.Skipped() {
							s.ran++
						}
					}()
					c.run(s.rig(t))
				})
			}
		})
	}
	if s.ran == 0 {
		t.Error("no case of the suite was run: the pattern of -run or -skip leaves none, or all were skipped")
	}
}

// Groups returns the names of the groups.
func Groups() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}

type suite struct {
	open   Open
	shared Harness // for the cases that need no platform of their own
	ran    int     // cases that were not skipped
}

type group struct {
	name  string
	cases []testCase
}

type testCase struct {
	name string
	run  func(r *rig)
}

func groups() []group {
	return []group{
		{"acceptance", acceptanceCases()},
		{"faults", faultCases()},
		{"errors", errorCases()},
		{"values", valueCases()},
		{"sql", sqlCases()},
		{"python", pythonCases()},
		{"files", fileCases()},
		{"grants", grantCases()},
		{"datasets", datasetCases()},
		{"sessions", sessionCases()},
		{"chat", chatCases()},
	}
}

// patience is how long a case may take before it counts as hung.
const patience = 3 * time.Minute

// rig is the platform for one case, and the steps that many share.
type rig struct {
	*testing.T

	s   *suite
	ctx context.Context //nolint:containedctx // a rig lives as long as its test
}

func (s *suite) rig(t *testing.T) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return &rig{T: t, s: s, ctx: ctx}
}

// own is a platform for this case alone.
func (r *rig) own(s Setup) Harness {
	r.Helper()
	s.Datasets = writeData(r.T)
	h := r.s.open(r.T, s)
	r.Cleanup(h.Close)
	return h
}

// analyst is a caller who may only ask questions.
func analyst(tenant string) cove.Principal {
	return cove.Principal{Name: "analyst-" + tenant, Tenant: tenant, Scopes: []cove.Scope{cove.ScopeRuns}}
}

func (r *rig) platform() cove.Platform {
	r.Helper()
	return r.s.shared.As(analyst("acme"))
}
