package storetest

import (
	"testing"

	"github.com/cove-sandbox/cove"
)

var sessionCases = []testCase{
	{"RoundTrip", sessionRoundTrip},
	{"Copies", sessionCopies},
	{"Insert", sessionInsert},
	{"Replace", sessionReplace},
	{"Delete", sessionDelete},
	{"LiveKey", sessionLiveKey},
	{"LiveKeyMoves", sessionLiveKeyMoves},
	{"NoKey", sessionNoKey},
	{"Refused", sessionRefused},
}

func sessionRoundTrip(t *testing.T, s cove.Store) {
	want := fullSession(cove.NewID())
	want.Busy, want.Created = true, true // about a moment: not kept
	ok(t, s.PutSession(t.Context(), want))
	want.Busy, want.Created = false, false
	got, err := s.GetSession(t.Context(), want.ID)
	ok(t, err)
	same(t, got, want)
	same(t, all(t, s.Sessions(t.Context(), cove.SessionFilter{})), []*cove.Session{want})
	_, err = s.GetSession(t.Context(), cove.NewID())
	fails(t, err, cove.NotFound)
	_, err = s.GetSession(t.Context(), "")
	fails(t, err, cove.NotFound)
}

func sessionCopies(t *testing.T, s cove.Store) {
	in, want := fullSession("a"), fullSession("a")
	want.Spec = in.Spec.Clone()
	want.Version = 1
	ok(t, s.PutSession(t.Context(), in))
	spoil := func(rec *cove.Session) {
		rec.Tenant, rec.State = "other", cove.Ended
		rec.Spec.Env["A"], rec.Spec.Metadata["team"] = "spoiled", "spoiled"
		rec.Spec.Network.Allow[0], rec.Spec.Volumes[0].Source = "spoiled", "/spoiled"
		rec.Spec.Ports[0], rec.Spec.Floors[0] = 1, cove.LimitCPU
	}
	spoil(in)
	for range 2 {
		got, err := s.GetSession(t.Context(), "a")
		ok(t, err)
		same(t, got, want)
		spoil(got)
		for listed, err := range s.Sessions(t.Context(), cove.SessionFilter{}) {
			ok(t, err)
			same(t, listed, want)
			spoil(listed)
		}
	}
}

func sessionInsert(t *testing.T, s cove.Store) {
	rec := session("a")
	ok(t, s.PutSession(t.Context(), rec))
	if rec.Version == 0 {
		t.Fatal("an inserted record has version 0")
	}
	again := session("a", inState(cove.Paused))
	fails(t, s.PutSession(t.Context(), again), cove.Conflict)
	same(t, again.Version, int64(0))
	never := session("b")
	never.Version = 3
	fails(t, s.PutSession(t.Context(), never), cove.Conflict)
	same(t, ids(all(t, s.Sessions(t.Context(), cove.SessionFilter{}))), []cove.ID{"a"})
	got, err := s.GetSession(t.Context(), "a")
	ok(t, err)
	same(t, got.State, cove.Running)
}

func sessionReplace(t *testing.T, s cove.Store) {
	rec := session("a")
	ok(t, s.PutSession(t.Context(), rec))
	stale := *rec
	rec.State = cove.Paused
	ok(t, s.PutSession(t.Context(), rec))
	if rec.Version == stale.Version {
		t.Fatal("a replaced record has the version of the old one")
	}
	old := stale.Version
	stale.State = cove.Ended
	fails(t, s.PutSession(t.Context(), &stale), cove.Conflict)
	same(t, stale.Version, old)
	for _, v := range []int64{-1, rec.Version + 1} {
		wrong := *rec
		wrong.Version = v
		fails(t, s.PutSession(t.Context(), &wrong), cove.Conflict)
	}
	got, err := s.GetSession(t.Context(), "a")
	ok(t, err)
	same(t, got, rec)
}

func sessionDelete(t *testing.T, s cove.Store) {
	rec := session("a", held("ann", "1"))
	ok(t, s.PutSession(t.Context(), rec))
	for range 2 {
		ok(t, s.DeleteSession(t.Context(), "a"))
	}
	_, err := s.GetSession(t.Context(), "a")
	fails(t, err, cove.NotFound)
	fails(t, s.PutSession(t.Context(), rec), cove.Conflict)
	ok(t, s.PutSession(t.Context(), session("b", held("ann", "1"))))
}

func sessionLiveKey(t *testing.T, s cove.Store) {
	holder := session("a", held("ann", "1"), inState(cove.Creating))
	ok(t, s.PutSession(t.Context(), holder))
	rival := func(state cove.State) error {
		return s.PutSession(t.Context(), session(cove.NewID(), held("ann", "1"), inState(state)))
	}
	for _, state := range cove.States() {
		if state.Live() {
			holder.State = state
			ok(t, s.PutSession(t.Context(), holder)) // keeps its own key
			fails(t, rival(cove.Creating), cove.Conflict)
		}
	}
	ok(t, rival(cove.Ended)) // holds nothing, so that there is no rivalry
	ok(t, rival(cove.Failed))
	for _, other := range []*cove.Session{
		session("b", held("ann", "2")),
		session("c", held("bob", "1")),
		session("d", held("ann", "")),
		session("e", held("", "1")),
		session("f", held("ann", "1"), func(s *cove.Session) { s.Tenant = "globex" }),
		session("g", held("an", "n1")),
		session("h", held("Ann", "1")),
	} {
		ok(t, s.PutSession(t.Context(), other))
	}
	fails(t, s.PutSession(t.Context(), session("i", held("ann", ""))), cove.Conflict)
	fails(t, s.PutSession(t.Context(), session("j", held("", "1"))), cove.Conflict)
}

// sessionLiveKeyMoves follows a key from one session to the next.
func sessionLiveKeyMoves(t *testing.T, s cove.Store) {
	var past []*cove.Session
	for i, state := range []cove.State{cove.Ended, cove.Failed, cove.Ended} {
		rec := session(cove.NewID(), held("ann", "1"))
		ok(t, s.PutSession(t.Context(), rec))
		rec.State = state
		ok(t, s.PutSession(t.Context(), rec))
		past = append(past, rec)
		same(t, len(past), i+1)
	}
	now := session("now", held("ann", "1"))
	ok(t, s.PutSession(t.Context(), now))
	back := *past[1]
	back.State = cove.Running
	fails(t, s.PutSession(t.Context(), &back), cove.Conflict)
	same(t, back.Version, past[1].Version)

	now.Spec.Thread = "2" // gives up the old key and takes another
	ok(t, s.PutSession(t.Context(), now))
	ok(t, s.PutSession(t.Context(), &back))
	fails(t, s.PutSession(t.Context(), session("x", held("ann", "2"))), cove.Conflict)
	now.Spec.Thread = "1"
	fails(t, s.PutSession(t.Context(), now), cove.Conflict)
}

func sessionNoKey(t *testing.T, s cove.Store) {
	for _, id := range []cove.ID{"a", "b", "c"} {
		ok(t, s.PutSession(t.Context(), session(id)))
	}
	same(t, len(all(t, s.Sessions(t.Context(), cove.SessionFilter{}))), 3)
}

// sessionRefused shows that what is refused leaves nothing behind.
func sessionRefused(t *testing.T, s cove.Store) {
	bad := session("a")
	bad.CreatedAt = epoch.AddDate(10000, 0, 0)
	fails(t, s.PutSession(t.Context(), bad), cove.Invalid)
	fails(t, s.PutSession(t.Context(), session("")), cove.Invalid)
	same(t, bad.Version, int64(0))
	same(t, len(all(t, s.Sessions(t.Context(), cove.SessionFilter{}))), 0)
}
