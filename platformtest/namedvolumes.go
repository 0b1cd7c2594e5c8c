package platformtest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func namedVolumeCases() []testCase {
	return []testCase{
		{"create_and_get", namedCreate},
		{"bad_names", namedBadNames},
		{"list", namedList},
		{"most", namedMost},
		{"idempotency", namedIdempotency},
		{"tenants", namedTenants},
		{"shared_files", namedShared},
		{"as_it_is_shown", namedShown},
		{"unknown", namedUnknown},
		{"stop_and_start", namedStop},
		{"fork", namedFork},
		{"delete", namedDelete},
		{"delete_hostile_files", namedHostile},
		{"over_its_limit", namedOver},
		{"restart", namedRestart},
	}
}

// keeping starts a platform whose provider can mount volumes.
func (s *suite) keeping(t *testing.T, o Options) *rig {
	t.Helper()
	r := s.start(t, o)
	if !r.capabilities().Volumes {
		t.Skip("the provider cannot mount volumes")
	}
	return r
}

func (r *rig) volume(p cove.Platform, name string) *cove.SavedVolume {
	r.t.Helper()
	v, err := p.Volumes().Create(r.ctx, cove.VolumeRequest{Name: name})
	r.must(err, "create a volume")
	return v
}

// with is a spec that has a volume at /data.
func with(name string, write bool) cove.Spec {
	return cove.Spec{Volumes: []cove.Volume{{Name: name, Target: "/data", Write: write}}}
}

func namedCreate(t *testing.T, s *suite) {
	r := s.start(t, Options{VolumeSize: 3 * cove.MiB})
	p := r.user("acme")
	made := r.volume(p, "Data_1.x-y")
	if !made.ID.Valid() || made.Tenant != "acme" || made.Name != "Data_1.x-y" || made.Limit != 3*cove.MiB || made.Files <= 0 || made.CreatedAt.IsZero() || made.Pending {
		t.Errorf("the volume is %+v", made)
	}
	for _, ref := range []string{string(made.ID), made.Name} {
		got, err := p.Volumes().Get(r.ctx, ref)
		r.must(err, "get a volume")
		if got.ID != made.ID || got.Name != made.Name || got.Limit != made.Limit || !got.CreatedAt.Equal(made.CreatedAt) {
			t.Errorf("%s gives %+v, want %+v", ref, got, made)
		}
	}
	_, err := p.Volumes().Create(r.ctx, cove.VolumeRequest{Name: made.Name})
	wantCode(t, err, cove.Conflict)
	if cove.RemedyOf(err) == "" {
		t.Error("nothing is said about what to do")
	}
	_, err = p.Volumes().Get(r.ctx, "data_1.x-y")
	wantCode(t, err, cove.NotFound)
}

func namedBadNames(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	for _, name := range []string{"", ".", "..", "-v", "/data", "a/b", "a b", "a:b", "é", "a\x00b", "a\n", strings.Repeat("a", 65), string(cove.NewID())} {
		_, err := p.Volumes().Create(r.ctx, cove.VolumeRequest{Name: name})
		wantField(t, err, cove.Invalid, "name")
	}
	if list := all(r, p.Volumes().List(r.ctx, cove.VolumeFilter{})); len(list) > 0 {
		t.Errorf("refused names left %d volumes", len(list))
	}
}

func namedList(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	var made []cove.ID
	for _, name := range []string{"c", "a", "b"} {
		made = append(made, r.volume(p, name).ID)
	}
	slices.Sort(made)
	list := func(f cove.VolumeFilter) []cove.ID {
		var got []cove.ID
		for _, v := range all(r, p.Volumes().List(r.ctx, f)) {
			got = append(got, v.ID)
		}
		return got
	}
	same(t, "all volumes", list(cove.VolumeFilter{}), made)
	same(t, "a page", list(cove.VolumeFilter{Limit: 2}), made[:2])
	same(t, "the next page", list(cove.VolumeFilter{After: made[1], Limit: 2}), made[2:])
	r.must(p.Volumes().Delete(r.ctx, string(made[0])), "delete by id")
	same(t, "what is left", list(cove.VolumeFilter{}), made[1:])
}

func namedMost(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxVolumes: 2})
	p := r.user("acme")
	r.volume(p, "a")
	r.volume(p, "b")
	_, err := p.Volumes().Create(r.ctx, cove.VolumeRequest{Name: "c"})
	wantReason(t, err, cove.Exhausted, cove.ReasonTenantQuota)
	r.volume(r.user("globex"), "c")
	r.must(p.Volumes().Delete(r.ctx, "a"), "delete")
	r.volume(p, "c")
}

func namedIdempotency(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	req := cove.VolumeRequest{Name: "data", IdempotencyKey: "k"}
	one, err := p.Volumes().Create(r.ctx, req)
	r.must(err, "create")
	two, err := p.Volumes().Create(r.ctx, req)
	r.must(err, "create again")
	same(t, "what the same key gives", two.ID, one.ID)
	_, err = p.Volumes().Create(r.ctx, cove.VolumeRequest{Name: "other", IdempotencyKey: "k"})
	wantReason(t, err, cove.Conflict, cove.ReasonKeyReused)
}

func namedTenants(t *testing.T, s *suite) {
	r := s.keeping(t, Options{})
	mine, theirs := r.user("acme"), r.user("globex")
	made := r.volume(mine, "data")
	for _, ref := range []string{"data", string(made.ID)} {
		_, err := theirs.Volumes().Get(r.ctx, ref)
		wantCode(t, err, cove.NotFound)
		wantCode(t, theirs.Volumes().Delete(r.ctx, ref), cove.NotFound)
	}
	if list := all(r, theirs.Volumes().List(r.ctx, cove.VolumeFilter{Tenant: "acme"})); len(list) > 0 {
		t.Error("a list shows another tenant's volume")
	}
	_, err := theirs.Sessions().Open(r.ctx, cove.OpenRequest{Spec: with("data", false)})
	wantCode(t, err, cove.NotFound)
	id := r.session(mine, with("data", true)).ID
	r.sh(mine, id, "echo mine > /data/f")
	r.volume(theirs, "data")
	other := r.session(theirs, with("data", true)).ID
	same(t, "the files of another tenant's volume of that name", r.sh(theirs, other, "ls /data"), "")
}

// namedShared: what one session writes, others see, and change if they may; the
// files outlive all of them.
func namedShared(t *testing.T, s *suite) {
	r := s.keeping(t, Options{})
	p := r.user("acme")
	r.volume(p, "data")
	one, two := r.session(p, with("data", true)).ID, r.session(p, with("data", true)).ID
	reader := r.session(p, with("data", false)).ID
	r.sh(p, one, "mkdir /data/d && echo one > /data/d/f")
	same(t, "a file that another wrote", r.sh(p, two, "cat /data/d/f"), "one\n")
	r.sh(p, two, "echo two >> /data/d/f && echo new > /data/d/g && rm /data/d/g")
	r.write(p, two, "/data/by-call", "text")
	same(t, "a file that two wrote", r.sh(p, reader, "cat /data/d/f"), "one\ntwo\n")
	same(t, "a file that came from outside", r.read(p, one, "/data/by-call"), "text")
	for _, line := range []string{"echo x > /data/new", "echo x >> /data/d/f", "rm /data/by-call"} {
		if e := r.exec(p, reader, cove.ExecRequest{Line: line}); e.ExitCode == 0 {
			t.Errorf("%q worked for who may only read", line)
		}
	}
	for _, id := range []cove.ID{one, two, reader} {
		r.closeNow(p, id)
	}
	later := r.session(p, with("data", true)).ID
	same(t, "a file after all sessions have ended", r.sh(p, later, "cat /data/d/f"), "one\ntwo\n")
	r.sh(p, later, "rm -r /data/d")
}

// namedShown: nobody is shown where on the host a volume is.
func namedShown(t *testing.T, s *suite) {
	r := s.keeping(t, Options{})
	p := r.user("acme")
	r.volume(p, "data")
	spec := with("data", true)
	spec.User = "u"
	made := r.session(p, spec)
	for _, got := range append(all(r, p.Sessions().List(r.ctx, cove.SessionFilter{})), made, r.get(p, made.ID), r.session(p, spec)) {
		same(t, "the volumes of a session", got.Spec.Volumes, spec.Volumes)
	}
	other := with("data", false)
	other.User = "u"
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: other})
	wantReason(t, err, cove.Conflict, cove.ReasonSpecDiffers)
}

func namedUnknown(t *testing.T, s *suite) {
	r := s.keeping(t, Options{})
	p := r.user("acme")
	_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: with("none", false)})
	wantCode(t, err, cove.NotFound)
	if cove.RemedyOf(err) == "" {
		t.Error("nothing is said about what to do")
	}
	for _, v := range []cove.Volume{{Name: "../x", Target: "/data"}, {Name: "x", Source: "/tmp", Target: "/data"}, {Name: "x", Target: "/etc"}, {Name: "x"}} {
		_, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{Volumes: []cove.Volume{v}}})
		wantField(t, err, cove.Invalid, "volumes")
	}
	if list := all(r, p.Sessions().List(r.ctx, cove.SessionFilter{})); len(list) > 0 {
		t.Errorf("refused volumes left %v", ids(list))
	}
}

func namedStop(t *testing.T, s *suite) {
	r := s.keeping(t, Options{})
	p := r.user("acme")
	r.volume(p, "data")
	id := r.session(p, with("data", true)).ID
	r.sh(p, id, "echo kept > /data/f && echo own > f")
	r.stop(p, id)
	wantCode(t, p.Volumes().Delete(r.ctx, "data"), cove.Conflict)
	other := r.session(p, with("data", true)).ID
	r.sh(p, other, "echo other >> /data/f")
	_, err := p.Sessions().Start(r.ctx, id)
	r.must(err, "start")
	same(t, "the volume after a stop", r.sh(p, id, "cat /data/f f"), "kept\nother\nown\n")
}

func namedFork(t *testing.T, s *suite) {
	r := s.keeping(t, Options{})
	r.needs(cove.PowerFork)
	p := r.user("acme")
	r.volume(p, "data")
	id := r.session(p, with("data", true)).ID
	copied, err := p.Snapshots().Fork(r.ctx, id, cove.ForkRequest{})
	r.must(err, "fork")
	same(t, "the volumes of the copy", copied.Spec.Volumes, with("data", true).Volumes)
	r.sh(p, copied.ID, "echo copy > /data/f")
	same(t, "what the copy wrote", r.sh(p, id, "cat /data/f"), "copy\n")
	r.closeNow(p, id)
	wantCode(t, p.Volumes().Delete(r.ctx, "data"), cove.Conflict)
}

func namedDelete(t *testing.T, s *suite) {
	r := s.keeping(t, Options{})
	p := r.user("acme")
	first := r.volume(p, "data")
	one, two := r.session(p, with("data", true)).ID, r.session(p, with("data", false)).ID
	r.sh(p, one, "echo x > /data/f")
	err := p.Volumes().Delete(r.ctx, "data")
	wantCode(t, err, cove.Conflict)
	if !strings.Contains(cove.MessageOf(err), "2") || cove.RemedyOf(err) == "" {
		t.Errorf("the error is %q", cove.MessageOf(err))
	}
	same(t, "the file after the attempt", r.sh(p, two, "cat /data/f"), "x\n")
	r.closeNow(p, one)
	wantCode(t, p.Volumes().Delete(r.ctx, string(first.ID)), cove.Conflict)
	r.closeNow(p, two)
	r.must(p.Volumes().Delete(r.ctx, "data"), "delete")
	wantCode(t, p.Volumes().Delete(r.ctx, "data"), cove.NotFound)
	_, err = p.Volumes().Get(r.ctx, string(first.ID))
	wantCode(t, err, cove.NotFound)
	_, err = p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: with("data", true)})
	wantCode(t, err, cove.NotFound)
	if second := r.volume(p, "data"); second.ID == first.ID {
		t.Error("a volume has the id of another")
	}
	same(t, "the new volume of that name", r.sh(p, r.session(p, with("data", false)).ID, "ls /data"), "")
}

// namedHostile: what a sandbox leaves in a volume does not keep it from being
// removed, and nothing else goes with it.
func namedHostile(t *testing.T, s *suite) {
	r := s.keeping(t, Options{})
	p := r.user("acme")
	r.volume(p, "data")
	r.volume(p, "other")
	spec := with("data", true)
	spec.Volumes = append(spec.Volumes, cove.Volume{Name: "other", Target: "/other", Write: true})
	id := r.session(p, spec).ID
	r.sh(p, id, "echo kept > /other/f && mkdir -p /data/a/b/c /data/-rf /data/shut/in && echo x > /data/shut/in/f && ln -s /other /data/link && ln -s ../../.. /data/a/up && chmod 0 /data/shut")
	r.closeNow(p, id)
	r.must(p.Volumes().Delete(r.ctx, "data"), "delete")
	left := r.session(p, with("other", false)).ID
	same(t, "the other volume", r.sh(p, left, "cat /data/f"), "kept\n")
}

// namedOver: the bound on a volume is held after the fact. Who can write to it is
// ended, who reads goes on.
func namedOver(t *testing.T, s *suite) {
	r := s.keeping(t, Options{VolumeSize: cove.MiB})
	p := r.user("acme")
	r.volume(p, "data")
	writer, reader := r.session(p, with("data", true)).ID, r.session(p, with("data", false)).ID
	err := p.Files(writer).Write(r.ctx, "/data/big", bytes.NewReader(bytes.Repeat([]byte("much"), 1<<19)), 0o644)
	if cove.ReasonOf(err) != cove.ReasonVolumeOverrun { // it may be ended before it has its answer
		r.must(err, "write to a volume")
	}
	r.eventually("the writer is ended", func() bool {
		_, err = p.Sessions().Get(r.ctx, writer)
		return err != nil
	})
	wantReason(t, err, cove.NotFound, cove.ReasonVolumeOverrun)
	same(t, "the state of the reader", r.get(p, reader).State, cove.Running)
	_, err = p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: with("data", true)})
	wantReason(t, err, cove.Exhausted, cove.ReasonVolumeFull)
	if cove.RemedyOf(err) == "" {
		t.Error("nothing is said about what to do")
	}
	r.session(p, with("data", false))
}

func namedRestart(t *testing.T, s *suite) {
	r := s.keeping(t, Options{})
	p := r.user("acme")
	made := r.volume(p, "data")
	id := r.session(p, with("data", true)).ID
	r.sh(p, id, "echo kept > /data/f")
	r.stop(p, id)
	r.restart()
	p = r.user("acme")
	got, err := p.Volumes().Get(r.ctx, "data")
	r.must(err, "get after a restart")
	same(t, "the volume after a restart", got.ID, made.ID)
	wantCode(t, p.Volumes().Delete(r.ctx, "data"), cove.Conflict)
	_, err = p.Sessions().Start(r.ctx, id)
	r.must(err, "start after a restart")
	same(t, "its file after a restart", r.sh(p, id, "cat /data/f"), "kept\n")
}
