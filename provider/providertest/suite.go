package providertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

// test is one case.
type test struct {
	name string
	run  func(e *env)
}

// group is a set of cases about one thing.
type group struct {
	name  string
	tests []test
}

func groups() []group {
	return []group{
		{"lifecycle", lifecycleTests()},
		{"spec", specTests()},
		{"volumes", volumeTests()},
		{"exec", execTests()},
		{"streams", streamTests()},
		{"limits", limitTests()},
		{"files", fileTests()},
		{"names", nameTests()},
		{"writes", writeTests()},
		{"list", listTests()},
		{"watch", watchTests()},
		{"archive", archiveTests()},
		{"hostile_archive", hostileArchiveTests()},
		{"signals", signalTests()},
		{"timeouts", timeoutTests()},
		{"kill", killTests()},
		{"background", backgroundTests()},
		{"terminal", terminalTests()},
		{"concurrency", concurrencyTests()},
		{"isolation", isolationTests()},
		{"programs", programTests()},
		{"escape", escapeTests()},
		{"usage", usageTests()},
		{"powers", powerTests()},
		{"pause", pauseTests()},
		{"snapshot", snapshotTests()},
		{"dial", dialTests()},
		{"trial", trialTests()},
		{"egress", egressTests()},
		{"prepare", prepareTests()},
		{"warm", warmTests()},
		{"templates", templateTests()},
		{"solo", soloTests()},
		{"attach", attachTests()},
		{"resume", resumeTests()},
		{"leaks", leakTests()},
	}
}

// Cases returns the names of all cases, as group/case, in the order they run.
func Cases() []string {
	var names []string
	for _, g := range groups() {
		for _, c := range g.tests {
			names = append(names, g.name+"/"+c.name)
		}
	}
	return names
}

// Run runs every case as a subtest, one after the other; with names of groups
// it runs those alone. A name that is no group fails the test, and so does a run in
// which no case started, or in which each case was skipped although the provider was
// opened.
//
// open is called at least once for every case with that case's t, and returns
// a provider that is ready; the suite closes it. A second call with the same t
// must give a second provider on the same state, as after a restart of the
// daemon; [Dir] helps with that. The first one is closed by then.
func Run(t *testing.T, open func(t *testing.T) cove.Provider, only ...string) {
	t.Helper()
	all := groups()
	if err := known(all, only); err != nil {
		t.Fatal(err)
	}
	started, opened, executed := 0, 0, 0
	for _, g := range all {
		if len(only) > 0 && !slices.Contains(only, g.name) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.tests {
				t.Run(c.name, func(t *testing.T) {
					started++
					e := begin(t, open)
					opened++
					defer func() {
						if !t.Skipped() {
							executed++
						}
					}()
					c.run(e)
				})
			}
		})
	}
	switch {
	case started == 0:
		t.Error("the suite ran no case: the pattern of -run or -skip leaves none")
	case opened > 0 && executed == 0:
		t.Error("the suite ran no case: all were skipped")
	}
}

// known returns an error that names what in only is no group.
func known(all []group, only []string) error {
	names := make([]string, 0, len(all))
	for _, g := range all {
		names = append(names, g.name)
	}
	unknown := slices.DeleteFunc(slices.Clone(only), func(name string) bool { return slices.Contains(names, name) })
	if len(unknown) > 0 {
		return fmt.Errorf("the suite has no group %q; its groups are %s", unknown, strings.Join(names, ", "))
	}
	return nil
}

// begin opens the provider of a case.
func begin(t *testing.T, open func(t *testing.T) cove.Provider) *env {
	e := &env{T: t, open: open, p: open(t)}
	// After open, so that it runs before what open itself left to clean up.
	t.Cleanup(func() { e.check(e.p.Close(), "close the provider") })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	caps, err := e.p.Probe(ctx)
	e.must(err, "probe")
	if !caps.Ready {
		t.Fatalf("provider %s is not ready: %s (%s). Call providertest.Require in open to skip it.", e.p.Name(), caps.Why, caps.Remedy)
	}
	e.caps = caps
	return e
}
