package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

var messageCases = []testCase{
	{"RoundTrip", messageRoundTrip},
	{"Filter", messageFilter},
	{"Delete", messageDelete},
	{"Trim", messageTrim},
	{"Text", messageText},
}

func messageRoundTrip(t *testing.T, s cove.Store) {
	in, want := fullMessage("a"), fullMessage("a")
	ok(t, s.PutMessage(t.Context(), in))
	spoil := func(m *cove.Message) { m.Runs[0], m.Error.Type, m.Text = "spoiled", "spoiled", "spoiled" }
	spoil(in)
	for range 2 {
		got := all(t, s.Messages(t.Context(), cove.MessageFilter{}))
		same(t, got, []*cove.Message{want})
		spoil(got[0])
	}
	want.Text, want.Thread, want.Owner, want.Tenant = "after", "t-2", "key-2", "globex"
	ok(t, s.PutMessage(t.Context(), want))
	same(t, all(t, s.Messages(t.Context(), cove.MessageFilter{Tenant: "globex", Owner: "key-2", Thread: "t-2"})), []*cove.Message{want})
	same(t, len(all(t, s.Messages(t.Context(), cove.MessageFilter{Thread: "t-1"}))), 0)
	fails(t, s.PutMessage(t.Context(), fullMessage("")), cove.Invalid)
	bad := fullMessage("b")
	bad.CreatedAt = epoch.AddDate(10000, 0, 0)
	fails(t, s.PutMessage(t.Context(), bad), cove.Invalid)
	same(t, len(all(t, s.Messages(t.Context(), cove.MessageFilter{}))), 1)
}

// someMessages puts messages whose ids say nothing about whose they are.
func someMessages(t *testing.T, s cove.Store) {
	t.Helper()
	for i, m := range []cove.Message{
		{ID: "a", Tenant: "acme", Owner: "ann", Thread: "t"},
		{ID: "d", Tenant: "acme", Owner: "ann", Thread: "t"},
		{ID: "b", Tenant: "acme", Owner: "bob", Thread: "t"},
		{ID: "e", Tenant: "acme", Owner: "ann", Thread: "T"},
		{ID: "c", Tenant: "globex", Owner: "ann", Thread: "t"},
		{ID: "f", Tenant: "acme", Owner: "ann", Thread: "t "},
	} {
		m.CreatedAt = epoch.Add(time.Duration(i))
		ok(t, s.PutMessage(t.Context(), &m))
	}
}

func messageIDs(t *testing.T, s cove.Store, f cove.MessageFilter) string {
	t.Helper()
	var ids []byte
	for _, m := range all(t, s.Messages(t.Context(), f)) {
		ids = append(ids, m.ID...)
	}
	return string(ids)
}

func messageFilter(t *testing.T, s cove.Store) {
	someMessages(t, s)
	for _, c := range []struct {
		f    cove.MessageFilter
		want string
	}{
		{cove.MessageFilter{}, "abcdef"},
		{cove.MessageFilter{Tenant: "acme"}, "abdef"},
		{cove.MessageFilter{Owner: "ann"}, "acdef"},
		{cove.MessageFilter{Thread: "t"}, "abcd"},
		{cove.MessageFilter{Tenant: "acme", Owner: "ann", Thread: "t"}, "ad"},
		{cove.MessageFilter{Tenant: "acme", Owner: "ann", Thread: "t", After: "a"}, "d"},
		{cove.MessageFilter{Tenant: "acme", Owner: "ann", Thread: "t", After: "d"}, ""},
		{cove.MessageFilter{Tenant: "acme", Owner: "ann", Thread: "t", Limit: 1}, "a"},
		{cove.MessageFilter{After: "aa", Limit: 2}, "bc"},
		{cove.MessageFilter{Tenant: "acme", Owner: "ANN", Thread: "t"}, ""},
		{cove.MessageFilter{Thread: "%"}, ""},
	} {
		if got := messageIDs(t, s, c.f); got != c.want {
			t.Errorf("%+v gave %q, want %q", c.f, got, c.want)
		}
	}
	for i := range 250 {
		ok(t, s.PutMessage(t.Context(), &cove.Message{ID: cove.ID(fmt.Sprintf("m%03d", 249-i)), Tenant: "acme", Owner: "ann", Thread: "long", CreatedAt: epoch}))
	}
	last, n := cove.ID(""), 0
	for _, m := range all(t, s.Messages(t.Context(), cove.MessageFilter{Tenant: "acme", Owner: "ann", Thread: "long"})) {
		if m.ID <= last {
			t.Fatalf("%s came after %s", m.ID, last)
		}
		last = m.ID
		n++
	}
	same(t, n, 250)
}

// messageDelete forgets one thread of one owner, and nothing that has one of its names.
func messageDelete(t *testing.T, s cove.Store) {
	someMessages(t, s)
	for range 2 {
		ok(t, s.DeleteMessages(t.Context(), "acme", "ann", "t"))
		same(t, messageIDs(t, s, cove.MessageFilter{}), "bcef")
	}
	ok(t, s.DeleteMessages(t.Context(), "", "", ""))
	ok(t, s.DeleteMessages(t.Context(), "acme", "", "t"))
	same(t, messageIDs(t, s, cove.MessageFilter{}), "bcef")
}

func messageTrim(t *testing.T, s cove.Store) {
	someMessages(t, s) // in the order a d b e c f
	for _, c := range []struct {
		before time.Time
		n      int64
		left   string
	}{
		{epoch, 0, "abcdef"},
		{epoch.Add(2).UTC(), 2, "bcef"},
		{epoch.Add(2), 0, "bcef"},
		{epoch.Add(4), 2, "cf"},
		{epoch.Add(time.Hour), 2, ""},
	} {
		n, err := s.TrimMessages(t.Context(), c.before)
		ok(t, err)
		same(t, n, c.n)
		same(t, messageIDs(t, s, cove.MessageFilter{}), c.left)
	}
}

// messageText keeps what people and models write, which can be anything.
func messageText(t *testing.T, s cove.Store) {
	m := fullMessage("a")
	m.Text, m.Query = "a\xff\x00\x1b[0m<&>\u2028☃", "'; DROP TABLE message; --"
	ok(t, s.PutMessage(t.Context(), m))
	got := all(t, s.Messages(t.Context(), cove.MessageFilter{}))
	same(t, got[0].Text, "a\ufffd\x00\x1b[0m<&>\u2028☃")
	same(t, got[0].Query, m.Query)
}
