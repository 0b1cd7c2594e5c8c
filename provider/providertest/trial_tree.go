package providertest

import (
	"bytes"
	"strings"

	"github.com/cove-sandbox/cove"
)

// trialNames: a name may hold every byte but two.
// trialBefore: what is asked for is in the layers below, whoever made them, and never
// behind a link.
func trialBefore(e *env) {
	s, _ := e.triable()
	e.prints(s, "", `mkdir d; echo old > d/f; echo kept > kept; : > empty; ln -s d to; ln -s /etc/passwd out; ln -s d/f link; ln d/f hard`)
	e.write(s, "odd\xff\n", "odd")
	e.write(s, "most", strings.Repeat("m", int(cove.MaxTrialFile)))
	e.write(s, "more", strings.Repeat("m", int(cove.MaxTrialFile)+1))
	trial := e.try(s)
	e.prints(s, "", `echo new > d/f; rm -r kept empty most more; echo made > made; rm d/f; rmdir d; ln -s /etc d`)
	before := func(name string) (string, error) {
		b, err := trial.Before(e.ctx(), cove.WorkspacePath+"/"+name)
		return string(b), err
	}
	for name, want := range map[string]string{"d/f": "old\n", "kept": "kept\n", "empty": "", "hard": "old\n", "odd\xff\n": "odd", "most": strings.Repeat("m", int(cove.MaxTrialFile))} {
		got, err := before(name)
		e.must(err, "before "+name)
		if got != want {
			e.Errorf("%q held %s; want %s", name, clip(got), clip(want))
		}
	}
	for name, code := range map[string]cove.Code{
		"made": cove.NotFound, "kept/below": cove.NotFound, "d/passwd": cove.NotFound, "d": cove.Invalid, "out": cove.Invalid, "link": cove.Invalid, "more": cove.Invalid,
	} {
		_, err := before(name)
		e.wants(code, err, "before "+name)
	}
	if _, err := before("more"); cove.ReasonOf(err) != cove.ReasonFileTooLarge {
		e.Errorf("a large file: %v", err)
	}
	if got, err := before("to/f"); err == nil {
		e.Errorf("a link was followed to %s", clip(got))
	}
	e.must(trial.Discard(e.ctx()), "discard")
	if _, err := before("kept"); err == nil {
		e.Errorf("a trial that has ended tells of files")
	}
}

func trialNames(e *env) {
	odd := []string{"a\nb", "caf\xe9 \xff", "  ", "-rf", ".hidden", strings.Repeat("n", 255), "\x01\x7f"}
	for _, keep := range []bool{true, false} {
		s, _ := e.triable()
		e.prints(s, "", "mkdir d")
		for _, name := range odd {
			e.write(s, "d/"+name, "old")
		}
		before := e.manifest(s)
		trial := e.try(s)
		want := map[string]cove.ChangeKind{}
		for i, name := range odd {
			old, made := cove.WorkspacePath+"/d/"+name, cove.WorkspacePath+"/"+name
			want[old], want[made] = cove.Modified, cove.Created
			e.write(s, made, "new")
			if i%2 == 0 {
				want[old] = cove.Removed
				e.must(s.Files().Remove(e.ctx(), old), "remove")
				continue
			}
			e.write(s, old, "newer")
		}
		for c, err := range trial.Changes(e.ctx()) {
			e.must(err, "changes")
			if want[c.Path] != c.Kind {
				e.Errorf("%q was %s; want %q", c.Path, c.Kind, want[c.Path])
			}
			delete(want, c.Path)
		}
		if len(want) > 0 {
			e.Errorf("these changes are not told: %q", want)
		}
		after := e.manifest(s)
		if keep {
			e.must(trial.Commit(e.ctx()), "commit")
			e.sameTree(s, after, "commit")
			continue
		}
		e.must(trial.Discard(e.ctx()), "discard")
		e.sameTree(s, before, "discard")
	}
}

// trialFiles: callers and programs see the same files, and so does what they
// archive and unpack.
func trialFiles(e *env) {
	s, _ := e.triable()
	e.write(s, "f", "old")
	trial := e.try(s)
	e.write(s, "f", "new")
	e.must(s.Files().Mkdir(e.ctx(), "d"), "mkdir")
	e.must(s.Files().Move(e.ctx(), "f", "d/f"), "move")
	e.prints(s, "new", "cat d/f; echo made > made")
	equal(e, e.read(s, "made"), "made\n", "what a program wrote")
	e.changed(trial, "created d", "created d/f", "removed f", "created made")
	e.must(trial.Discard(e.ctx()), "discard")
	e.prints(s, "old", "cat f; test ! -e d; test ! -e made")
	e.write(s, "g", "after")
	e.prints(s, "after", "cat g")
}

// trialLinked: names of one file stay names of one file.
func trialLinked(e *env) {
	const linked = "echo more >> one; cat two"
	s, _ := e.triable()
	e.prints(s, "", "echo 1 > one; ln one two; echo 3 > three")
	trial := e.try(s)
	e.prints(s, "", "rm one two three")
	e.must(trial.Discard(e.ctx()), "discard")
	e.prints(s, "1\nmore\n", linked)

	s, _ = e.triable()
	trial = e.try(s)
	e.prints(s, "", "echo 1 > one; ln one two")
	e.must(trial.Commit(e.ctx()), "commit")
	e.prints(s, "1\nmore\n", linked)
}

func (e *env) put(s cove.Sandbox, name string, size cove.Bytes) error {
	return s.Files().Write(e.ctx(), name, bytes.NewReader(make([]byte, size)), 0o644)
}

// trialRoom: a layer has no more room than the workspace below has left.
func trialRoom(e *env) {
	e.needsPower(cove.PowerTrial)
	s := e.smallSandbox()
	e.must(e.put(s, "below", smallWorkspace/2), "write below")
	trial := e.try(s)
	e.full(e.put(s, "big", smallWorkspace), "more than there is room for")
	if r := e.sh(s, "head -c 1000000 /dev/zero > prog"); r.ExitCode == 0 {
		e.Errorf("a program wrote more than there is room for")
	}
	e.prints(s, "", "rm prog")
	e.must(e.put(s, "fits", smallWorkspace/4), "write what fits")
	e.must(trial.Discard(e.ctx()), "discard")
	e.must(e.put(s, "half", smallWorkspace/2), "write into the room that came back")
	e.full(e.put(s, "more", smallWorkspace/4), "more than there is room for after the trial")
}

// trialCounted: what was committed takes the room of the files it is, however
// often that happened.
func trialCounted(e *env) {
	e.needsPower(cove.PowerTrial)
	s := e.smallSandbox()
	for range 4 {
		trial := e.try(s)
		e.must(e.put(s, "f", smallWorkspace/4), "write in a trial")
		e.must(trial.Commit(e.ctx()), "commit")
	}
	for range 4 {
		trial := e.try(s)
		e.must(e.put(s, "g", smallWorkspace/4), "write in a trial")
		e.must(trial.Discard(e.ctx()), "discard")
	}
	e.must(e.put(s, "rest", smallWorkspace*5/8), "write into what is left")
	e.full(e.put(s, "more", smallWorkspace/4), "more than is left")
}

func trialFileCount(e *env) {
	s, _ := e.triable()
	e.prints(s, "", "echo 1 > a; echo 2 > b; mkdir d")
	before := e.usage(s).Files
	for _, end := range []struct {
		during string
		more   int64
		how    func(cove.Trial) error
	}{
		{"echo 3 > c; rm a; echo more >> b", 0, func(t cove.Trial) error { return t.Commit(e.ctx()) }},
		{"echo 4 > x; mkdir -p y/z; rm b", 0, func(t cove.Trial) error { return t.Discard(e.ctx()) }},
		{"echo 5 > e; echo 6 > f", 2, func(t cove.Trial) error { return t.Commit(e.ctx()) }},
	} {
		trial := e.try(s)
		e.prints(s, "", end.during)
		e.must(end.how(trial), "end the trial")
		before += end.more
		equal(e, e.usage(s).Files, before, "the number of files after: "+end.during)
	}
}
