package daemon_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// visitor is a client that finds every host at one address, and trusts the authority
// of a server.
func visitor(t *testing.T, r daemon.Ready, two bool) *http.Client {
	t.Helper()
	_, port, err := net.SplitHostPort(r.E2BDomain)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(r.E2BCA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("%s holds no certificate", r.E2BCA)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: two,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

type said struct {
	status int
	proto  string
	body   string
}

// call sends a request; pairs are headers.
func call(t *testing.T, c *http.Client, method, url, body string, pairs ...string) said {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == "Host" {
			req.Host = pairs[i+1]
			continue
		}
		req.Header.Set(pairs[i], pairs[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return said{resp.StatusCode, resp.Proto, string(text)}
}

func TestE2BDomain(t *testing.T) {
	cfg := settings(t, "COVE_E2B_ADDR", "127.0.0.1:0", "COVE_E2B_DOMAIN", "cove.test")
	r, end := serve(t, cfg, daemon.Options{DevTLS: true})
	if !strings.HasPrefix(r.E2BDomain, "cove.test:") || r.E2BCA != filepath.Join(cfg.Home, "dev-ca.pem") {
		t.Fatalf("%+v", r)
	}
	one, two := visitor(t, r, false), visitor(t, r, true)
	key := keyOf(t, r)
	for _, tc := range []struct {
		client *http.Client
		proto  string
	}{{one, "HTTP/1.1"}, {two, "HTTP/2.0"}} {
		api := "https://api." + r.E2BDomain
		if got := call(t, tc.client, "GET", api+"/v2/sandboxes", "", "X-API-Key", "e2b_wrong"); got.status != http.StatusUnauthorized || got.proto != tc.proto || !strings.Contains(got.body, `"code":401`) {
			t.Errorf("a wrong key: %+v", got)
		}
		made := call(t, tc.client, "POST", api+"/v2/sandboxes", `{"templateID":"base","network":{"allowPublicTraffic":false}}`, "X-API-Key", key)
		var box struct{ SandboxID, EnvdAccessToken, TrafficAccessToken, Domain string }
		if err := json.Unmarshal([]byte(made.body), &box); err != nil || made.status != http.StatusCreated || box.Domain != r.E2BDomain || made.proto != tc.proto {
			t.Fatalf("%+v, %v", made, err)
		}
		inside := "-" + box.SandboxID + "." + r.E2BDomain
		if got := call(t, tc.client, "GET", "https://49983"+inside+"/health", ""); got.status != http.StatusNoContent || got.proto != tc.proto {
			t.Errorf("its agent: %+v", got)
		}
		if got := call(t, tc.client, "GET", "https://3000"+inside+"/", ""); got.status != http.StatusForbidden || !strings.Contains(got.body, box.SandboxID) {
			t.Errorf("a port that is not public: %+v", got)
		}
		if got := call(t, tc.client, "GET", "https://3000"+inside+"/", "", "E2B-Traffic-Access-Token", box.TrafficAccessToken); got.status != http.StatusBadGateway || !strings.Contains(got.body, `"port":3000`) {
			t.Errorf("a port that nobody listens on: %+v", got)
		}
		if got := call(t, tc.client, "GET", "https://3000-"+string(cove.NewID())+"."+r.E2BDomain+"/", ""); got.status != http.StatusBadGateway || !strings.Contains(got.body, "The sandbox was not found") {
			t.Errorf("a sandbox that is not there: %+v", got)
		}
		if got := call(t, tc.client, "GET", api+"/", "", "Host", "localhost"); got.status != http.StatusMisdirectedRequest {
			t.Errorf("another host at the domain's door: %+v", got)
		}
	}
	if got := call(t, http.DefaultClient, "GET", r.URL+"/v2/sandboxes", "", "X-API-Key", key); got.status != http.StatusOK {
		t.Errorf("the plain address: %+v", got)
	}
	end()

	before, err := os.ReadFile(r.E2BCA)
	if err != nil {
		t.Fatal(err)
	}
	r, end = serve(t, cfg, daemon.Options{DevTLS: true})
	if again, err := os.ReadFile(r.E2BCA); err != nil || !bytes.Equal(before, again) {
		t.Errorf("the authority did not outlive the server: %v", err)
	}
	call(t, visitor(t, r, true), "GET", "https://api."+r.E2BDomain+"/", "")
	end()
	cfg.Faces.E2BDomain = "other.test"
	r, end = serve(t, cfg, daemon.Options{DevTLS: true})
	defer end()
	if again, err := os.ReadFile(r.E2BCA); err != nil || bytes.Equal(before, again) {
		t.Errorf("the authority of another domain was used: %v", err)
	}
	call(t, visitor(t, r, true), "GET", "https://api."+r.E2BDomain+"/", "")
	if info, err := os.Stat(filepath.Join(cfg.Home, "dev-ca.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its key: %v, %v", info, err)
	}
}

func TestPublicPortsOfE2BsSandboxes(t *testing.T) {
	r, end := serve(t, settings(t, "COVE_E2B_ADDR", "127.0.0.1:0", "COVE_E2B_DOMAIN", "cove.test"), daemon.Options{DevTLS: true})
	defer end()
	admin := adminOf(t, r)
	s, err := admin.Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{PublicPorts: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Processes(s.ID).Start(t.Context(), cove.ExecRequest{Line: "serve 3000 hello"}); err != nil {
		t.Fatal(err)
	}
	for _, two := range []bool{false, true} {
		c := visitor(t, r, two)
		eventually(t, func() bool {
			got := call(t, c, "GET", "https://3000-"+string(s.ID)+"."+r.E2BDomain+"/", "", "Origin", "https://elsewhere.test")
			return got.status == http.StatusOK && got.body == "hello"
		})
	}
}

func TestHTTP2IsForE2BsDomainAlone(t *testing.T) {
	cfg, certFile, keyFile, _ := pairOf(t)
	cert := issueNamed(t, certFile, keyFile, 2, "*.cove.test", "localhost")
	cfg.Faces.E2BDomain = "cove.test"
	r, end := serve(t, cfg, daemon.Options{})
	defer end()
	at := strings.TrimPrefix(r.URL, "https://")
	transport := &http.Transport{
		TLSClientConfig: trusting(cert), ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at)
		},
	}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	if got := call(t, c, "GET", "https://api.cove.test/sandboxes", ""); got.proto != "HTTP/2.0" || got.status != http.StatusUnauthorized {
		t.Errorf("the domain: %+v", got)
	}
	if got := call(t, c, "GET", "https://localhost/health", ""); got.proto != "HTTP/1.1" || got.status != http.StatusOK {
		t.Errorf("the API: %+v", got)
	}
	if got := call(t, c, "GET", "https://api.cove.test/health", "", "Host", "localhost"); got.status != http.StatusMisdirectedRequest {
		t.Errorf("the API over a connection of the domain's: %+v", got)
	}
}

func TestE2BDomainsThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	issue(t, cert, key, 1)
	for name, tc := range map[string]struct {
		pairs []string
		dev   bool
		words string
	}{
		"a door without a domain":         {[]string{"COVE_E2B_ADDR", "127.0.0.1:0"}, false, "COVE_E2B_ADDR: is for COVE_E2B_DOMAIN"},
		"a door without a certificate":    {[]string{"COVE_E2B_ADDR", "127.0.0.1:0", "COVE_E2B_DOMAIN", "cove.test"}, false, "there is no certificate"},
		"a certificate for somebody else": {[]string{"COVE_TLS_CERT", cert, "COVE_TLS_KEY", key, "COVE_E2B_DOMAIN", "cove.test"}, false, "the certificate is not for the hosts"},
		"two kinds of certificates":       {[]string{"COVE_TLS_CERT", cert, "COVE_TLS_KEY", key, "COVE_E2B_ADDR", "127.0.0.1:0"}, true, "--dev-tls makes certificates of its own"},
		"the domain of previews":          {[]string{"COVE_PREVIEW_DOMAIN", "cove.test", "COVE_E2B_DOMAIN", "cove.test:443"}, false, "each needs a domain of its own"},
		"below the domain of previews":    {[]string{"COVE_PREVIEW_DOMAIN", "cove.test", "COVE_E2B_DOMAIN", "e2b.cove.test"}, false, "each needs a domain of its own"},
		"above the server":                {[]string{"COVE_PUBLIC_URL", "https://www.cove.test", "COVE_E2B_DOMAIN", "cove.test"}, false, "is where the server itself is"},
		"an address of nobody's":          {[]string{"COVE_E2B_ADDR", "192.0.2.1:1", "COVE_E2B_DOMAIN", "cove.test"}, true, "COVE_E2B_ADDR: 192.0.2.1:1 cannot be listened on"},
		"a second address of nobody's":    {[]string{"COVE_MSB_ADDR", "192.0.2.1:1"}, false, "COVE_MSB_ADDR: 192.0.2.1:1 cannot be listened on"},
	} {
		t.Run(name, func(t *testing.T) {
			err := daemon.Serve(t.Context(), settings(t, tc.pairs...), daemon.Options{DevTLS: tc.dev, Logger: slog.New(slog.DiscardHandler)})
			if cove.CodeOf(err) != cove.Invalid || !strings.Contains(cove.MessageOf(err), tc.words) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestMicrosandboxsClients(t *testing.T) {
	r, end := serve(t, settings(t, "COVE_MSB_ADDR", "127.0.0.1:0"), daemon.Options{})
	defer end()
	if got := call(t, http.DefaultClient, "GET", r.MSBURL+"/api/v1/health", ""); got.body != `{"message":"Service is healthy"}` {
		t.Errorf("%+v", got)
	}
	if got := call(t, http.DefaultClient, "GET", r.MSBURL+"/api/sandboxes", ""); got.status != http.StatusNotFound {
		t.Errorf("the API at their door: %+v", got)
	}
	bound, secret, err := adminOf(t, r).Admin().CreateKey(t.Context(), cove.KeyRequest{
		Name: "team", Form: cove.KeyMicrosandbox, Limits: cove.KeyLimit{Namespace: "team"},
		Scopes: []cove.Scope{cove.ScopeRead, cove.ScopeWrite, cove.ScopeExec, cove.ScopeFileRead, cove.ScopeFileWrite},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(at, key, method, params string) said {
		t.Helper()
		return call(t, http.DefaultClient, "POST", at+"/api/v1/rpc", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"namespace":"team","sandbox":"s1"`+params+`}}`, "Authorization", "Bearer "+key)
	}
	if got := ask(r.URL, secret, "sandbox.start", `,"config":{"image":"microsandbox/python"}`); got.status != http.StatusOK {
		t.Errorf("%+v", got)
	}
	if got := ask(r.MSBURL, secret, "sandbox.command.run", `,"command":"echo","args":["hi"]`); !strings.Contains(got.body, `"text":"hi"`) {
		t.Errorf("%+v", got)
	}
	if got := call(t, http.DefaultClient, "GET", r.URL+"/api/sandboxes", "", "Authorization", "Bearer "+secret); got.status != http.StatusForbidden {
		t.Errorf("the API with a key of a namespace: %+v", got)
	}
	if err := adminOf(t, r).Admin().RevokeKey(t.Context(), bound.ID); err != nil {
		t.Fatal(err)
	}
	if got := ask(r.URL, secret, "sandbox.stop", ""); got.status != http.StatusUnauthorized {
		t.Errorf("a key that was revoked: %+v", got)
	}
}
