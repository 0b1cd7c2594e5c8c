package engine_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
)

// stubborn is folders that cannot be made or removed while they are told so.
type stubborn struct {
	cove.Folders

	make, remove atomic.Bool
}

var errStubborn = errors.New("stubborn")

func (f *stubborn) Make(ctx context.Context, id cove.ID) error {
	if f.make.Load() {
		return errStubborn
	}
	return f.Folders.Make(ctx, id)
}

func (f *stubborn) Remove(ctx context.Context, id cove.ID) error {
	if f.remove.Load() {
		return errStubborn
	}
	return f.Folders.Remove(ctx, id)
}

// openStubborn opens an engine whose folders can be made to fail.
func openStubborn(w *world) (cove.Platform, *stubborn) {
	f := &stubborn{}
	e := w.open(func(c *engine.Config) { f.Folders, c.Folders = c.Folders, f })
	return e.As(boss), f
}

func mustVolume(t *testing.T, p cove.Platform, name string) *cove.SavedVolume {
	t.Helper()
	v, err := p.Volumes().Create(t.Context(), cove.VolumeRequest{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func volumeNames(t *testing.T, p cove.Platform) string {
	t.Helper()
	var names []string
	for v, err := range p.Volumes().List(t.Context(), cove.VolumeFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, v.Name)
	}
	return strings.Join(names, " ")
}

// records counts what the store has, also what nobody is shown.
func (w *world) records() (n int) {
	for _, err := range w.store.Volumes(w.t.Context(), cove.VolumeFilter{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		n++
	}
	return n
}

func data(write bool) cove.Spec {
	return cove.Spec{Volumes: []cove.Volume{{Name: "data", Target: "/data", Write: write}}}
}

// TestHalfVolumes: what a crash left half made or half removed is gone after the
// next start, with its files, and nothing else is.
func TestHalfVolumes(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	whole := mustVolume(t, p, "whole")
	half := &cove.SavedVolume{ID: cove.NewID(), Tenant: whole.Tenant, Name: "half", CreatedAt: time.Now(), Pending: true}
	bare := &cove.SavedVolume{ID: cove.NewID(), Tenant: whole.Tenant, Name: "bare", CreatedAt: time.Now(), Pending: true}
	for _, rec := range []*cove.SavedVolume{half, bare} {
		if err := w.store.PutVolume(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(w.dir, "volumes", string(half.ID))
	if err := os.MkdirAll(filepath.Join(folder, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := volumeNames(t, p); got != "whole" {
		t.Errorf("shown are %q", got)
	}
	for _, ref := range []string{"half", string(half.ID)} {
		_, err := p.Volumes().Get(t.Context(), ref)
		wantCode(t, err, cove.NotFound, "")
	}
	next := w.open().As(boss)
	if n := w.records(); n != 1 {
		t.Errorf("after the next start there are %d records", n)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its files are still there: %v", err)
	}
	if got := volumeNames(t, next); got != "whole" {
		t.Errorf("after the next start there are %q", got)
	}
}

// TestVolumeThatCannotBeRemoved: it is gone for everybody, its name is free, and a
// task finishes what was begun.
func TestVolumeThatCannotBeRemoved(t *testing.T) {
	w := newWorld(t)
	p, folders := openStubborn(w)
	first := mustVolume(t, p, "data")
	folders.remove.Store(true)
	err := p.Volumes().Delete(t.Context(), "data")
	if err == nil || cove.RemedyOf(err) == "" {
		t.Errorf("the error is %v", err)
	}
	if got := volumeNames(t, p); got != "" {
		t.Errorf("shown are %q", got)
	}
	if second := mustVolume(t, p, "data"); second.ID == first.ID {
		t.Error("the old volume is there again")
	}
	folders.remove.Store(false)
	if _, err := p.Admin().ControlTask(t.Context(), "orphans", cove.RunTask); err != nil {
		t.Fatal(err)
	}
	if n := w.records(); n != 1 {
		t.Errorf("there are %d records", n)
	}
}

func TestVolumeThatCannotBeMade(t *testing.T) {
	w := newWorld(t)
	p, folders := openStubborn(w)
	folders.make.Store(true)
	if _, err := p.Volumes().Create(t.Context(), cove.VolumeRequest{Name: "data"}); !errors.Is(err, errStubborn) {
		t.Errorf("the error is %v", err)
	}
	if n := w.records(); n != 0 {
		t.Errorf("%d records are left", n)
	}
	folders.make.Store(false)
	mustVolume(t, p, "data")
}

// TestVolumeWithoutFiles: a folder that somebody took away is told as such.
func TestVolumeWithoutFiles(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	v := mustVolume(t, p, "data")
	s := mustOpen(t, p, data(true))
	if _, err := p.Sessions().Stop(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(w.dir, "volumes", string(v.ID))); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Admin().ControlTask(t.Context(), "volumes", cove.RunTask); err != nil {
		t.Error(err)
	}
	_, err := p.Sessions().Start(t.Context(), s.ID)
	wantCode(t, err, cove.Unavailable, "")
	_, err = p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: data(false)})
	wantCode(t, err, cove.Unavailable, "")
	if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
		t.Fatal(err)
	}
	if err := p.Volumes().Delete(t.Context(), "data"); err != nil {
		t.Error(err)
	}
}

// TestNoPlaceForVolumes: where nothing is kept, they are refused in so many words.
func TestNoPlaceForVolumes(t *testing.T) {
	p := openEngine(t, func(c *engine.Config) { c.Folders = nil }).As(boss)
	_, err := p.Volumes().Create(t.Context(), cove.VolumeRequest{Name: "data"})
	wantCode(t, err, cove.Unsupported, "")
	_, err = p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: data(false)})
	wantCode(t, err, cove.Unsupported, "")
	if cove.RemedyOf(err) == "" {
		t.Error("nothing is said about what to do")
	}
	wantCode(t, p.Volumes().Delete(t.Context(), "data"), cove.Unsupported, "")
}

// mountless is a provider without volumes, and one that says what it was asked for.
type mountless struct {
	cove.Provider

	can bool
}

func (p *mountless) Probe(ctx context.Context) (cove.Capabilities, error) {
	caps, err := p.Provider.Probe(ctx)
	caps.Volumes = p.can
	return caps, err
}

func (*mountless) Create(_ context.Context, _ cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	return nil, cove.InvalidField("volumes", "%q cannot be mounted", spec.Volumes[0].Source)
}

func TestProviderWithoutVolumes(t *testing.T) {
	for _, can := range []bool{false, true} {
		w := newWorld(t)
		p := w.open(func(c *engine.Config) { c.Providers = []cove.Provider{&mountless{c.Providers[0], can}} }).As(boss)
		mustVolume(t, p, "data")
		_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: data(false)})
		if !can {
			wantCode(t, err, cove.Unsupported, "")
			continue
		}
		wantCode(t, err, cove.Invalid, "")
		if text := cove.MessageOf(err); strings.Contains(text, w.dir) || !strings.Contains(text, `"data"`) {
			t.Errorf("the caller is told %q", text)
		}
	}
}

// TestSourceInVolumes: a path into the folders of volumes is as private as ever.
func TestSourceInVolumes(t *testing.T) {
	w := newWorld(t)
	p := w.open(func(c *engine.Config) { c.Volumes, c.Private = []string{w.dir + ":rw"}, []string{w.dir} }).As(boss)
	v := mustVolume(t, p, "data")
	_, err := p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{Volumes: []cove.Volume{
		{Source: filepath.Join(w.dir, "volumes", string(v.ID)), Target: "/data"},
	}}})
	wantCode(t, err, cove.Invalid, "")
	mustOpen(t, p, data(true))
}

// TestDeleteWhileOpening: a volume that a session got is there for as long as the
// session is, whoever tries to remove it meanwhile.
func TestDeleteWhileOpening(t *testing.T) {
	p := openEngine(t).As(boss)
	for range 20 {
		mustVolume(t, p, "data")
		var opened, deleted error
		var s *cove.Session
		var wg sync.WaitGroup
		wg.Go(func() { s, opened = p.Sessions().Open(t.Context(), cove.OpenRequest{Spec: data(true)}) })
		wg.Go(func() { deleted = p.Volumes().Delete(t.Context(), "data") })
		wg.Wait()
		switch {
		case opened == nil:
			wantCode(t, deleted, cove.Conflict, "")
			if got := sh(t, p, s.ID, "echo x > /data/f; cat /data/f"); got != "x\n" {
				t.Errorf("the volume gives %q", got)
			}
			if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
				t.Fatal(err)
			}
		default:
			wantCode(t, opened, cove.NotFound, "")
		}
		if deleted != nil {
			if err := p.Volumes().Delete(t.Context(), "data"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOverrunIsNoted: the journal says which sessions a full volume ended.
func TestOverrunIsNoted(t *testing.T) {
	p := openEngine(t, func(c *engine.Config) { c.VolumeFiles = 3 }).As(boss)
	mustVolume(t, p, "data")
	s := mustOpen(t, p, data(true))
	_, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "mkdir /data/a /data/b /data/c /data/d"})
	if err != nil && cove.CodeOf(err) != cove.NotFound { // it may be ended before it has its answer
		t.Fatal(err)
	}
	noted := func() bool {
		for ev, err := range p.Admin().Events(t.Context(), cove.EventFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Kind == "session.overrun" && ev.Session == s.ID {
				return true
			}
		}
		return false
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !noted() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the journal does not say so")
		}
	}
	_, err = p.Sessions().Get(t.Context(), s.ID)
	wantCode(t, err, cove.NotFound, cove.ReasonVolumeOverrun)
}
