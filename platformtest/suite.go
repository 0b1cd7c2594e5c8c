// Package platformtest is the one suite for [cove.Platform]: what the engine
// promises in process, and what a client of it promises across a network.
//
// An implementation runs it with a few lines:
//
//	func TestPlatform(t *testing.T) {
//		platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
//			return newHarness(t, o)
//		})
//	}
//
// The suite speaks plain POSIX sh inside sandboxes and asks the platform's own
// doctor what its provider can do; what is not there is skipped by name. It
// must not import an implementation, look behind the interface or sleep.
package platformtest

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// Options says how a platform under test is set up. A zero bound is no bound,
// and every other zero field is the platform's own default. The command policy
// agent-bash is always there.
type Options struct {
	MaxSessions  int
	MaxMemory    cove.Bytes
	Evict        bool          // stop the idlest session of the tenant when full
	QueueLength  int           // callers that may wait for room
	Volumes      []string      // host paths that may be mounted
	Shared       []cove.Volume // mounted in every session
	VolumeSize   cove.Bytes    // of one volume by name
	MaxVolumes   int           // by name, of one tenant
	OutputBudget cove.Bytes    // of one stream in an answer
	OutputKept   cove.Bytes    // of one program's whole output
	ExecTimeout  time.Duration // for programs that ask for none
	MaxFileSize  cove.Bytes
	Flavors      map[string]cove.Resources // nil means small, medium and large
	AutoRetry    *bool                     // whether sessions that expired are opened again, as package retry has it
	Prices       cove.Prices
}

// Harness is one platform under test with state of its own.
type Harness interface {
	// As returns the platform bound to a caller with p's tenant, scopes, limits
	// and defaults. The caller's name may be another than p's.
	As(p cove.Principal) cove.Platform
	// Restart ends the platform as a crash would, as far as that can be done,
	// and opens it again on the same state; what As returned before is dead.
	// It is errors.ErrUnsupported where there is nothing to restart.
	Restart() error
	// Extras says what there is beyond sessions, programs and files.
	Extras() Extras
	// Close frees everything.
	Close()
}

// Extras names what only some platforms have; a zero field skips its cases.
type Extras struct {
	Code  *Language                          // a language that Contexts runs
	Query *Questions                         // what Runs answers
	Data  *Data                              // what Datasets shows and Chats talk about
	Serve func(port int, text string) string // a shell line that answers HTTP requests with text
	World *World                             // what a session with a way out can reach
	Links *http.Client                       // follows links, with no cookies of its own; nil where none are made
	Looks bool                               // it says what Python code imports
}

// Language is a language in the snippets that the suite needs.
type Language struct {
	Name   string
	Assign string // gives x the value 42
	Show   string // prints x, and fails where there is none
	Value  string // has the value of x plus 1; "" where there are no values
	Word   string // prints the variable WORD of the environment
	Raise  string // raises an error named Kind with the text Text
	Kind   string
	Text   string
	Die    string // ends the interpreter itself
	Loop   string // never ends
}

// World is a server that a session with a way out can reach under two names.
type World struct {
	Host, Other string
	Text        string                   // what it answers
	Fetch       func(host string) string // a shell line that prints the answer, or fails
}

// Questions are runs with a known end.
type Questions struct {
	Good cove.RunRequest // succeeds with one row or more
	Bad  cove.RunRequest // fails
	Hang cove.RunRequest // never ends by itself
}

// Data is a dataset, and what a chat about it begins with.
type Data struct {
	Dataset string
	Message string // leads to a run
}

// Fake returns the extras of the in-process provider, its kernels and its runner.
func Fake() Extras {
	sql := func(text string) cove.RunRequest { return cove.RunRequest{Type: cove.QuerySQL, SQL: text} }
	return Extras{
		Code: &Language{
			Name: "calc", Assign: "x = 42", Show: "print(x)", Value: "x + 1", Word: "print(WORD)",
			Raise: "raise E msg", Kind: "E", Text: "msg", Die: "die", Loop: "loop",
		},
		Query: &Questions{Good: sql("SELECT 1"), Bad: sql("fail"), Hang: sql("hang")},
		Data:  &Data{Dataset: "shop", Message: "SQL: SELECT 1"},
		Serve: serveLine, Looks: true,
		World: &World{
			Host: "example.com", Other: "www.example.com", Text: "hello from outside\n",
			Fetch: func(host string) string { return "curl -fsS http://" + host + "/" },
		},
	}
}

// Run runs the whole suite, or the groups of cases that are named. open makes a
// platform that shares nothing with any other; the suite closes it. A group that the
// suite does not have fails the test, and so does a run in which no case started, or in
// which each case was skipped although a platform was opened.
func Run(t *testing.T, open func(t *testing.T, o Options) Harness, only ...string) {
	t.Helper()
	for _, name := range only {
		if !slices.Contains(Groups(), name) {
			t.Fatalf("the suite has no group %q; its groups are %s", name, strings.Join(Groups(), ", "))
		}
	}
	s := &suite{seen: &record{}}
	s.open = func(t *testing.T, o Options) Harness {
		t.Helper()
		h := open(t, o)
		s.opened = true
		return h
	}
	total, executed := 0, 0
	for _, g := range groups() {
		total += len(g.cases)
		if len(only) > 0 && !slices.Contains(only, g.name) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					s.ran++
					defer func() {
						if !t.Skipped() {
							executed++
						}
					}()
					c.run(t, s)
				})
			}
		})
	}
	t.Run("coverage", func(t *testing.T) {
		if s.ran < total {
			t.Skip("only a part of the suite was run")
		}
		s.checkCoverage(t)
	})
	switch {
	case s.ran == 0:
		t.Error("no case of the suite was run: the pattern of -run or -skip leaves none")
	case s.opened && executed == 0:
		t.Error("no case of the suite was run: all were skipped")
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
	open func(t *testing.T, o Options) Harness
	seen *record

	ran    int  // cases that were started
	opened bool // whether a platform was opened
}

type group struct {
	name  string
	cases []testCase
}

type testCase struct {
	name string
	run  func(t *testing.T, s *suite)
}

func groups() []group {
	return []group{
		{"sessions", sessionCases()},
		{"reuse", reuseCases()},
		{"idempotency", idempotencyCases()},
		{"list", listCases()},
		{"expiry", expiryCases()},
		{"ends", endCases()},
		{"retry", retryCases()},
		{"tenants", tenantCases()},
		{"templates", templateCases()},
		{"exec", execCases()},
		{"output", outputCases()},
		{"background", backgroundCases()},
		{"signals", signalCases()},
		{"terminal", terminalCases()},
		{"blocked", blockedCases()},
		{"files", fileCases()},
		{"paths", pathCases()},
		{"tar", tarCases()},
		{"watch", watchCases()},
		{"contexts", contextCases()},
		{"classes", classCases()},
		{"ports", portCases()},
		{"snapshots", snapshotCases()},
		{"trials", trialCases()},
		{"network", networkCases()},
		{"runs", runCases()},
		{"data", dataCases()},
		{"links", linkCases()},
		{"admission", admissionCases()},
		{"queue", queueCases()},
		{"eviction", evictionCases()},
		{"quota", quotaCases()},
		{"usage", usageCases()},
		{"validation", validationCases()},
		{"floors", floorCases()},
		{"volumes", volumeCases()},
		{"named_volumes", namedVolumeCases()},
		{"keys", keyCases()},
		{"scopes", scopeCases()},
		{"stats", statsCases()},
		{"tasks", taskCases()},
		{"events", eventCases()},
		{"doctor", doctorCases()},
		{"nodes", nodeCases()},
		{"restart", restartCases()},
	}
}
