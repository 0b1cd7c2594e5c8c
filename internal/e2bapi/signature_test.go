package e2bapi_test

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// What others compute, from E2B's own tests.
func TestSign(t *testing.T) {
	got := e2bapi.Sign("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", 0)
	if want := "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if e2bapi.Sign("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", 1) == got {
		t.Error("the end is not signed")
	}
}

// link is what SDKs make: the query of a link to a file.
func link(path, operation, user, token string, expires int64) url.Values {
	query := url.Values{"path": {path}, "signature": {e2bapi.Sign(path, operation, user, token, expires)}}
	if user != "" {
		query.Set("username", user)
	}
	if expires != 0 {
		query.Set("signature_expiration", strconv.FormatInt(expires, 10))
	}
	return query
}

// follow uses a link as somebody does who has nothing else. host "" is the plain
// address.
func (r *rig) followLink(method, host string, query url.Values, body string) (int, string) {
	r.t.Helper()
	req := must(http.NewRequestWithContext(r.t.Context(), method, r.server.URL+"/files?"+query.Encode(), strings.NewReader(body)))(r.t)
	req.Host = host
	if body != "" {
		req.Header.Set("Content-Type", octets)
	}
	status, answer, _ := r.read(req)
	return status, answer
}

func TestSignedLinks(t *testing.T) {
	r := serve(t, func(c *e2bapi.Config) { c.Domain = "cove.test:8443" })
	id, other := r.open(cove.Spec{}), r.open(cove.Spec{})
	for _, host := range []string{"", "49983-" + string(id) + ".cove.test:8443"} {
		for _, user := range []string{"", "user"} {
			soon := time.Now().Add(time.Hour).Unix()
			for _, expires := range []int64{0, soon} {
				if status, body := r.followLink(http.MethodPost, host, link("a b/ü", "write", user, r.token(id), expires), "text"); status != 200 {
					t.Errorf("%q write: %d %s", host, status, body)
				}
				if status, body := r.followLink(http.MethodGet, host, link("a b/ü", "read", user, r.token(id), expires), ""); status != 200 || body != "text" {
					t.Errorf("%q read: %d %s", host, status, body)
				}
			}
		}
	}
	if r.hasFile(other, "a b/ü") {
		t.Error("another sandbox has the file")
	}
}

func TestSignedLinksRefused(t *testing.T) {
	r := serve(t, func(c *e2bapi.Config) { c.Domain = "cove.test" })
	id, other := r.open(cove.Spec{}), r.open(cove.Spec{})
	r.putFile(id, "f", "x")
	good := func() url.Values { return link("f", "read", "", r.token(id), time.Now().Add(time.Hour).Unix()) }
	with := func(q url.Values, key, value string) url.Values {
		q.Set(key, value)
		return q
	}
	flipped := []byte(good().Get("signature"))
	flipped[10] ^= 1
	for _, host := range []string{"", "49983-" + string(id) + ".cove.test"} {
		for what, q := range map[string]url.Values{
			"one bit":         with(good(), "signature", string(flipped)),
			"none":            with(good(), "signature", ""),
			"another file":    with(good(), "path", "g"),
			"another user":    with(good(), "username", "user"),
			"a later end":     with(good(), "signature_expiration", "99999999999"),
			"an odd end":      with(good(), "signature_expiration", "soon"),
			"no end":          with(link("f", "read", "", r.token(id), 0), "signature_expiration", "0"),
			"for writing":     link("f", "write", "", r.token(id), 0),
			"expired":         link("f", "read", "", r.token(id), time.Now().Unix()),
			"no sandbox here": link("f", "read", "", r.token(cove.NewID()), 0),
		} {
			status, body := r.followLink(http.MethodGet, host, q, "")
			if status == http.StatusTooManyRequests {
				continue // so many in one second are too many
			}
			if status != 401 || !strings.HasPrefix(body, `{"code":401`) || what == "expired" && !strings.Contains(body, "signature is already expired") {
				t.Errorf("%q %s: %d %s", host, what, status, body)
			}
		}
	}
	if status, _ := r.followLink(http.MethodGet, "", url.Values{"path": {"f"}}, ""); status != 401 {
		t.Errorf("no signature: %d", status)
	}
	if status, _ := r.followLink(http.MethodGet, "49983-"+string(other)+".cove.test", good(), ""); status != 401 && status != 429 {
		t.Errorf("at another sandbox: %d", status)
	}
}

// Who tries signatures is stopped before anybody looks at them, for a second; others are
// not.
func TestTrials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := cove.ID("01jd8x8s5m8y3nq6e5k2v7w9ab")
		face := e2bapi.New(e2bapi.Config{
			Secret: []byte("s"),
			Holders: func(context.Context, cove.ID) iter.Seq2[cove.ID, string] {
				return maps.All(map[cove.ID]string{id: "tester"})
			},
			Key: func(context.Context, string) (cove.Principal, func(), error) {
				return cove.Principal{}, nil, cove.Errorf(cove.NotFound, "gone")
			},
		})
		try := func(remote, token string) int {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/files?"+link("f", "read", "", token, 0).Encode(), nil)
			req.RemoteAddr = remote
			w := httptest.NewRecorder()
			face.ServeHTTP(w, req)
			return w.Code
		}
		right := e2bapi.Token([]byte("s"), "access", id, "tester")
		for range 100 {
			if got := try("192.0.2.1:1", right); got != http.StatusBadGateway {
				t.Fatalf("a good one: %d", got)
			}
		}
		for i := range 30 {
			want := http.StatusUnauthorized
			if i >= 20 {
				want = http.StatusTooManyRequests
			}
			if got := try("192.0.2.1:"+strconv.Itoa(i+1), "wrong"); got != want {
				t.Fatalf("trial %d: %d, want %d", i+1, got, want)
			}
		}
		if got := try("192.0.2.1:1", right); got != http.StatusTooManyRequests {
			t.Errorf("a good one of who tries too many: %d", got)
		}
		for i := range 25 {
			got := try("[2001:db8::"+strconv.Itoa(i+1)+"]:1", "wrong")
			if limited := got == http.StatusTooManyRequests; limited != (i >= 20) {
				t.Errorf("trial %d from one network of IPv6: %d", i+1, got)
			}
		}
		for _, remote := range []string{"192.0.2.2:1", "[2001:db8:1::1]:1", "odd"} {
			if got := try(remote, "wrong"); got != http.StatusUnauthorized {
				t.Errorf("from %s: %d", remote, got)
			}
		}
		<-time.After(time.Second)
		if got := try("192.0.2.1:1", right); got != http.StatusBadGateway {
			t.Errorf("a second later: %d", got)
		}
		for i := range 5000 {
			try("10.0."+strconv.Itoa(i/250)+"."+strconv.Itoa(i%250)+":1", "wrong")
		}
		if got := try("10.99.99.99:1", "wrong"); got != http.StatusTooManyRequests {
			t.Errorf("one of too many who try: %d", got)
		}
		<-time.After(time.Second)
		if got := try("10.99.99.99:1", "wrong"); got != http.StatusUnauthorized {
			t.Errorf("the same, a second later: %d", got)
		}
	})
}
