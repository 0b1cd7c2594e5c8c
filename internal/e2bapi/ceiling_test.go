package e2bapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// TestNetworkCeiling: the setting is the most that a sandbox gets, whatever its client,
// its key and its SDK say.
func TestNetworkCeiling(t *testing.T) {
	const (
		old    = `{"allow_internet_access":true}` // what old SDKs always send
		closed = `{"allow_internet_access":false}`
		listed = `{"allow_internet_access":true,"network":{"allowOut":["pypi.org"],"denyOut":["0.0.0.0/0"]}}`
		all    = `{"network":{"allowOut":["0.0.0.0/0"]}}`
		silent = `{}`
	)
	none, open := cove.Network{Mode: cove.NetworkNone}, cove.Network{Mode: cove.NetworkOpen}
	list := cove.Network{Mode: cove.NetworkAllow, Allow: []string{"pypi.org"}}
	ofKey := cove.Network{Mode: cove.NetworkAllow, Allow: []string{"example.com"}}
	refused := cove.Network{Mode: "refused"}
	for most, c := range map[cove.NetworkMode]struct {
		plain, keyed, keyOpen map[string]cove.Network // by the network of the key
	}{
		cove.NetworkNone: {
			map[string]cove.Network{silent: none, old: none, closed: none, listed: refused, all: refused},
			map[string]cove.Network{silent: none, old: none, listed: refused, all: refused},
			map[string]cove.Network{silent: none, old: none, all: refused},
		},
		cove.NetworkAllow: {
			map[string]cove.Network{silent: none, old: none, closed: none, listed: list, all: refused},
			map[string]cove.Network{silent: ofKey, old: ofKey, closed: none, listed: list, all: refused},
			map[string]cove.Network{silent: none, old: none, all: refused},
		},
		cove.NetworkOpen: {
			map[string]cove.Network{silent: open, old: open, closed: none, listed: list, all: open},
			map[string]cove.Network{silent: ofKey, old: open, closed: none, listed: list, all: open},
			map[string]cove.Network{silent: open, old: open, all: open},
		},
	} {
		for name, k := range map[string]struct {
			key  cove.Network
			want map[string]cove.Network
		}{"plain": {cove.Network{}, c.plain}, "keyed": {ofKey, c.keyed}, "key open": {open, c.keyOpen}} {
			t.Run(string(most)+"/"+name, func(t *testing.T) {
				r := serve(t, func(c *e2bapi.Config) {
					c.Network = most
					platform, auth := c.Platform, c.Authenticate
					c.Platform = func(p cove.Principal) cove.Platform {
						p.Defaults.Network = k.key
						return platform(p)
					}
					c.Authenticate = func(ctx context.Context, key string) (cove.Principal, func(), error) {
						p, done, err := auth(ctx, key)
						p.Defaults.Network = k.key
						return p, done, err
					}
				})
				for body, want := range k.want {
					if want.Mode == refused.Mode {
						r.refuses(http.StatusForbidden, "COVE_E2B_NETWORK is "+string(most), "POST", "/v2/sandboxes", body)
						continue
					}
					id := r.create(body)
					if diff := cmp.Diff(want, r.session(id).Spec.Network); diff != "" {
						t.Errorf("%s: %s", body, diff)
					}
					var info struct{ AllowInternetAccess bool }
					r.wants(http.StatusOK, &info, "GET", "/sandboxes/"+string(id), "")
					if info.AllowInternetAccess != (want.Mode != cove.NetworkNone) {
						t.Errorf("%s: allowInternetAccess is %v", body, info.AllowInternetAccess)
					}
				}
			})
		}
	}
}

// TestNetworkCeilingLater: what is called later gives no sandbox more than the ceiling,
// also none that was opened over another API.
func TestNetworkCeilingLater(t *testing.T) {
	r := serve(t, func(c *e2bapi.Config) { c.Network = cove.NetworkNone })
	id := r.create(`{"allow_internet_access":true}`)
	wide := r.open(cove.Spec{Network: cove.Network{Mode: cove.NetworkOpen}})
	const says = "COVE_E2B_NETWORK is none"
	for _, s := range []cove.ID{id, wide} {
		was := r.session(s).Spec.Network
		at := "/sandboxes/" + string(s)
		for _, body := range []string{`{"allow_internet_access":true}`, `{"allowOut":["0.0.0.0/0"]}`, `{"allowOut":["pypi.org"],"denyOut":["0.0.0.0/0"]}`} {
			r.refuses(http.StatusForbidden, says, "PUT", at+"/network", body)
		}
		r.wants(http.StatusOK, nil, "POST", at+"/connect", `{"timeout":60}`)
		if diff := cmp.Diff(was, r.session(s).Spec.Network); diff != "" {
			t.Error(diff)
		}
	}
	r.wants(http.StatusCreated, nil, "POST", "/sandboxes/"+string(id)+"/fork", `{}`)
	at := "/sandboxes/" + string(wide)
	r.refuses(http.StatusForbidden, says, "POST", at+"/fork", `{}`)
	var made struct{ SnapshotID string }
	r.wants(http.StatusCreated, &made, "POST", at+"/snapshots", `{}`)
	if n := r.session(r.create(`{"templateID":"` + made.SnapshotID + `","allow_internet_access":true}`)).Spec.Network; n.Mode != cove.NetworkNone {
		t.Errorf("a sandbox from a snapshot has %+v", n)
	}
	r.wants(http.StatusNoContent, nil, "POST", at+"/pause", `{}`)
	r.refuses(http.StatusForbidden, says, "POST", at+"/connect", `{"timeout":60}`)
	r.refuses(http.StatusForbidden, says, "POST", at+"/resume", `{"timeout":60}`)
	r.wants(http.StatusNoContent, nil, "PUT", at+"/network", `{}`)
	r.wants(http.StatusCreated, nil, "POST", at+"/resume", `{"timeout":60}`)
	if n := r.session(wide).Spec.Network; n.Mode != cove.NetworkNone {
		t.Errorf("after its network was closed it has %+v", n)
	}
}
