package storetest

import (
	"fmt"
	"testing"

	"github.com/cove-sandbox/cove"
)

var keyCases = []testCase{
	{"RoundTrip", keyRoundTrip},
	{"Replace", keyReplace},
	{"Hash", keyHash},
	{"ID", keyID},
	{"List", keyList},
}

func keyRoundTrip(t *testing.T, s cove.Store) {
	in, want := fullKey("a"), fullKey("a")
	want.Defaults = in.Defaults.Clone()
	ok(t, s.PutKey(t.Context(), in))
	spoil := func(k *cove.Key) {
		k.Hash[0]++
		k.Scopes[0] = cove.ScopeAll
		k.Defaults.Env["A"] = "spoiled"
	}
	spoil(in)
	for range 2 {
		got, err := s.KeyByHash(t.Context(), want.Hash)
		ok(t, err)
		same(t, got, want)
		spoil(got)
		got, err = s.KeyByID(t.Context(), "a")
		ok(t, err)
		same(t, got, want)
		spoil(got)
		for _, listed := range all(t, s.Keys(t.Context())) {
			same(t, listed, want)
			spoil(listed)
		}
	}
}

func keyReplace(t *testing.T, s cove.Store) {
	k := fullKey("a")
	ok(t, s.PutKey(t.Context(), k))
	old := k.Hash
	k.Name, k.Hash = "renamed", cove.HashSecret("new")
	ok(t, s.PutKey(t.Context(), k))
	got, err := s.KeyByHash(t.Context(), k.Hash)
	ok(t, err)
	same(t, got, k)
	_, err = s.KeyByHash(t.Context(), old)
	fails(t, err, cove.NotFound)
	same(t, len(all(t, s.Keys(t.Context()))), 1)
}

func keyHash(t *testing.T, s cove.Store) {
	k := fullKey("a")
	ok(t, s.PutKey(t.Context(), k))
	twin := fullKey("b")
	twin.Hash = k.Hash
	fails(t, s.PutKey(t.Context(), twin), cove.Conflict)
	for _, hash := range [][]byte{nil, {}, k.Hash[:31], cove.HashSecret("other"), append(k.Hash[:32:32], 0)} {
		_, err := s.KeyByHash(t.Context(), hash)
		fails(t, err, cove.NotFound)
	}
	bare := fullKey("c")
	bare.Hash = nil
	fails(t, s.PutKey(t.Context(), bare), cove.Invalid)
	fails(t, s.PutKey(t.Context(), fullKey("")), cove.Invalid)
	bad := fullKey("d")
	bad.CreatedAt = epoch.AddDate(10000, 0, 0)
	fails(t, s.PutKey(t.Context(), bad), cove.Invalid)
	got, err := s.KeyByHash(t.Context(), k.Hash)
	ok(t, err)
	same(t, got.ID, k.ID)
	same(t, len(all(t, s.Keys(t.Context()))), 1)
}

func keyID(t *testing.T, s cove.Store) {
	k := fullKey("a")
	ok(t, s.PutKey(t.Context(), k))
	ok(t, s.PutKey(t.Context(), fullKey("b")))
	k.Name, k.Hash = "renamed", cove.HashSecret("new")
	ok(t, s.PutKey(t.Context(), k))
	got, err := s.KeyByID(t.Context(), "a")
	ok(t, err)
	same(t, got, k)
	for _, id := range []cove.ID{"", "A", "ab", "c", cove.ID(k.Hash), "' OR 1=1 --"} {
		_, err := s.KeyByID(t.Context(), id)
		fails(t, err, cove.NotFound)
	}
}

func keyList(t *testing.T, s cove.Store) {
	const n = 150
	for i := n - 1; i >= 0; i-- {
		ok(t, s.PutKey(t.Context(), fullKey(cove.ID(fmt.Sprintf("k%03d", i)))))
	}
	keys := all(t, s.Keys(t.Context()))
	same(t, len(keys), n)
	for i, k := range keys {
		same(t, k.ID, cove.ID(fmt.Sprintf("k%03d", i)))
	}
}
