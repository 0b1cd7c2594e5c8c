package providertest

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/cove-sandbox/cove"
)

func snapshotTests() []test {
	return []test{
		{"keeps_the_files", snapshotKeeps},
		{"outlives_its_sandbox", snapshotOutlives},
		{"name_that_exists_is_conflict", snapshotTwice},
		{"remove", snapshotRemove},
		{"unknown_is_not_found", snapshotUnknown},
		{"fork_doubles_the_files", forkDoubles},
		{"fork_while_programs_run", forkWhileRunning},
		{"while_a_program_writes", snapshotWhileWriting},
		{"of_a_sandbox_from_a_snapshot", snapshotOfSnapshot},
		{"fork_that_fails_leaves_nothing", forkFails},
		{"forks_of_forks_diverge", forksDiverge},
		{"bytes_are_bounded_with_the_files_of_the_snapshot", snapshotBytes},
		{"bytes_are_bounded_with_the_files_of_the_fork", forkBytes},
		{"file_count_is_bounded_with_the_files_of_the_snapshot", snapshotCount},
		{"larger_than_the_workspace_is_refused", snapshotTooLarge},
	}
}

func (e *env) snapshotable() (cove.Sandbox, cove.Snapshotter) {
	e.Helper()
	e.needsPower(cove.PowerSnapshot)
	s := e.sandbox()
	return s, as[cove.Snapshotter](e, s)
}

func (e *env) removeSnapshotLater(name cove.ID) {
	e.Cleanup(func() { e.check(as[cove.SnapshotKeeper](e, e.p).RemoveSnapshot(e.last(), name), "remove the snapshot") })
}

// furnish gives a sandbox files of every kind.
func (e *env) furnish(s cove.Sandbox) {
	e.Helper()
	e.must(s.Files().Write(e.ctx(), "dir/run", reader("#!/bin/sh\necho ran\n"), 0o755), "write")
	e.prints(s, "", `ln -s dir/run link; echo one > one; echo home > "$HOME/h"`)
}

// furnished demands those files.
func (e *env) furnished(s cove.Sandbox) {
	e.Helper()
	e.prints(s, "ran\nran\none\nhome\n", `dir/run && ./link && cat one "$HOME/h"`)
}

func from(name cove.ID) func(*cove.Spec) { return func(s *cove.Spec) { s.Snapshot = name } }

func snapshotKeeps(e *env) {
	s, snap := e.snapshotable()
	e.furnish(s)
	name := cove.NewID()
	size, err := snap.Snapshot(e.ctx(), name)
	e.must(err, "snapshot")
	e.removeSnapshotLater(name)
	if size < 20 {
		e.Errorf("the snapshot has %d bytes", size)
	}
	e.write(s, "one", "changed later\n")
	a, b := e.sandbox(from(name)), e.sandbox(from(name))
	e.furnished(a)
	e.prints(a, "", "rm -r dir; echo of a > one")
	e.furnished(b)
	equal(e, e.read(s, "one"), "changed later\n", "the file of the first sandbox")
}

func snapshotOutlives(e *env) {
	s, snap := e.snapshotable()
	e.furnish(s)
	name := cove.NewID()
	_, err := snap.Snapshot(e.ctx(), name)
	e.must(err, "snapshot")
	e.removeSnapshotLater(name)
	e.must(s.Destroy(e.ctx()), "destroy")
	if slices.Contains(e.ids(), name) {
		e.Errorf("List shows a snapshot as a sandbox")
	}
	e.furnished(e.sandbox(from(name)))
	_, err = snap.Snapshot(e.ctx(), cove.NewID())
	e.wants(cove.NotFound, err, "a snapshot of a sandbox that is gone")
}

func snapshotTwice(e *env) {
	s, snap := e.snapshotable()
	e.furnish(s)
	name := cove.NewID()
	_, err := snap.Snapshot(e.ctx(), name)
	e.must(err, "snapshot")
	e.removeSnapshotLater(name)
	e.prints(s, "", "echo two > one")
	_, err = snap.Snapshot(e.ctx(), name)
	e.wants(cove.Conflict, err, "a second snapshot with the name")
	e.furnished(e.sandbox(from(name)))
	_, err = snap.Snapshot(e.ctx(), "../bad")
	e.wants(cove.Invalid, err, "a name that is no id")
}

func snapshotRemove(e *env) {
	s, snap := e.snapshotable()
	e.furnish(s)
	name := cove.NewID()
	_, err := snap.Snapshot(e.ctx(), name)
	e.must(err, "snapshot")
	made := e.sandbox(from(name))
	keeper := as[cove.SnapshotKeeper](e, e.p)
	e.must(keeper.RemoveSnapshot(e.ctx(), name), "remove")
	e.must(keeper.RemoveSnapshot(e.ctx(), name), "remove again")
	e.furnished(made)
	_, err = e.p.Create(e.ctx(), cove.NewID(), e.spec(from(name)))
	e.wants(cove.NotFound, err, "creating from a snapshot that was removed")
}

func snapshotUnknown(e *env) {
	e.needsPower(cove.PowerSnapshot)
	_, err := e.p.Create(e.ctx(), cove.NewID(), e.spec(from(cove.NewID())))
	e.wants(cove.NotFound, err, "creating from a snapshot that does not exist")
	equal(e, len(e.ids()), 0, "the number of sandboxes")
}

func (e *env) forkable() (cove.Sandbox, cove.Forker) {
	e.Helper()
	e.needsPower(cove.PowerFork)
	s := e.sandbox()
	return s, as[cove.Forker](e, s)
}

func forkDoubles(e *env) {
	s, forker := e.forkable()
	e.furnish(s)
	id := cove.NewID()
	twin, err := forker.Fork(e.ctx(), id, e.spec(func(s *cove.Spec) { s.Env = map[string]string{"WHO": "twin"} }))
	e.must(err, "fork")
	e.destroyLater(twin)
	equal(e, twin.ID(), id, "the id of the copy")
	e.furnished(twin)
	e.prints(twin, "twin\n", "echo $WHO; rm -r dir; echo of the twin > one")
	e.furnished(s)
	e.must(s.Destroy(e.ctx()), "destroy the first")
	equal(e, e.read(twin, "one"), "of the twin\n", "the file of the copy")
	_, err = forker.Fork(e.ctx(), cove.NewID(), e.spec())
	e.wants(cove.NotFound, err, "forking a sandbox that is gone")
}

func forkWhileRunning(e *env) {
	s, forker := e.forkable()
	p := e.interact(s, shell("while read line; do echo $line >> log; echo wrote; done"))
	p.send("one\n")
	p.out.until("wrote")
	twin, err := forker.Fork(e.ctx(), cove.NewID(), e.spec())
	e.must(err, "fork")
	e.destroyLater(twin)
	p.send("two\n")
	e.must(p.in.Close(), "close the input")
	e.ended(e.wait(p), cove.Exited, 0, "")
	equal(e, e.read(s, "log"), "one\ntwo\n", "the log of the first")
	equal(e, e.read(twin, "log"), "one\n", "the log of the copy")
}

// A program that goes on writing is in the snapshot up to some moment.
func snapshotWhileWriting(e *env) {
	s, snap := e.snapshotable()
	p := e.interact(s, shell("while read line; do echo $line >> log; echo wrote; done"))
	p.send("one\n")
	p.out.until("wrote")
	name := cove.NewID()
	_, err := snap.Snapshot(e.ctx(), name)
	e.must(err, "snapshot")
	e.removeSnapshotLater(name)
	p.send("two\n")
	e.must(p.in.Close(), "close the input")
	e.ended(e.wait(p), cove.Exited, 0, "")
	equal(e, e.read(s, "log"), "one\ntwo\n", "the log of the first")
	equal(e, e.read(e.sandbox(from(name)), "log"), "one\n", "the log in the snapshot")
}

func snapshotOfSnapshot(e *env) {
	s, snap := e.snapshotable()
	e.furnish(s)
	first := cove.NewID()
	_, err := snap.Snapshot(e.ctx(), first)
	e.must(err, "snapshot")
	e.removeSnapshotLater(first)
	second := e.sandbox(from(first))
	e.must(s.Destroy(e.ctx()), "destroy the first")
	e.write(second, "two", "two\n")
	name := cove.NewID()
	_, err = as[cove.Snapshotter](e, second).Snapshot(e.ctx(), name)
	e.must(err, "snapshot of what was made from a snapshot")
	e.removeSnapshotLater(name)
	e.must(second.Destroy(e.ctx()), "destroy the second")
	third := e.sandbox(from(name))
	e.furnished(third)
	equal(e, e.read(third, "two"), "two\n", "a file of the second")
}

func forksDiverge(e *env) {
	first, forker := e.forkable()
	e.furnish(first)
	fork := func(f cove.Forker) cove.Sandbox {
		s, err := f.Fork(e.ctx(), cove.NewID(), e.spec())
		e.must(err, "fork")
		e.destroyLater(s)
		return s
	}
	second := fork(forker)
	third := fork(as[cove.Forker](e, second))
	e.write(first, "one", "first\n")
	e.write(second, "one", "second\n")
	e.furnished(third)
	e.must(second.Destroy(e.ctx()), "destroy the one in the middle")
	fourth := fork(as[cove.Forker](e, third))
	e.prints(third, "", "rm -r dir")
	e.furnished(fourth)
	equal(e, e.read(first, "one"), "first\n", "the file of the first")
}

func forkFails(e *env) {
	s, forker := e.forkable()
	_, err := forker.Fork(e.ctx(), s.ID(), e.spec())
	e.wants(cove.Conflict, err, "forking to an id that exists")
	_, err = forker.Fork(e.ctx(), cove.NewID(), e.spec(func(s *cove.Spec) { s.Template = "no-such-template" }))
	e.wants(cove.Invalid, err, "forking with an unknown template")
	equal(e, len(e.ids()), 1, "the number of sandboxes")
}

const mostOfSmall = smallWorkspace * 3 / 4

// shotOfMost returns a snapshot of a small workspace that is full but for a quarter.
func (e *env) shotOfMost() (cove.Sandbox, cove.ID) {
	e.Helper()
	e.needsPower(cove.PowerSnapshot)
	s := e.smallSandbox()
	e.must(s.Files().Write(e.ctx(), "most", bytes.NewReader(make([]byte, mostOfSmall)), 0o644), "write")
	e.write(s, "kept", "kept\n")
	name := cove.NewID()
	_, err := as[cove.Snapshotter](e, s).Snapshot(e.ctx(), name)
	e.must(err, "snapshot")
	e.removeSnapshotLater(name)
	return s, name
}

func small(s *cove.Spec) { s.Workspace.Size = smallWorkspace }

func snapshotBytes(e *env) {
	_, name := e.shotOfMost()
	e.fillsUp(e.sandbox(small, from(name)))
}

func forkBytes(e *env) {
	e.needsPower(cove.PowerFork)
	s, _ := e.shotOfMost()
	twin, err := as[cove.Forker](e, s).Fork(e.ctx(), cove.NewID(), e.spec(small))
	e.must(err, "fork")
	e.destroyLater(twin)
	e.fillsUp(twin)
}

// fillsUp demands that a sandbox holds what it began with and no more than fits into an
// empty one, and that what is removed gives room.
func (e *env) fillsUp(s cove.Sandbox) {
	e.Helper()
	e.full(s.Files().Write(e.ctx(), "more", bytes.NewReader(make([]byte, mostOfSmall)), 0o644), "more than is left")
	if r := e.sh(s, "dd if=/dev/zero of=more bs=4096 count=1024"); r.ExitCode == 0 {
		e.Errorf("a program writes 4 MiB into what is left of 1 MiB")
	}
	again := e.sandbox(small)
	e.must(again.Files().Unpack(e.ctx(), ".", bytes.NewReader(e.archive(s, "."))), "unpack all of it in an empty sandbox")
	equal(e, e.read(again, "kept"), "kept\n", "a file")
	for _, x := range []cove.Sandbox{s, again} {
		e.prints(x, "", "rm most more")
		e.must(x.Files().Write(e.ctx(), "other", bytes.NewReader(make([]byte, mostOfSmall)), 0o644), "write in the place of what was removed")
		equal(e, e.read(x, "kept"), "kept\n", "a file that was there")
	}
}

func snapshotCount(e *env) {
	e.needsHard(cove.LimitFiles)
	e.needsPower(cove.PowerSnapshot)
	few := func(s *cove.Spec) { s.Workspace.Files = fewFiles }
	s := e.sandbox(few)
	for i := range fewFiles - 2 {
		e.write(s, "f"+strconv.Itoa(i), "")
	}
	name := cove.NewID()
	_, err := as[cove.Snapshotter](e, s).Snapshot(e.ctx(), name)
	e.must(err, "snapshot")
	e.removeSnapshotLater(name)
	made := e.sandbox(few, from(name))
	e.prints(made, "2\n", "i=0; while [ $i -lt 100 ] && touch more$i 2>/dev/null; do i=$((i+1)); done; echo $i")
	e.prints(made, "ok\n", "rm f0 && touch f0 && rm f1 && mkdir f1 && echo ok")
	e.full(made.Files().Mkdir(e.ctx(), "one"), "one directory more")
}

func snapshotTooLarge(e *env) {
	_, name := e.shotOfMost()
	_, err := e.p.Create(e.ctx(), cove.NewID(), e.spec(from(name), func(s *cove.Spec) { s.Workspace.Size = smallWorkspace / 2 }))
	e.full(err, "a workspace that is smaller than its snapshot")
	equal(e, len(e.ids()), 1, "the number of sandboxes")
}
