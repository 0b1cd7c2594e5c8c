package local_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// bounded are the bounds of the workspaces of these tests.
var bounded = cove.Workspace{Size: cove.MiB, Files: 100}

// bigAs makes a sandbox of bounded with the files of a snapshot, or with none.
func bigAs(t *testing.T, p *local.Provider, from cove.ID) cove.Sandbox {
	t.Helper()
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: from, Workspace: bounded})
	must(t, err)
	return s
}

// twin forks a sandbox with its bounds.
func twin(t *testing.T, s cove.Sandbox) cove.Sandbox {
	t.Helper()
	forker, _ := cove.As[cove.Forker](s)
	made, err := forker.Fork(t.Context(), cove.NewID(), cove.Spec{Workspace: bounded})
	must(t, err)
	return made
}

// fillUp writes files until no more fit in, of bytes and then of names.
const fillUp = `head -c 2000000 /dev/zero > bytes.%; i=0; while : > name.%.$i; do i=$((i+1)); done; true`

// fitsAgain demands that all files of a sandbox fit into an empty one of the same
// bounds: so it is stopped and started.
func fitsAgain(t *testing.T, p *local.Provider, s cove.Sandbox) cove.Sandbox {
	t.Helper()
	r, err := s.Files().Archive(t.Context(), cove.WorkspacePath)
	must(t, err)
	tar, err := io.ReadAll(r)
	must(t, errors.Join(err, r.Close()))
	made := bigAs(t, p, "")
	if err := made.Files().Unpack(t.Context(), cove.WorkspacePath, bytes.NewReader(tar)); err != nil {
		t.Errorf("the files do not fit into an empty workspace of the same bounds: %v", err)
	}
	return made
}

// A fork of a fork, and what is made from a snapshot of it, holds no more than the
// bounds, whichever layer a file is in, and can be stopped and started.
func TestLayersLimitsTogether(t *testing.T) {
	p := layeredProvider(t)
	first := bigAs(t, p, "")
	sh(t, first, "mkdir d; head -c 400000 /dev/zero > d/first; for i in {1..20}; do echo $i > d/$i; done")
	second := twin(t, first)
	sh(t, second, "head -c 200000 /dev/zero > second; echo changed > d/1; rm d/2")
	third := bigAs(t, p, shoot(t, p, second))
	for name, s := range map[string]cove.Sandbox{"first": first, "fork": second, "snapshot": third} {
		t.Run(name, func(t *testing.T) {
			_, _ = runs(t, s, strings.ReplaceAll(fillUp, "%", name))
			u, err := s.Usage(t.Context())
			must(t, err)
			if u.Disk > bounded.Size+8192 || u.Files > bounded.Files+8 { // what replaced and hides counts until it is measured
				t.Errorf("it uses %s in %d files", u.Disk, u.Files)
			}
			fitsAgain(t, p, s)
		})
	}
}

// What is removed of the files of a snapshot gives room to the next program or file
// call, and to a stack of snapshots.
func TestLayersLimitsRegained(t *testing.T) {
	p := layeredProvider(t)
	first := bigAs(t, p, "")
	sh(t, first, "mkdir d; head -c 800000 /dev/zero > d/first; for i in {1..40}; do echo $i > d/$i; done; head -c 40000 /dev/zero > kept")
	const many = "for i in {1..40}; do : > new.$i || exit 1; done; rm new.*"
	for name, free := range map[string]string{
		"removed": "rm -r d", "replaced": "rm -r d; mkdir d", "emptied": "rm d/[0-9]*; > d/first", "overwritten": "rm d/?; rm d/??; echo x > d/first",
	} {
		t.Run(name, func(t *testing.T) {
			s := twin(t, first)
			if out, code := runs(t, s, "head -c 700000 /dev/zero > more"); code == 0 {
				t.Errorf("it takes what does not fit: %s", out)
			}
			sh(t, s, "rm more")
			sh(t, s, free)
			sh(t, s, "head -c 700000 /dev/zero > more && "+many)
			must(t, s.Files().Remove(t.Context(), "more"))
			must(t, s.Files().Write(t.Context(), "more", bytes.NewReader(make([]byte, 700000)), 0o644))
			next := bigAs(t, p, shoot(t, p, s))
			sh(t, next, "cat more kept > /dev/null; rm more")
			sh(t, next, "head -c 700000 /dev/zero > again && "+many)
			fitsAgain(t, p, next)
		})
	}
	// What a trial hides may come back.
	s := twin(t, first)
	trial := try(t, s)
	sh(t, s, "rm -r d")
	if out, code := runs(t, s, "head -c 700000 /dev/zero > more"); code == 0 {
		t.Errorf("a trial takes the room of files that may come back: %s", out)
	}
	must(t, trial.Discard(t.Context()))
	fitsAgain(t, p, s)
	trial = try(t, s)
	sh(t, s, "rm -r d")
	must(t, trial.Commit(t.Context()))
	sh(t, s, "head -c 700000 /dev/zero > more")
}

// Where the files of a snapshot are most of those that there may be, each of them can
// be removed, and gives room for another, even if there is none left.
func TestLayersLimitsOfNames(t *testing.T) {
	p := layeredProvider(t)
	first := bigAs(t, p, "")
	sh(t, first, "mkdir d; for i in {1..99}; do echo $i > d/$i; done")
	for name, s := range map[string]cove.Sandbox{"fork": twin(t, first), "snapshot": bigAs(t, p, shoot(t, p, first))} {
		t.Run(name, func(t *testing.T) {
			if _, code := runs(t, s, ": > one"); code == 0 {
				t.Error("there is room for one file more")
			}
			sh(t, s, "for i in {1..99}; do rm d/$i && : > new.$i || exit 1; done")
			fitsAgain(t, p, s)
		})
	}
}

// A workspace that is too small for the files that it would begin with is refused, and
// the error says which field is too small.
func TestLayersLimitsRefused(t *testing.T) {
	dir := providertest.Dir(t)
	again := func() *local.Provider {
		p, err := local.New(local.Config{Dir: dir})
		must(t, err)
		providertest.Ready(t, p)
		if !local.Layers(p) {
			linuxtest.Need(t, local.Stacking())
		}
		return p
	}
	p := again()
	s := create(t, p)
	sh(t, s, "head -c 300000 /dev/zero > old; for i in {1..20}; do echo $i > $i; done")
	shot := shootFor(t, s)
	stack := bigAs(t, p, shot) // more than one layer
	sh(t, stack, "rm old 1; ln 3 hard; ln -s 3 link")
	second := shootFor(t, stack)
	refused := func(id cove.ID, w cove.Workspace, field string) {
		t.Helper()
		_, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: id, Workspace: w})
		wants(t, cove.Exhausted, err, "a snapshot that does not fit")
		if cove.ReasonOf(err) != cove.ReasonWorkspaceFull || !strings.Contains(cove.MessageOf(err), field+": ") || cove.RemedyOf(err) == "" {
			t.Errorf("a snapshot that does not fit is refused with %v", err)
		}
	}
	refused(shot, cove.Workspace{Size: 256 * cove.KiB}, "workspace.size_mb")
	refused(shot, cove.Workspace{Files: 20}, "workspace.files")
	refused(second, cove.Workspace{Size: 64 * cove.KiB}, "workspace.size_mb")
	refused(second, cove.Workspace{Files: 20}, "workspace.files")
	made, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: second, Workspace: cove.Workspace{Size: 76 * cove.KiB, Files: 21}})
	must(t, err)
	if got := sh(t, made, "cat 2 20 && rm 2"); got != "2\n20\n" {
		t.Errorf("what fits exactly has %q", got)
	}
	must(t, p.Close())
	p = again() // now they are on the disk alone
	refused(shot, cove.Workspace{Size: 256 * cove.KiB}, "workspace.size_mb")
	refused(shot, cove.Workspace{Files: 20}, "workspace.size_mb")
	keeper, _ := cove.As[cove.SnapshotKeeper](p)
	for _, id := range []cove.ID{shot, second} {
		must(t, keeper.RemoveSnapshot(context.WithoutCancel(t.Context()), id))
	}
}

// shootFor makes a snapshot that the caller removes.
func shootFor(t *testing.T, s cove.Sandbox) cove.ID {
	t.Helper()
	name := cove.NewID()
	snap, _ := cove.As[cove.Snapshotter](s)
	_, err := snap.Snapshot(t.Context(), name)
	must(t, err)
	return name
}
