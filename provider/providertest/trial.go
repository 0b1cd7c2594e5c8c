package providertest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

func trialTests() []test {
	tests := []test{
		{"power_agrees_with_the_interface", trialAgrees},
		{"one_at_a_time", trialOnce},
		{"is_conflict_while_a_program_runs", trialBusy},
		{"goes_on_while_a_file_is_held", trialHeld},
		{"names_of_every_kind", trialNames},
		{"files_see_the_layer", trialFiles},
		{"what_a_file_was_before", trialBefore},
		{"hard_links_stay_linked", trialLinked},
		{"room_is_bounded", trialRoom},
		{"nothing_is_counted_twice", trialCounted},
		{"files_are_counted_once", trialFileCount},
		{"ends_with_the_sandbox", trialGone},
		{"is_given_back_after_a_restart", trialKept},
	}
	for _, c := range trialCases() {
		tests = append(tests, test{c.name, c.run})
	}
	return tests
}

// trialCase is a change to the workspace, and how a trial tells of it.
type trialCase struct {
	name           string
	before, during string
	want           []string // as "kind path", the path below the workspace
}

func trialCases() []trialCase {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("created many/%04d", i))
	}
	deep := strings.Repeat("d/", 28)
	return []trialCase{
		{"nothing", "echo a > a; mkdir d", "cat a > /dev/null; ls d; true", nil},
		{"created", "", "echo new > f; mkdir -p d/e; echo x > d/e/g", []string{"created d", "created d/e", "created d/e/g", "created f"}},
		{"modified", "echo old > f; mkdir d; echo old > d/f; echo same > same", "echo longer > f; echo new >> d/f", []string{"modified d/f", "modified f"}},
		{"removed", "echo a > a; mkdir -p d/e; echo b > d/e/b", "rm a; rm -r d", []string{"removed a", "removed d", "removed d/e", "removed d/e/b"}},
		{"mode_only", "echo a > a; chmod 644 a; mkdir d; chmod 755 d; echo b > d/b", "chmod 600 a; chmod 700 d", []string{"modified a", "modified d"}},
		{"file_becomes_directory", "echo a > x", "rm x; mkdir x; echo y > x/y", []string{"modified x", "created x/y"}},
		{"directory_becomes_file", "mkdir x; echo y > x/y", "rm -r x; echo a > x", []string{"modified x", "removed x/y"}},
		{"link_becomes_file", "echo t > t; ln -s t x", "rm x; echo own > x", []string{"modified x"}},
		{"symbolic_links", "echo t > t; ln -s t old; ln -s t turned", "rm old; ln -s nowhere new; rm turned; ln -s new turned", []string{"created new", "removed old", "modified turned"}},
		{"write_through_a_link", "echo t > t; ln -s t x", "echo more >> x", []string{"modified t"}},
		{"renamed_file", "echo a > a", "mv a b", []string{"removed a", "created b"}},
		{
			"renamed_directory", "mkdir -p d/e; echo 1 > d/f; echo 2 > d/e/g", "mv d moved",
			[]string{"removed d", "removed d/e", "removed d/e/g", "removed d/f", "created moved", "created moved/e", "created moved/e/g", "created moved/f"},
		},
		{
			"opaque_directory", "mkdir -p d/sub; chmod 755 d; echo 1 > d/old; echo 2 > d/sub/old; echo 3 > d/again", "rm -rf d; mkdir d; chmod 755 d; echo new > d/new; echo other > d/again",
			[]string{"modified d/again", "created d/new", "removed d/old", "removed d/sub", "removed d/sub/old"},
		},
		{"come_and_gone", "echo a > a", "echo b > b; mkdir d; echo c > d/c; rm -r b d", nil},
		{"new_hard_link", "echo a > a", "echo h > h; ln h i", []string{"created h", "created i"}},
		{"a_thousand_files", "mkdir many", "i=1000; while [ $i -lt 2000 ]; do echo $i > many/0${i#1}; i=$((i+1)); done; true", many},
		{"deep_trees", "mkdir -p " + deep + "; echo old > " + deep + "old", "rm " + deep + "old; echo new > " + deep + "new", []string{"created " + deep + "new", "removed " + deep + "old"}},
	}
}

// run makes the change twice, keeps it once and takes it back once.
func (c trialCase) run(e *env) {
	e.needsPower(cove.PowerTrial)
	for _, keep := range []bool{true, false} {
		s := e.sandbox()
		if c.before != "" {
			e.prints(s, "", c.before)
		}
		before := e.manifest(s)
		trial := e.try(s)
		if r := e.sh(s, c.during); r.ExitCode != 0 {
			e.Fatalf("%s\nended with code %d: %s", c.during, r.ExitCode, clip(r.stderr))
		}
		e.changed(trial, c.want...)
		after := e.manifest(s)
		if keep {
			e.must(trial.Commit(e.ctx()), "commit")
			e.sameTree(s, after, "commit")
		} else {
			e.must(trial.Discard(e.ctx()), "discard")
			e.sameTree(s, before, "discard")
		}
		e.changed(e.try(s)) // a new one starts with nothing
	}
}

func (e *env) try(s cove.Sandbox) cove.Trial {
	e.Helper()
	trial, err := as[cove.Trier](e, s).Try(e.ctx())
	e.must(err, "try")
	return trial
}

func (e *env) triable() (cove.Sandbox, cove.Trier) {
	e.Helper()
	e.needsPower(cove.PowerTrial)
	s := e.sandbox()
	return s, as[cove.Trier](e, s)
}

// changed demands what a trial tells, each file once and in order.
func (e *env) changed(trial cove.Trial, want ...string) {
	e.Helper()
	var got []string
	var last []string
	for c, err := range trial.Changes(e.ctx()) {
		e.must(err, "changes")
		name, ok := strings.CutPrefix(c.Path, cove.WorkspacePath+"/")
		if !ok || (c.Info == nil) != (c.Kind == cove.Removed) || c.Info != nil && c.Info.Path != c.Path {
			e.Errorf("a change is told as %+v", c)
		}
		if parts := strings.Split(name, "/"); last != nil && slices.Compare(last, parts) >= 0 {
			e.Errorf("%q comes after %q", parts, last)
		} else {
			last = parts
		}
		got = append(got, string(c.Kind)+" "+name)
	}
	if !slices.Equal(got, want) {
		e.Errorf("the trial tells of\n%s\nand should tell of\n%s", clip(strings.Join(got, "\n")), clip(strings.Join(want, "\n")))
	}
}

// manifest is all that can be seen of a workspace, a line for each file.
func (e *env) manifest(s cove.Sandbox) []string {
	e.Helper()
	lines := []string{}
	for f, err := range s.Files().List(e.ctx(), cove.WorkspacePath, cove.MaxListDepth) {
		e.must(err, "list")
		line := fmt.Sprintf("%q %s %q", f.Path, f.Mode, f.Link)
		if f.Mode.IsRegular() {
			line += fmt.Sprintf(" %d %d %q", f.Size, f.Modified.UnixNano(), clip(e.read(s, f.Path)))
		}
		lines = append(lines, line)
	}
	return lines
}

func (e *env) sameTree(s cove.Sandbox, want []string, when string) {
	e.Helper()
	if got := e.manifest(s); !slices.Equal(got, want) {
		e.Errorf("after %s the workspace has\n%s\nand should have\n%s", when, clip(strings.Join(got, "\n")), clip(strings.Join(want, "\n")))
	}
}

func trialAgrees(e *env) {
	_, found := cove.As[cove.Trier](e.sandbox())
	equal(e, found, e.hasPower(cove.PowerTrial), "whether there is the interface of the power trial")
}

func trialOnce(e *env) {
	s, trier := e.triable()
	trial := e.try(s)
	_, err := trier.Try(e.ctx())
	e.wants(cove.Conflict, err, "a second trial")
	e.prints(s, "", "echo on > f")
	e.changed(trial, "created f")
	e.must(trial.Discard(e.ctx()), "discard")
	if trial.Discard(e.ctx()) == nil || trial.Commit(e.ctx()) == nil {
		e.Errorf("a trial that has ended can be ended again")
	}
	next := e.try(s)
	if trial.Discard(e.ctx()) == nil {
		e.Errorf("a trial that has ended ends the next one")
	}
	e.check(next.Discard(e.ctx()), "discard the next")
	ctx, cancel := context.WithCancel(e.ctx())
	cancel()
	_, err = trier.Try(ctx)
	e.wants(cove.Canceled, err, "a trial for a caller who has gone")
}

// holding is a program that has a file of the workspace open until its input ends.
const holding = `exec 3>> held; echo ready; while read line; do echo "$line" >&3; echo wrote; done`

func trialBusy(e *env) {
	s, trier := e.triable()
	p := e.interact(s, shell(holding))
	p.out.until("ready")
	_, err := trier.Try(e.ctx())
	e.wants(cove.Conflict, err, "a trial while a program uses the workspace")
	e.must(p.in.Close(), "close the input")
	e.ended(e.wait(p), cove.Exited, 0, "")
	e.check(e.try(s).Discard(e.ctx()), "discard")
}

func trialHeld(e *env) {
	s, _ := e.triable()
	trial := e.try(s)
	p := e.interact(s, shell(holding))
	p.out.until("ready")
	e.wants(cove.Conflict, trial.Commit(e.ctx()), "commit while a file is held")
	e.wants(cove.Conflict, trial.Discard(e.ctx()), "discard while a file is held")
	p.send("on\n")
	p.out.until("wrote")
	e.changed(trial, "created held")
	e.must(p.in.Close(), "close the input")
	e.ended(e.wait(p), cove.Exited, 0, "")
	e.must(trial.Commit(e.ctx()), "commit")
	equal(e, e.read(s, "held"), "on\n", "what was written while the trial went on")
}

func trialGone(e *env) {
	s, trier := e.triable()
	trial := e.try(s)
	e.prints(s, "", "echo x > f")
	e.must(s.Destroy(e.ctx()), "destroy")
	e.wants(cove.NotFound, trial.Commit(e.ctx()), "commit in a sandbox that is gone")
	e.wants(cove.NotFound, trial.Discard(e.ctx()), "discard in a sandbox that is gone")
	for _, err := range trial.Changes(e.ctx()) {
		e.wants(cove.NotFound, err, "changes in a sandbox that is gone")
	}
	_, err := trier.Try(e.ctx())
	e.wants(cove.NotFound, err, "a trial in a sandbox that is gone")
	equal(e, len(e.ids()), 0, "the number of sandboxes")
}

func trialKept(e *env) {
	e.needsPower(cove.PowerAttach)
	s, _ := e.triable()
	e.prints(s, "", "echo old > f")
	keeper := as[cove.TrialKeeper](e, s)
	_, err := keeper.Tried(e.ctx())
	e.wants(cove.NotFound, err, "asking for a trial where there is none")
	e.try(s)
	e.prints(s, "", "echo new > f")
	e.restart()
	s, err = e.p.Attach(e.ctx(), s.ID())
	e.must(err, "attach")
	trial, err := as[cove.TrialKeeper](e, s).Tried(e.ctx())
	e.must(err, "ask for the trial")
	e.changed(trial, "modified f")
	_, err = as[cove.Trier](e, s).Try(e.ctx())
	e.wants(cove.Conflict, err, "a second trial after a restart")
	e.must(trial.Discard(e.ctx()), "discard")
	equal(e, e.read(s, "f"), "old\n", "the file after the trial")
}
