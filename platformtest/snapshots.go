package platformtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func snapshotCases() []testCase {
	return []testCase{
		{"pause_and_resume", pauseAndResume},
		{"pause_keeps_programs", pauseKeepsPrograms},
		{"save_and_open", saveAndOpen},
		{"outlived_by_its_sessions", outlivedSnapshot},
		{"list_and_delete", listAndDelete},
		{"fork", fork},
		{"fork_as", forkAs},
		{"fork_and_room", forkAndRoom},
		{"bounds_of_all_files", boundsOfAllFiles},
	}
}

func pauseAndResume(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerPause)
	p := r.user("acme")
	id := r.session(p, cove.Spec{User: "u"}).ID
	paused, err := p.Snapshots().Pause(r.ctx, id)
	r.must(err, "pause")
	if paused.State != cove.Paused || r.get(p, id).State != cove.Paused {
		t.Errorf("a paused session is %s", paused.State)
	}
	_, err = p.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantReason(t, err, cove.Conflict, cove.ReasonSessionPaused)
	resumed, err := p.Snapshots().Resume(r.ctx, id)
	r.must(err, "resume")
	if resumed.State != cove.Running {
		t.Errorf("a resumed session is %s", resumed.State)
	}
	same(t, "a program after resuming", r.sh(p, id, "echo on"), "on\n")
	_, err = p.Snapshots().Pause(r.ctx, id)
	r.must(err, "pause again")
	r.closeNow(p, id)
}

func pauseKeepsPrograms(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerPause)
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.idle(p, id)
	_, err := p.Snapshots().Pause(r.ctx, id)
	r.must(err, "pause")
	_, err = p.Snapshots().Resume(r.ctx, id)
	r.must(err, "resume")
	r.must(p.Processes(id).Input(r.ctx, pid, []byte("on"), true), "input")
	same(t, "a program that was paused", string(r.wait(p, id, pid).Stdout.Data), "on")
}

func saveAndOpen(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerSnapshot)
	p := r.user("acme")
	made := r.session(p, cove.Spec{})
	r.write(p, made.ID, "f", "saved")
	saved, err := p.Snapshots().Snapshot(r.ctx, made.ID, cove.SnapshotRequest{Name: "a name"})
	r.must(err, "snapshot")
	if !saved.ID.Valid() || saved.Session != made.ID || saved.Name != "a name" || saved.Tenant != "acme" ||
		saved.Provider != made.Provider || saved.Template != made.Spec.Template || saved.CreatedAt.IsZero() || saved.Size <= 0 {
		t.Errorf("the snapshot is %+v", saved)
	}
	r.write(p, made.ID, "f", "changed")
	r.write(p, made.ID, "late", "x")
	for range 2 {
		from := r.session(p, cove.Spec{Snapshot: saved.ID})
		same(t, "a file of the snapshot", r.read(p, from.ID, "f"), "saved")
		_, err = p.Files(from.ID).Stat(r.ctx, "late")
		wantCode(t, err, cove.NotFound)
		r.write(p, from.ID, "f", "changed in the copy")
	}
	same(t, "the file of the origin", r.read(p, made.ID, "f"), "changed")
}

// outlivedSnapshot: a session that began with a snapshot goes on with its own
// files, also when it was stopped and the snapshot is gone.
func outlivedSnapshot(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerSnapshot)
	p := r.user("acme")
	origin := r.session(p, cove.Spec{}).ID
	r.write(p, origin, "old", "saved")
	saved, err := p.Snapshots().Snapshot(r.ctx, origin, cove.SnapshotRequest{})
	r.must(err, "snapshot")
	id := r.session(p, cove.Spec{Snapshot: saved.ID}).ID
	r.must(p.Files(id).Remove(r.ctx, "old"), "remove")
	r.write(p, id, "new", "own")
	r.must(p.Snapshots().Delete(r.ctx, saved.ID), "delete")
	r.stop(p, id)
	_, err = p.Sessions().Start(r.ctx, id)
	r.must(err, "start")
	same(t, "its own file", r.read(p, id, "new"), "own")
	_, err = p.Files(id).Stat(r.ctx, "old")
	wantCode(t, err, cove.NotFound)
}

func listAndDelete(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerSnapshot)
	p := r.user("acme")
	one, two := r.session(p, cove.Spec{}).ID, r.session(p, cove.Spec{}).ID
	var saved []cove.ID
	for _, id := range []cove.ID{one, one, two} {
		snap, err := p.Snapshots().Snapshot(r.ctx, id, cove.SnapshotRequest{})
		r.must(err, "snapshot")
		saved = append(saved, snap.ID)
	}
	list := func(f cove.SnapshotFilter) []cove.ID {
		var got []cove.ID
		for _, snap := range all(r, p.Snapshots().List(r.ctx, f)) {
			got = append(got, snap.ID)
		}
		slices.Sort(got)
		return got
	}
	sorted := slices.Sorted(slices.Values(saved))
	same(t, "all snapshots", list(cove.SnapshotFilter{}), sorted)
	same(t, "those of one session", list(cove.SnapshotFilter{Session: two}), saved[2:])
	same(t, "a page", list(cove.SnapshotFilter{Limit: 2}), sorted[:2])
	same(t, "the next page", list(cove.SnapshotFilter{After: sorted[1], Limit: 2}), sorted[2:])
	r.must(p.Snapshots().Delete(r.ctx, saved[0]), "delete")
	wantCode(t, p.Snapshots().Delete(r.ctx, saved[0]), cove.NotFound)
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Snapshot: saved[0]}})
	wantCode(t, err, cove.NotFound)
	r.session(p, cove.Spec{Snapshot: saved[1]})
}

func fork(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerFork)
	p := r.user("acme")
	made := r.session(p, cove.Spec{User: "u", Thread: "t", Env: map[string]string{"A": "1"}})
	r.write(p, made.ID, "f", "both")
	copied, err := p.Snapshots().Fork(r.ctx, made.ID, cove.ForkRequest{})
	r.must(err, "fork")
	if copied.ID == made.ID || copied.State != cove.Running || copied.Spec.User != "" || copied.Spec.Thread != "" || copied.Tenant != "acme" {
		t.Errorf("the copy is %+v", copied)
	}
	same(t, "the file of the copy", r.read(p, copied.ID, "f"), "both")
	same(t, "the environment of the copy", r.sh(p, copied.ID, "echo $A"), "1\n")
	r.write(p, copied.ID, "f", "copy")
	r.write(p, made.ID, "g", "origin")
	same(t, "the file of the origin", r.read(p, made.ID, "f"), "both")
	_, err = p.Files(copied.ID).Stat(r.ctx, "g")
	wantCode(t, err, cove.NotFound)
	r.closeNow(p, made.ID)
	same(t, "the file of the copy after the origin was closed", r.read(p, copied.ID, "f"), "copy")
}

func forkAs(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerFork)
	p := r.user("acme")
	id := r.session(p, cove.Spec{User: "u", Thread: "t"}).ID
	as := cove.ForkRequest{User: "u", Thread: "t2", Metadata: map[string]string{"m": "1"}}
	copied, err := p.Snapshots().Fork(r.ctx, id, as)
	r.must(err, "fork")
	if copied.Spec.User != "u" || copied.Spec.Thread != "t2" || copied.Spec.Metadata["m"] != "1" {
		t.Errorf("the copy is %+v", copied.Spec)
	}
	if found := r.session(p, cove.Spec{User: "u", Thread: "t2"}); found.ID != copied.ID || found.Created {
		t.Error("the copy is not found by its own user and thread")
	}
	_, err = p.Snapshots().Fork(r.ctx, id, as)
	wantCode(t, err, cove.Conflict)
}

func forkAndRoom(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxSessions: 1})
	r.needs(cove.PowerFork)
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	_, err := p.Snapshots().Fork(r.ctx, id, cove.ForkRequest{})
	wantReason(t, err, cove.Exhausted, cove.ReasonCapacity)
}

// boundsOfAllFiles: a fork, and a session from a snapshot, hold no more than their
// workspace may have, with what they began with, and can be stopped and started.
func boundsOfAllFiles(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerSnapshot)
	r.needs(cove.PowerFork)
	if r.capabilities().Isolation.Disk != cove.Hard {
		t.Skip("the workspace of this provider has no hard bound")
	}
	p := r.user("acme")
	spec := cove.Spec{Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: 256 * cove.KiB}}
	base := r.session(p, spec).ID
	r.write(p, base, "first", strings.Repeat("x", 150<<10))
	saved, err := p.Snapshots().Snapshot(r.ctx, base, cove.SnapshotRequest{})
	r.must(err, "snapshot")
	twin, err := p.Snapshots().Fork(r.ctx, base, cove.ForkRequest{})
	r.must(err, "fork")
	spec.Snapshot = saved.ID
	for _, id := range []cove.ID{twin.ID, r.session(p, spec).ID} {
		err := p.Files(id).Write(r.ctx, "second", strings.NewReader(strings.Repeat("y", 150<<10)), 0o644)
		wantReason(t, err, cove.Exhausted, cove.ReasonWorkspaceFull)
		r.write(p, id, "second", strings.Repeat("y", 90<<10))
		_, err = p.Sessions().Stop(r.ctx, id)
		r.must(err, "stop")
		_, err = p.Sessions().Start(r.ctx, id)
		r.must(err, "start")
		same(t, "the files of a session that began with others", len(r.read(p, id, "first"))+len(r.read(p, id, "second")), 240<<10)
		r.closeNow(p, id)
	}
	spec.Workspace.Size = 128 * cove.KiB
	_, err = p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: spec})
	wantReason(t, err, cove.Exhausted, cove.ReasonWorkspaceFull)
	if text := cove.MessageOf(err); !strings.Contains(text, "workspace.size_mb: ") || cove.RemedyOf(err) == "" {
		t.Errorf("a snapshot that is too large is refused with %q", text)
	}
}
