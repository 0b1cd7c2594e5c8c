package auth_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/auth"
)

// keys is a store of keys in memory.
type keys struct {
	mu   sync.Mutex
	list map[string]*cove.Key // by hash; guarded by mu
	fail error
}

func (k *keys) PutKey(_ context.Context, key *cove.Key) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list == nil {
		k.list = map[string]*cove.Key{}
	}
	k.list[string(key.Hash)] = key
	return k.fail
}

func (k *keys) KeyByHash(_ context.Context, hash []byte) (*cove.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return nil, k.fail
	}
	if key, ok := k.list[string(hash)]; ok {
		return key, nil
	}
	return nil, cove.Errorf(cove.NotFound, "no such key")
}

func (k *keys) KeyByID(_ context.Context, id cove.ID) (*cove.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range k.list {
		if key.ID == id {
			return key, nil
		}
	}
	return nil, cove.Errorf(cove.NotFound, "no such key")
}

func (k *keys) Keys(context.Context) iter.Seq2[*cove.Key, error] {
	return func(yield func(*cove.Key, error) bool) {
		for _, key := range k.list {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// add puts a key in and returns its secret.
func (k *keys) add(t *testing.T, change func(*cove.Key)) string {
	t.Helper()
	secret := cove.NewSecret()
	key := &cove.Key{ID: cove.NewID(), Tenant: "acme", Hash: cove.HashSecret(secret), Scopes: []cove.Scope{cove.ScopeRead}}
	if change != nil {
		change(key)
	}
	if err := k.PutKey(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestPrincipal(t *testing.T) {
	store := &keys{}
	var want cove.Principal
	secret := store.add(t, func(k *cove.Key) {
		k.Limits, k.Defaults, k.ExpiresAt = cove.KeyLimit{Sessions: 3}, cove.Spec{Flavor: "small"}, time.Now().Add(time.Hour)
		want = cove.Principal{Name: string(k.ID), Label: k.Name, Tenant: "acme", Scopes: k.Scopes, Limits: k.Limits, Defaults: k.Defaults, ExpiresAt: k.ExpiresAt}
	})
	got, done, err := auth.New(store).Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	done()
	done()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestUnknown: all that opens nothing gets the same answer.
func TestUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &keys{}
		ring := auth.New(store)
		expiring := store.add(t, func(k *cove.Key) { k.ExpiresAt = time.Now().Add(time.Hour) })
		secrets := map[string]string{
			"none":    "",
			"unknown": cove.NewSecret(),
			"huge":    strings.Repeat("x", 1<<20),
			"revoked": store.add(t, func(k *cove.Key) { k.RevokedAt = time.Now() }),
			"other":   store.add(t, func(k *cove.Key) { k.Hash = append([]byte(nil), k.Hash...); k.Hash[0] ^= 1 }),
		}
		// The store finds a key whose hash is another.
		lying := cove.NewSecret()
		store.list[string(cove.HashSecret(lying))] = &cove.Key{Hash: []byte("other")}
		secrets["lying store"] = lying
		if _, _, err := ring.Authenticate(t.Context(), expiring); err != nil {
			t.Errorf("a key before its end: %v", err)
		}
		<-time.After(time.Hour)
		secrets["expired"] = expiring
		var texts []string
		for name, secret := range secrets {
			p, done, err := ring.Authenticate(t.Context(), secret)
			if !errors.Is(err, cove.Unauthenticated) || p.Name != "" {
				t.Errorf("%s: %+v %v", name, p, err)
			}
			done()
			texts = append(texts, err.Error()+cove.RemedyOf(err))
			if secret != "" && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the answer holds the secret", name)
			}
		}
		for _, text := range texts {
			if text != texts[0] {
				t.Errorf("%q and %q tell the cases apart", text, texts[0])
			}
		}
	})
}

func TestRevocationCountsAtOnce(t *testing.T) {
	store := &keys{}
	ring := auth.New(store)
	var key *cove.Key
	secret := store.add(t, func(k *cove.Key) { key = k })
	if _, _, err := ring.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	key.RevokedAt = time.Now()
	if _, _, err := ring.Authenticate(t.Context(), secret); !errors.Is(err, cove.Unauthenticated) {
		t.Errorf("%v", err)
	}
}

func TestStoreThatFails(t *testing.T) {
	store := &keys{}
	secret := store.add(t, nil)
	store.fail = cove.Errorf(cove.Unavailable, "the disk is gone")
	_, done, err := auth.New(store).Authenticate(t.Context(), secret)
	if !errors.Is(err, cove.Unavailable) || done == nil {
		t.Errorf("%v", err)
	}
}

// admitted tries to authenticate and returns the seconds to wait, or 0.
func admitted(t *testing.T, ring *auth.Keyring, secret string) (done func(), wait int) {
	t.Helper()
	_, done, err := ring.Authenticate(t.Context(), secret)
	if err == nil {
		return done, 0
	}
	e, ok := errors.AsType[*cove.Error](err)
	if !ok || e.Code != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonRateLimited {
		t.Fatalf("%v", err)
	}
	wait, _ = e.Details["retry_after"].(int)
	if wait < 1 || cove.RemedyOf(err) == "" {
		t.Fatalf("it does not say how long to wait: %+v", e)
	}
	return done, wait
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &keys{}
		ring := auth.New(store)
		limit := func(rate float64) func(*cove.Key) {
			return func(k *cove.Key) { k.Limits.RatePerSecond = rate }
		}
		fast, slow := store.add(t, limit(5)), store.add(t, limit(0.1))
		for range 5 {
			if _, wait := admitted(t, ring, fast); wait != 0 {
				t.Fatal("a burst of one second's requests is refused")
			}
		}
		if _, wait := admitted(t, ring, fast); wait != 1 {
			t.Errorf("the sixth waits %d s", wait)
		}
		<-time.After(200 * time.Millisecond)
		if _, wait := admitted(t, ring, fast); wait != 0 {
			t.Error("after a fifth of a second there is no room for one more")
		}
		if _, wait := admitted(t, ring, fast); wait == 0 {
			t.Error("there is room for two")
		}
		if _, wait := admitted(t, ring, slow); wait != 0 {
			t.Error("one key's requests count for another")
		}
		if _, wait := admitted(t, ring, slow); wait != 10 {
			t.Errorf("a key with one request in ten seconds waits %d s", wait)
		}
		<-time.After(time.Hour)
		for n := range 6 {
			if _, wait := admitted(t, ring, fast); (wait == 0) != (n < 5) {
				t.Errorf("request %d after an hour of silence waits %d s", n, wait)
			}
		}
	})
}

func TestConcurrency(t *testing.T) {
	store := &keys{}
	ring := auth.New(store)
	var key *cove.Key
	secret := store.add(t, func(k *cove.Key) { k.Limits.Concurrent, key = 2, k })
	one, _ := admitted(t, ring, secret)
	two, _ := admitted(t, ring, secret)
	if _, wait := admitted(t, ring, secret); wait == 0 {
		t.Error("a third request is let in")
	}
	one()
	one()
	three, wait := admitted(t, ring, secret)
	if wait != 0 {
		t.Error("a request that is over still counts")
	}
	if _, wait := admitted(t, ring, secret); wait == 0 {
		t.Error("done counts twice")
	}
	two()
	three()
	key.Limits.RatePerSecond = 1 // given to a key that had none
	if _, wait := admitted(t, ring, secret); wait != 0 {
		t.Error("a new rate starts empty")
	}
}

// TestManyKeys: what is known of keys that are idle is forgotten, and nothing
// else.
func TestManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &keys{}
		ring := auth.New(store)
		busy := store.add(t, func(k *cove.Key) { k.Limits.Concurrent = 1 })
		done, _ := admitted(t, ring, busy)
		for n := range 3000 {
			secret := store.add(t, func(k *cove.Key) {
				k.ID, k.Limits.RatePerSecond = cove.ID(strconv.Itoa(n)), 1
			})
			over, _ := admitted(t, ring, secret)
			over()
			<-time.After(time.Second)
		}
		if n := ring.Meters(); n > 1100 {
			t.Errorf("%d meters are kept", n)
		}
		if _, wait := admitted(t, ring, busy); wait == 0 {
			t.Error("a key that was busy is forgotten")
		}
		done()
	})
}

func TestFromRequest(t *testing.T) {
	for want, headers := range map[string][]http.Header{
		"s3cret": {
			{"Authorization": {"Bearer s3cret"}}, {"Authorization": {"bearer   s3cret"}}, {"X-Api-Key": {"s3cret"}},
		},
		"": {
			{},
			{"Authorization": {"Basic s3cret"}},
			{"Authorization": {"s3cret"}},
			{"Authorization": {"Bearer"}},
			{"Authorization": {""}},
			{"Authorization": {"Bearer s3cret", "Bearer s3cret"}},
			{"X-Api-Key": {"a", "b"}},
			{"Authorization": {"Bearer s3cret"}, "X-Api-Key": {"s3cret"}},
		},
	} {
		for _, h := range headers {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Header = h
			if got := auth.FromRequest(r); got != want {
				t.Errorf("%v shows %q, want %q", h, got, want)
			}
		}
	}
}

// TestNamespace: a key that is bound to a namespace opens nothing for who does
// not look at its bound.
func TestNamespace(t *testing.T) {
	store := &keys{}
	ring := auth.New(store)
	for namespace, want := range map[string]cove.Code{"": "", cove.AllNamespaces: "", "team1": cove.Denied} {
		key := &cove.Key{ID: cove.NewID(), Tenant: "acme", Limits: cove.KeyLimit{Namespace: namespace}, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}
		secret := cove.NewSecretFor(cove.KeyMicrosandbox, key)
		key.Hash = cove.HashSecret(secret)
		if err := store.PutKey(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		_, done, err := ring.Authenticate(t.Context(), secret)
		done()
		if got := cove.CodeOf(err); got != want {
			t.Errorf("namespace %q: %q, %v; want %q", namespace, got, err, want)
		}
		who, done, err := ring.AuthenticateNamespaced(t.Context(), secret)
		done()
		if err != nil || who.Limits.Namespace != namespace {
			t.Errorf("namespace %q, for who looks at it: %+v, %v", namespace, who, err)
		}
		changed := []byte(secret)
		changed[len(changed)-2] ^= 1
		_, done, err = ring.AuthenticateNamespaced(t.Context(), string(changed))
		done()
		if cove.CodeOf(err) != cove.Unauthenticated {
			t.Errorf("a token changed by one bit: %v", err)
		}
	}
}
