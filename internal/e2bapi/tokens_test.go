package e2bapi_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// tokensIn are the tokens of sandboxes in an answer of the control API.
func (r *rig) tokensIn(key, method, path, body string) (access, traffic string) {
	r.t.Helper()
	status, text, _ := r.read(r.ask(method, path, body, "X-Api-Key", key))
	if status >= http.StatusMultipleChoices {
		return "", ""
	}
	var a struct{ EnvdAccessToken, TrafficAccessToken string }
	if err := json.Unmarshal([]byte(text), &a); err != nil && !strings.HasPrefix(text, "[") {
		r.t.Fatalf("%s %s: %s: %v", method, path, text, err)
	}
	if strings.HasPrefix(text, "[") && strings.Contains(text, "AccessToken") {
		r.t.Errorf("%s %s lists tokens: %s", method, path, text)
	}
	return a.EnvdAccessToken, a.TrafficAccessToken
}

// TestNoTokenWithoutScope: a key that may neither run programs nor touch files is given
// no token by any route.
func TestNoTokenWithoutScope(t *testing.T) {
	r := serve(t)
	id := string(r.create(`{"network":{"allowPublicTraffic":false}}`))
	for _, c := range [][3]string{
		{"GET", "/sandboxes/" + id, ""},
		{"GET", "/sandboxes", ""},
		{"GET", "/v2/sandboxes", ""},
		{"POST", "/sandboxes/" + id + "/connect", `{"timeout":60}`},
		{"POST", "/sandboxes/" + id + "/resume", `{"timeout":60}`},
	} {
		for _, key := range []string{readKey, lifeKey} {
			if access, traffic := r.tokensIn(key, c[0], c[1], c[2]); access+traffic != "" {
				t.Errorf("%s %s gives the tokens %q and %q to a key without exec and files", c[0], c[1], access, traffic)
			}
		}
	}
	if access, _ := r.tokensIn(filesKey, "GET", "/sandboxes/"+id, ""); access != r.tokenOf("access", cove.ID(id), "filer") {
		t.Errorf("a key that may read files is given %q", access)
	}
	if _, traffic := r.tokensIn(filesKey, "POST", "/sandboxes/"+id+"/connect", `{"timeout":60}`); traffic != "" {
		t.Errorf("a key without exec is given the traffic token %q", traffic)
	}
}

// principalsOf are the callers that the journal names for a verb.
func (r *rig) principalsOf(verb cove.Verb) map[string]bool {
	r.t.Helper()
	names := map[string]bool{}
	for e, err := range r.journal.Events(r.t.Context(), cove.EventFilter{Kind: string(verb)}) {
		if err != nil {
			r.t.Fatal(err)
		}
		names[e.Principal] = true
	}
	return names
}

// TestTokenActsForItsKey: a token of another key than the opener's does what that key
// may, is named in the journal and ends with the key.
func TestTokenActsForItsKey(t *testing.T) {
	r := serve(t)
	id := r.create(`{}`)
	r.putFile(id, "f", "x")
	access, _ := r.tokensIn(filesKey, "GET", "/sandboxes/"+string(id), "")
	header := []string{"X-Access-Token", access}
	read := func() int {
		status, _, _ := r.read(r.inside(t.Context(), id, 49983, "GET", "/files?path=f", nil, header...))
		return status
	}
	if status := read(); status != http.StatusOK {
		t.Fatalf("the key may read files and is answered %d", status)
	}
	if status, text := r.upload(id, "?path=g", strings.NewReader("x"), append(header, "Content-Type", octets)...); status != http.StatusForbidden {
		t.Errorf("a file is written: %d %s", status, text)
	}
	if ran := r.run(id, "echo hello", header...).all(); ran.pid != 0 || ran.code != "permission_denied" {
		t.Errorf("a program runs: %+v", ran)
	}
	if names := r.principalsOf(cove.FileWrite); !names["filer"] {
		t.Errorf("the journal names %v for the refused write", names)
	}
	r.revoked["tester"] = true
	if status := read(); status != http.StatusOK {
		t.Errorf("without the opener's key: %d", status)
	}
	r.revoked["filer"] = true
	if status := read(); status != http.StatusUnauthorized {
		t.Errorf("after the key was revoked: %d", status)
	}
}

// TestSignaturesOfKeys: a link is as good as the key whose token signed it.
func TestSignaturesOfKeys(t *testing.T) {
	r := serve(t)
	id := r.create(`{}`)
	r.putFile(id, "f", "x")
	for host, names := range map[string][]string{"": nil, "plain": {"E2b-Sandbox-Id", string(id), "E2b-Sandbox-Port", "49983"}} {
		get := func(token, operation, method string) int {
			query := link("f", operation, "", token, time.Now().Add(time.Hour).Unix())
			req := must(http.NewRequestWithContext(t.Context(), method, r.server.URL+"/files?"+query.Encode(), strings.NewReader("new")))(t)
			req.Header.Set("Content-Type", octets)
			for i := 0; i+1 < len(names); i += 2 {
				req.Header.Set(names[i], names[i+1])
			}
			status, _, _ := r.read(req)
			return status
		}
		filer := r.tokenOf("access", id, "filer")
		for what, c := range map[string]struct {
			got, want int
		}{
			"the opener's":            {get(r.token(id), "read", "GET"), http.StatusOK},
			"another key's":           {get(filer, "read", "GET"), http.StatusOK},
			"without files:write":     {get(filer, "write", "POST"), http.StatusForbidden},
			"a key of another tenant": {get(r.tokenOf("access", id, "stranger"), "read", "GET"), http.StatusUnauthorized},
			"a key that is not there": {get(r.tokenOf("access", id, "none"), "read", "GET"), http.StatusUnauthorized},
		} {
			if c.got != c.want {
				t.Errorf("host %q, %s: %d, want %d", host, what, c.got, c.want)
			}
		}
	}
	r.revoked["filer"] = true
	if status, body := r.followLink("GET", "", link("f", "read", "", r.tokenOf("access", id, "filer"), 0), ""); status != http.StatusUnauthorized {
		t.Errorf("a link of a revoked key: %d %s", status, body)
	}
}

// TestUploadTokens: a link to send files of a template is its key's.
func TestUploadTokens(t *testing.T) {
	r := serveWith(t, rigOptions{engine: func(c *engine.Config) { c.Templates = &rack{names: map[string]string{}} }})
	var files struct{ URL string }
	build := r.begun(`{"name":"web"}`)
	const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	r.wants(http.StatusCreated, &files, "GET", "/templates/web/files/"+hash, "")
	put := func(to string) int {
		status, _, _ := r.read(must(http.NewRequestWithContext(t.Context(), http.MethodPut, to, strings.NewReader("x")))(t))
		return status
	}
	path := strings.SplitN(files.URL, "?", 2)[0] + "?token="
	for caller, want := range map[string]int{
		"tester": http.StatusOK, "reader": http.StatusForbidden, "stranger": http.StatusNotFound, "none": http.StatusUnauthorized,
	} {
		if got := put(path + e2bapi.Token(r.secret, "upload", cove.ID(build+":"+hash), caller)); got != want {
			t.Errorf("%s: %d, want %d", caller, got, want)
		}
	}
	r.revoked["tester"] = true
	if got := put(files.URL); got != http.StatusUnauthorized {
		t.Errorf("a link of a revoked key: %d", got)
	}
}

// TestBuildsOfATenant: a tenant has a bound on builds and on the bytes that it sends for
// them, and another tenant is not affected.
func TestBuildsOfATenant(t *testing.T) {
	r := serveWith(t, rigOptions{engine: func(c *engine.Config) { c.Templates = &rack{names: map[string]string{}} }})
	r.face.LowerBuildBound(10)
	const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	put := func(n, text, want string) {
		t.Helper()
		var files struct{ URL string }
		r.wants(http.StatusCreated, &files, "GET", "/templates/"+n+"/files/"+hash, "")
		status, answer, _ := r.read(must(http.NewRequestWithContext(t.Context(), http.MethodPut, files.URL, strings.NewReader(text)))(t))
		if want == "" && status != http.StatusOK || want != "" && (status != http.StatusTooManyRequests || !strings.Contains(answer, want)) {
			t.Errorf("%s: %d %s", text, status, answer)
		}
	}
	for _, n := range []string{"a", "b", "c", "d"} {
		r.begun(`{"name":"` + n + `"}`)
	}
	r.refuses(http.StatusTooManyRequests, "of this tenant wait", "POST", "/v3/templates", `{"name":"e"}`)
	r.wants(http.StatusAccepted, nil, "POST", "/v3/templates", `{"name":"e"}`, "X-Api-Key", otherKey)
	put("a", "1234567", "")
	put("b", "1234", "more than 10")
	put("b", "123", "")
	put("a", "1234567", "more than 10") // it is there twice until the new one is whole
	put("b", "", "")
	put("b", "123", "")
}

// TestUploadsBelowTheReserve: files of a build are refused where the disk has no room for
// them, and leave nothing in their directory.
func TestUploadsBelowTheReserve(t *testing.T) {
	dir, full := t.TempDir(), false
	r := serveWith(t, rigOptions{
		engine: func(c *engine.Config) { c.Templates = &rack{names: map[string]string{}} },
		face: func(c *e2bapi.Config) {
			c.Uploads = dir
			c.Room = func() error {
				if full {
					return cove.Errorf(cove.Exhausted, "the disk is nearly full").Reason(cove.ReasonDiskReserve)
				}
				return nil
			}
		},
	})
	const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	r.begun(`{"name":"web"}`)
	for want, now := range map[int]bool{http.StatusOK: false, http.StatusInsufficientStorage: true} {
		full = now
		var files struct{ URL string }
		r.wants(http.StatusCreated, &files, "GET", "/templates/web/files/"+hash, "")
		if status, text, _ := r.read(must(http.NewRequestWithContext(t.Context(), http.MethodPut, files.URL, strings.NewReader("x")))(t)); status != want {
			t.Errorf("full %t: %d %s", now, status, text)
		}
	}
	if left := must(os.ReadDir(dir))(t); len(left) > 0 {
		t.Errorf("in the directory are %v", left)
	}
}
