package auth_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/auth"
)

// TestRateAmongNodes: what all nodes let in together is the key's own rate, however
// many there are.
func TestRateAmongNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &keys{}
		var nodes atomic.Int64
		nodes.Store(4)
		var rings []*auth.Keyring
		for range 4 {
			rings = append(rings, auth.NewAmong(store, func() int { return int(nodes.Load()) }))
		}
		secret := store.add(t, func(k *cove.Key) { k.Limits.RatePerSecond = 8 })
		flood := func(rings []*auth.Keyring) (in int) {
			for range 20 {
				for _, r := range rings {
					if _, wait := admitted(t, r, secret); wait == 0 {
						in++
					}
				}
			}
			return in
		}
		for range 3 {
			if in := flood(rings); in != 8 {
				t.Errorf("%d of a second's 8 requests were let in by four nodes", in)
			}
			<-time.After(time.Second)
		}
		flood(rings)
		nodes.Store(1) // three are gone, and their clients come here
		<-time.After(time.Second)
		if in := flood(rings[:1]); in != 8 {
			t.Errorf("%d of 8 were let in by the one that is left", in)
		}
		nodes.Store(100)
		<-time.After(13 * time.Second) // each has a request in twelve and a half
		if in := flood(rings[:1]); in != 1 {
			t.Errorf("%d were let in by one of a hundred", in)
		}
		_, _, err := rings[0].Authenticate(t.Context(), secret)
		if !errors.Is(err, cove.Exhausted) || !strings.Contains(cove.MessageOf(err), "its rate of 8 requests a second; it is divided between 100 nodes") {
			t.Errorf("the refusal: %v", err)
		}
	})
}

func TestConcurrencyAmongNodes(t *testing.T) {
	store := &keys{}
	nodes := 3
	ring := auth.NewAmong(store, func() int { return nodes })
	secret := store.add(t, func(k *cove.Key) { k.Limits.Concurrent = 4 })
	one, _ := admitted(t, ring, secret)
	two, wait := admitted(t, ring, secret)
	if wait != 0 {
		t.Error("a third of four is two, and one was let in")
	}
	if _, wait := admitted(t, ring, secret); wait == 0 {
		t.Error("three were let in")
	}
	nodes = 0 // nobody knows: as if there was none but this one
	three, wait := admitted(t, ring, secret)
	if wait != 0 {
		t.Error("alone it has the whole")
	}
	nodes = 100
	for _, done := range []func(){one, two, three} {
		if _, wait := admitted(t, ring, secret); wait == 0 {
			t.Error("one more was let in than one")
		}
		done()
	}
	if _, wait := admitted(t, ring, secret); wait != 0 {
		t.Error("not even one was let in")
	}
}

// TestKnownIsNotCounted: who is only passed on keeps its whole rate.
func TestKnownIsNotCounted(t *testing.T) {
	store := &keys{}
	ring := auth.New(store)
	secret := store.add(t, func(k *cove.Key) { k.Limits.RatePerSecond, k.Limits.Concurrent = 1, 1 })
	for range 10 {
		if err := ring.Known(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	if err := ring.Known(t.Context(), secret+"x"); !errors.Is(err, cove.Unauthenticated) {
		t.Errorf("a stranger: %v", err)
	}
	if _, wait := admitted(t, ring, secret); wait != 0 {
		t.Error("it was counted")
	}
}
