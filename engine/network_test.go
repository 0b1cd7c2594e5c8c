package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/provider/fake"
)

func allowing(hosts ...string) cove.Network {
	return cove.Network{Mode: cove.NetworkAllow, Allow: hosts}
}

func wantNetwork(t *testing.T, s *cove.Session, err error, want cove.Network) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.Spec.Network); diff != "" {
		t.Errorf("the network (-want +got):\n%s", diff)
	}
}

func reaches(t *testing.T, p cove.Platform, id cove.ID, host string) bool {
	t.Helper()
	return sh(t, p, id, "curl http://"+host+"/ 2> /dev/null") != ""
}

// TestNetworkThatCannotBeSet leaves the old one, in the sandbox and in the record.
func TestNetworkThatCannotBeSet(t *testing.T) {
	w, p, f := faulty(t, "network")
	id := mustOpen(t, p, cove.Spec{Network: allowing("example.com")}).ID
	f.on = true
	if _, err := p.Sessions().SetNetwork(t.Context(), id, allowing("www.example.com")); err == nil {
		t.Fatal("the fault was not injected")
	}
	f.on = false
	s, err := p.Sessions().Get(t.Context(), id)
	wantNetwork(t, s, err, allowing("example.com"))
	s, err = w.store.GetSession(t.Context(), id)
	wantNetwork(t, s, err, allowing("example.com"))
	if !reaches(t, p, id, "example.com") || reaches(t, p, id, "www.example.com") {
		t.Error("the sandbox has another list than the record")
	}
}

// fullStore takes no session any more once it is full.
type fullStore struct {
	cove.Store

	full bool
}

func (s *fullStore) PutSession(ctx context.Context, rec *cove.Session) error {
	if s.full {
		return cove.Errorf(cove.Unavailable, "the disk is full")
	}
	return s.Store.PutSession(ctx, rec)
}

func TestNetworkThatCannotBeRecorded(t *testing.T) {
	w := newWorld(t)
	store := &fullStore{Store: w.store}
	p := w.open(func(c *engine.Config) { c.Store = store }).As(boss)
	id := mustOpen(t, p, cove.Spec{Network: allowing("example.com")}).ID
	store.full = true
	_, err := p.Sessions().SetNetwork(t.Context(), id, allowing("www.example.com"))
	wantCode(t, err, cove.Unavailable, "")
	store.full = false
	s, err := p.Sessions().Get(t.Context(), id)
	wantNetwork(t, s, err, allowing("example.com"))
	if reaches(t, p, id, "www.example.com") {
		t.Error("the sandbox reaches what the record does not say")
	}
	store.full = true
	_, err = try(t, p, id, "echo x > f", cove.ThenKeep)
	wantCode(t, err, cove.Unavailable, "")
	store.full = false
	if err := p.Trials(id).Discard(t.Context()); err != nil {
		t.Errorf("a trial that could not be recorded: %v", err)
	}
}

// TestNetworkIsSetAgainAfterACrash: the record wins over what the sandbox has.
func TestNetworkIsSetAgainAfterACrash(t *testing.T) {
	f := &failing{step: "network"}
	w := newWorld(t, func(c *fake.Config) { c.Hook = f.hook })
	e := w.open()
	id := mustOpen(t, e.As(boss), cove.Spec{Network: allowing("example.com")}).ID
	box, err := w.provider.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	egress, _ := cove.As[cove.Egress](box)
	if err := egress.SetNetwork(t.Context(), cove.Network{Mode: cove.NetworkOpen}); err != nil {
		t.Fatal(err)
	}
	f.on = true
	e = w.again(e)
	_, err = e.As(boss).Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "true"})
	wantCode(t, err, cove.Conflict, cove.ReasonProviderDown)
	f.on = false
	p := w.again(e).As(boss)
	if !reaches(t, p, id, "example.com") || reaches(t, p, id, "www.example.com") {
		t.Error("after a restart the sandbox has another list than the record")
	}
}

// TestFloorOfANetwork: a mode that a caller chooses is a limit like any other.
func TestFloorOfANetwork(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	id := mustOpen(t, p, cove.Spec{Network: cove.Network{Mode: cove.NetworkOpen}}).ID
	s, err := p.Sessions().SetNetwork(t.Context(), id, allowing("example.com"))
	wantNetwork(t, s, err, allowing("example.com"))
	if diff := cmp.Diff([]cove.Limit{cove.LimitNetwork}, s.Spec.Floors); diff != "" {
		t.Errorf("the floors (-want +got):\n%s", diff)
	}
	s, err = p.Sessions().SetNetwork(t.Context(), id, cove.Network{Mode: cove.NetworkOpen})
	wantNetwork(t, s, err, cove.Network{Mode: cove.NetworkOpen})
	if len(s.Spec.Floors) != 0 {
		t.Errorf("the floors are %v", s.Spec.Floors)
	}
}

// TestNetworkWithoutThePower: a provider that cannot let anything out says so.
func TestNetworkWithoutThePower(t *testing.T) {
	w := newWorld(t, func(c *fake.Config) { c.Powers = []cove.Power{cove.PowerAttach} })
	p := w.open().As(boss)
	id := mustOpen(t, p, cove.Spec{}).ID
	_, err := p.Sessions().SetNetwork(t.Context(), id, allowing("example.com"))
	wantCode(t, err, cove.Unsupported, "")
}

// noEgress makes sandboxes that have a way out and no power over it.
type noEgress struct{ *fake.Provider }

func (p noEgress) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	s, err := p.Provider.Create(ctx, id, spec)
	return plainBox{s}, err
}

func TestConnectionsThatNobodyLogs(t *testing.T) {
	w := newWorld(t)
	p := w.open(func(c *engine.Config) { c.Providers = []cove.Provider{noEgress{w.provider}} }).As(boss)
	id := mustOpen(t, p, cove.Spec{Network: allowing("example.com")}).ID
	for _, err := range p.Sessions().Connections(t.Context(), id, 0) {
		wantCode(t, err, cove.Unsupported, "")
	}
	_, err := p.Sessions().SetNetwork(t.Context(), id, allowing("www.example.com"))
	wantCode(t, err, cove.Unsupported, "")
}

// TestNetworkJournal: the change is on the disk before it is made, with its mode
// and without its names.
func TestNetworkJournal(t *testing.T) {
	w := newWorld(t)
	p := w.open().As(boss)
	id := mustOpen(t, p, cove.Spec{Network: allowing("example.com")}).ID
	if _, err := p.Sessions().SetNetwork(t.Context(), id, allowing("www.example.com")); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for ev, err := range w.journal.Events(t.Context(), cove.EventFilter{Kind: string(cove.SessionSetNetwork)}) {
		if err != nil {
			t.Fatal(err)
		}
		lines++
		if data := string(ev.Data); ev.Phase == cove.Intent && (!strings.Contains(data, `"mode":"allow","allow":1,"secrets":0`) || strings.Contains(data, "example")) {
			t.Errorf("the intent says %s", data)
		}
	}
	if lines != 2 {
		t.Errorf("the journal has %d lines", lines)
	}
}
