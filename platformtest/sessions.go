package platformtest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func sessionCases() []testCase {
	return []testCase{
		{"open_and_get", openAndGet},
		{"names_of_variables", namesOfVariables},
		{"stop_and_start", stopAndStart},
		{"stop_ends_programs", stopEndsPrograms},
		{"close", closeForgets},
		{"close_and_keep", closeAndKeep},
		{"close_ends_programs", closeEndsPrograms},
		{"renew", renew},
		{"renew_within_lifetime", renewWithinLifetime},
		{"busy", busy},
		{"activity", activity},
		{"usage", usage},
		{"flavors", flavors},
		{"key_defaults", keyDefaults},
		{"churn", churn},
	}
}

func openAndGet(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	spec := cove.Spec{
		Project: "proj", User: "u", Thread: "t", Env: map[string]string{"A": "1"},
		Metadata: map[string]string{"m": "1"}, Ports: []int{8080}, Idle: time.Hour, Lifetime: 3 * time.Hour,
	}
	made := r.session(p, spec)
	if !made.ID.Valid() || made.Tenant != "acme" || made.State != cove.Running || !made.Created || made.Busy {
		t.Errorf("the new session is %+v", made)
	}
	if made.Owner == "" || made.Provider == "" || made.Node == "" || made.Isolation.Boundary == "" {
		t.Errorf("the record has empty fields: %+v", made)
	}
	got := made.Spec
	if got.Template == "" || got.Flavor == "" || got.Network.Mode == "" || got.Workspace.Kind == "" || got.Resources.Memory == 0 || got.Resources.CPUs == 0 {
		t.Errorf("the spec is not filled in: %+v", got)
	}
	spec.Env = nil // of which answers have the names
	if fields := got.Differs(spec); len(fields) > 0 {
		t.Errorf("the session has other %v than were asked for: %+v", fields, got)
	}
	if made.CreatedAt.IsZero() || !made.ExpiresAt.After(made.CreatedAt) || made.ExpiresAt.After(made.CreatedAt.Add(time.Hour+time.Minute)) {
		t.Errorf("created %s, expires %s with a timeout of 1h", made.CreatedAt, made.ExpiresAt)
	}
	again := r.get(p, made.ID)
	if again.Created {
		t.Error("Get says that it created the session")
	}
	again.Created, again.Version, again.LastActivity, again.ExpiresAt = made.Created, made.Version, made.LastActivity, made.ExpiresAt
	same(t, "what Get returns beside what Open returned", again, made)
	_, err := p.Sessions().Get(r.ctx, cove.NewID())
	wantReason(t, err, cove.NotFound, cove.ReasonNoSession)
}

// namesOfVariables looks for the value of a variable in what callers are told: answers
// have its name alone, and programs have both.
func namesOfVariables(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	const secret = "value-of-a-variable"
	spec := cove.Spec{User: "u", Thread: "t", Env: map[string]string{"API_KEY": secret, "A": secret}}
	names := []string{"A", "API_KEY"}
	key := cove.KeyRequest{Scopes: []cove.Scope{cove.ScopeRead}, Defaults: cove.Spec{Env: spec.Env}}
	made, _, err := r.admin().Admin().CreateKey(r.ctx, key)
	r.must(err, "create a key")
	for _, k := range []*cove.Key{made, r.key(made.ID)} {
		if !slices.Equal(k.Defaults.EnvNames, names) || len(k.Defaults.Env) > 0 {
			t.Errorf("the defaults of a key: names %q, values %q", k.Defaults.EnvNames, k.Defaults.Env)
		}
	}
	p := r.user("acme")
	id := r.session(p, spec).ID
	answer := func(call func() (*cove.Session, error)) *cove.Session {
		s, err := call()
		r.must(err, "a session's answer")
		return s
	}
	answers := []*cove.Session{
		r.session(p, spec), // the same one again
		r.get(p, id),
		answer(func() (*cove.Session, error) { return p.Sessions().Renew(r.ctx, id, time.Hour) }),
		answer(func() (*cove.Session, error) { return p.Sessions().Stop(r.ctx, id) }),
		answer(func() (*cove.Session, error) { return p.Sessions().Start(r.ctx, id) }),
	}
	answers = append(answers, all(r, p.Sessions().List(r.ctx, cove.SessionFilter{}))...)
	answers = append(answers, all(r, r.admin().Sessions().List(r.ctx, cove.SessionFilter{}))...)
	for i, s := range answers {
		if s.ID == id && (!slices.Equal(s.Spec.EnvNames, names) || len(s.Spec.Env) > 0) {
			t.Errorf("answer %d: names %q, values %q", i, s.Spec.EnvNames, s.Spec.Env)
		}
	}
	same(t, "what a program has after a stop", r.sh(p, id, `echo "$A $API_KEY"`), secret+" "+secret+"\n")
	_, err = p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: answers[0].Spec})
	wantField(t, err, cove.Invalid, "env_names")
}

func stopAndStart(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{Env: map[string]string{"A": "kept"}}).ID
	r.write(p, id, "dir/file", "text")
	r.stop(p, id)
	if got := r.get(p, id).State; got != cove.Stopped {
		t.Errorf("a stopped session is %s", got)
	}
	_, err := p.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantReason(t, err, cove.Conflict, cove.ReasonSessionStopped)
	_, err = p.Files(id).Stat(r.ctx, "dir/file")
	wantReason(t, err, cove.Conflict, cove.ReasonSessionStopped)
	started, err := p.Sessions().Start(r.ctx, id)
	r.must(err, "start")
	if started.ID != id || started.State != cove.Running {
		t.Errorf("the started session is %s and %s", started.ID, started.State)
	}
	same(t, "the file after stop and start", r.read(p, id, "dir/file"), "text")
	same(t, "the environment after stop and start", r.sh(p, id, "echo $A"), "kept\n")
}

// follow reads a program's output to its end in another goroutine.
func (r *rig) follow(p cove.Platform, id cove.ID, pid cove.PID, offset int64) <-chan answer[[]cove.Chunk] {
	return async(func() ([]cove.Chunk, error) { return collect(p.Processes(id).Connect(r.ctx, pid, offset)) })
}

func stopEndsPrograms(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	done := r.follow(p, id, r.idle(p, id), 0)
	r.stop(p, id)
	receive(r, done, "the end of a program whose session was stopped")
	if r.get(p, id).Busy {
		t.Error("a stopped session is busy")
	}
}

func closeForgets(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	spec := cove.Spec{User: "u", Thread: "t"}
	id := r.session(p, spec).ID
	kept, err := p.Sessions().Close(r.ctx, id, false)
	r.must(err, "close")
	if kept != "" {
		t.Errorf("closing without keep answered with the id %s", kept)
	}
	_, err = p.Sessions().Get(r.ctx, id)
	wantReason(t, err, cove.NotFound, cove.ReasonSessionClosed)
	_, err = p.Processes(id).Exec(r.ctx, cove.ExecRequest{Line: "true"})
	wantReason(t, err, cove.NotFound, cove.ReasonSessionClosed)
	_, err = p.Sessions().Close(r.ctx, id, false)
	wantCode(t, err, cove.NotFound)
	if list := all(r, p.Sessions().List(r.ctx, cove.SessionFilter{})); len(list) > 0 {
		t.Errorf("a closed session is still listed: %v", ids(list))
	}
	if again := r.session(p, spec); !again.Created || again.ID == id {
		t.Errorf("after closing, the same user and thread got %s with created %t", again.ID, again.Created)
	}
}

func closeAndKeep(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.needs(cove.PowerSnapshot)
	p := r.user("acme")
	for _, stopped := range []bool{false, true} {
		id := r.session(p, cove.Spec{}).ID
		r.write(p, id, "kept", "text")
		if stopped {
			r.stop(p, id)
		}
		snapshot, err := p.Sessions().Close(r.ctx, id, true)
		r.must(err, "close and keep")
		_, err = p.Sessions().Get(r.ctx, id)
		wantReason(t, err, cove.NotFound, cove.ReasonSessionClosed)
		list := all(r, p.Snapshots().List(r.ctx, cove.SnapshotFilter{Session: id}))
		if len(list) != 1 || list[0].ID != snapshot {
			t.Fatalf("Close answered %s; the snapshots of the session are %+v", snapshot, list)
		}
		from := r.session(p, cove.Spec{Snapshot: snapshot})
		same(t, "the kept file", r.read(p, from.ID, "kept"), "text")
	}
}

func closeEndsPrograms(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.idle(p, id)
	done := r.follow(p, id, pid, 0)
	wait := async(func() (*cove.Execution, error) { return p.Processes(id).Wait(r.ctx, pid) })
	r.closeNow(p, id)
	receive(r, done, "the end of a program whose session was closed")
	if a := receive(r, wait, "the answer of Wait"); a.err == nil && a.value.Outcome == cove.Exited && a.value.ExitCode == 0 {
		t.Errorf("a program that was ended by Close is told as %+v", a.value.Result)
	}
}

func renew(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	made := r.session(p, cove.Spec{Idle: time.Hour})
	longer, err := p.Sessions().Renew(r.ctx, made.ID, 5*time.Hour)
	r.must(err, "renew")
	if d := longer.ExpiresAt.Sub(made.ExpiresAt); d < 3*time.Hour || d > 5*time.Hour {
		t.Errorf("renewing for 5h moved a deadline of 1h by %s", d)
	}
	own, err := p.Sessions().Renew(r.ctx, made.ID, 0)
	r.must(err, "renew for the session's own timeout")
	if d := own.ExpiresAt.Sub(made.ExpiresAt); d < 0 || d > time.Hour {
		t.Errorf("renewing for the session's own timeout of 1h put the deadline %s after the first", d)
	}
	if got := r.get(p, made.ID).ExpiresAt; !got.Equal(own.ExpiresAt) {
		t.Errorf("Get says that the session expires at %s, Renew said %s", got, own.ExpiresAt)
	}
	_, err = p.Sessions().Renew(r.ctx, made.ID, -time.Second)
	wantCode(t, err, cove.Invalid)
}

func renewWithinLifetime(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	made := r.session(p, cove.Spec{Idle: 30 * time.Minute, Lifetime: time.Hour})
	longer, err := p.Sessions().Renew(r.ctx, made.ID, 5*time.Hour)
	r.must(err, "renew")
	if end := made.CreatedAt.Add(time.Hour); longer.ExpiresAt.After(end) {
		t.Errorf("renewing moved the deadline to %s, past the end of the lifetime at %s", longer.ExpiresAt, end)
	}
}

func busy(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	pid := r.idle(p, id)
	if !r.get(p, id).Busy {
		t.Error("a session in which a program runs is not busy")
	}
	r.must(p.Processes(id).Input(r.ctx, pid, nil, true), "end the input")
	r.wait(p, id, pid)
	r.eventually("a session is idle after its program has ended", func() bool { return !r.get(p, id).Busy })
}

func activity(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	made := r.session(p, cove.Spec{})
	r.sh(p, made.ID, "true")
	after := r.get(p, made.ID)
	if !after.LastActivity.After(made.LastActivity) || !after.ExpiresAt.After(made.ExpiresAt) {
		t.Errorf("running a program left the last activity at %s and the deadline at %s", after.LastActivity, after.ExpiresAt)
	}
	if reread := r.get(p, made.ID); !reread.ExpiresAt.Equal(after.ExpiresAt) {
		t.Error("looking at a session moved its deadline")
	}
}

func usage(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	before, err := p.Sessions().Usage(r.ctx, id)
	r.must(err, "usage")
	r.write(p, id, "big", string(make([]byte, 100<<10)))
	pid := r.idle(p, id)
	after, err := p.Sessions().Usage(r.ctx, id)
	r.must(err, "usage")
	if after.Disk < before.Disk+100*cove.KiB || after.Files <= before.Files || after.PIDs <= before.PIDs {
		t.Errorf("a file of 100 KiB and a program changed the usage from %+v to %+v", before, after)
	}
	r.must(p.Processes(id).Input(r.ctx, pid, nil, true), "end the input")
	r.wait(p, id, pid)
}

func flavors(t *testing.T, s *suite) {
	tiny := cove.Resources{CPUs: 0.5, Memory: 64 * cove.MiB, PIDs: 32}
	r := s.start(t, Options{Flavors: map[string]cove.Resources{"tiny": tiny, "small": {CPUs: 1, Memory: cove.GiB, PIDs: 64}}})
	got := r.session(r.user("acme"), cove.Spec{Flavor: "tiny"}).Spec
	same(t, "the resources of the flavor", got.Resources, tiny)
	if len(got.Floors) > 0 {
		t.Errorf("limits of a flavor count as asked for: %v", got.Floors)
	}
}

func keyDefaults(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.as(cove.Principal{
		Name: "defaults", Tenant: "acme", Scopes: without(cove.ScopeAdmin),
		Defaults: cove.Spec{Flavor: "medium", Project: "of-the-key", Idle: time.Hour},
	})
	got := r.session(p, cove.Spec{Project: "of-the-request"}).Spec
	if got.Flavor != "medium" || got.Idle != time.Hour || got.Project != "of-the-request" {
		t.Errorf("flavor %q, idle %s, project %q; want the key's medium and 1h, and the request's project", got.Flavor, got.Idle, got.Project)
	}
}

// churn opens, uses and closes few keys from many callers at once. Whatever
// they meet, nothing is left and every answer is one that a caller can act on.
func churn(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	p := r.user("acme")
	expected := []cove.Code{"", cove.NotFound, cove.Conflict}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 10 {
				made, err := p.Sessions().Open(r.ctx, cove.OpenRequest{Spec: cove.Spec{User: "u", Thread: string(rune('a' + n%3))}})
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				_, err = p.Processes(made.ID).Exec(r.ctx, cove.ExecRequest{Line: "echo x"})
				if !slices.Contains(expected, cove.CodeOf(err)) {
					t.Errorf("exec: %v", err)
				}
				_, err = p.Sessions().Close(r.ctx, made.ID, false)
				if !slices.Contains(expected, cove.CodeOf(err)) {
					t.Errorf("close: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for _, left := range all(r, p.Sessions().List(r.ctx, cove.SessionFilter{})) {
		r.closeNow(p, left.ID)
	}
	stats, err := r.admin().Admin().Stats(r.ctx)
	r.must(err, "stats")
	if stats.ActiveSessions != 0 || stats.Queued != 0 {
		t.Errorf("after all was closed, %d sessions are active and %d callers wait", stats.ActiveSessions, stats.Queued)
	}
}
