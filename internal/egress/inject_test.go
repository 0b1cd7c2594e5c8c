package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove/internal/egress"
)

const hidden = "Bearer hunter2"

// api is a server that wants a key. It says what it got.
func api(t *testing.T, secure bool) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/upgrade":
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = rw.Flush()
			_, _ = io.Copy(conn, rw)
		case "/stream":
			for range 3 {
				_, _ = io.WriteString(w, "line\n")
				_ = http.NewResponseController(w).Flush()
			}
		case "/slow":
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			_, _ = fmt.Fprintf(w, "%s %s key=%v x=%v body=%s proto=%d", r.Method, r.Host, r.Header["Authorization"], r.Header["X-Other"], body, r.ProtoMajor)
		}
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func secret(hosts ...string) egress.Secret {
	return egress.Secret{Name: "key", Hosts: hosts, Header: "authorization", Value: hidden}
}

// withSecrets is a config with a list and a secret for its first host. Without an
// authority the secret may go out in clear text.
func withSecrets(ca *egress.Authority, hosts ...string) func(int) egress.Config {
	return func(port int) egress.Config {
		c := allow(hosts...)(port)
		c.Secrets = []egress.Secret{secret(c.Network.Allow[0])}
		c.CA, c.Secrets[0].Plain = ca, ca == nil
		return c
	}
}

// exchange sends text as it is and reads what comes back until the other side
// hangs up.
func exchange(t *testing.T, in *inside, host, text string) string {
	t.Helper()
	c, err := in.dial(host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, text)
	out, _ := io.ReadAll(c)
	return string(out)
}

func TestInject(t *testing.T) {
	w := newWorld()
	w.put("api.test", api(t, false).Listener.Addr().String(), "93.184.216.34")
	w.put("plain.test", api(t, false).Listener.Addr().String(), "93.184.216.35")
	in := open(t, w, withSecrets(nil, "api.test:%", "plain.test:%"))
	host := "api.test:" + strconv.Itoa(in.port)
	got := exchange(t, in, "api.test", "POST /a HTTP/1.1\r\nHost: "+host+"\r\nAuthorization: mine\r\nConnection: close, Authorization\r\nX-Other: 1\r\nContent-Length: 2\r\n\r\nhi")
	if want := "POST " + host + " key=[" + hidden + "] x=[1] body=hi"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if c := in.line("api.test"); !c.Allowed || c.Sent == 0 || c.Received == 0 || c.Address == "" || c.Why != "" {
		t.Errorf("line: %+v", c)
	}
	// A host without a secret is not read.
	got = exchange(t, in, "plain.test", "GET / HTTP/1.1\r\nHost: whatever.test\r\nAuthorization: mine\r\nConnection: close\r\n\r\n")
	if !strings.Contains(got, "GET whatever.test key=[mine]") {
		t.Errorf("got %q", got)
	}
	// Several requests, streams and upgrades in one connection.
	c, err := in.dial("api.test")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	r := bufio.NewReader(c)
	for _, path := range []string{"/1", "/stream", "/2"} {
		_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || len(text) == 0 {
			t.Errorf("%s: %d %q %v", path, resp.StatusCode, text, err)
		}
	}
	_, _ = io.WriteString(c, "GET /upgrade HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	_, _ = io.WriteString(c, "hello")
	b := make([]byte, 5)
	if _, err := io.ReadFull(r, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
}

// Whatever a request says, the secret goes to its host and nowhere else.
func TestSmuggling(t *testing.T) {
	w := newWorld()
	server := api(t, false)
	w.put("api.test", server.Listener.Addr().String(), "93.184.216.34")
	in := open(t, w, withSecrets(nil, "api.test:%", "evil.test:%"))
	host := "api.test:" + strconv.Itoa(in.port)
	const end = "Connection: close\r\n\r\n"
	for name, c := range map[string]struct {
		text   string
		status string
	}{
		"another host":     {"GET / HTTP/1.1\r\nHost: evil.test\r\n" + end, "421"},
		"another port":     {"GET / HTTP/1.1\r\nHost: api.test:1\r\n" + end, "421"},
		"an address":       {"GET / HTTP/1.1\r\nHost: 93.184.216.34\r\n" + end, "421"},
		"no host":          {"GET / HTTP/1.0\r\n" + end, "421"},
		"two hosts":        {"GET / HTTP/1.1\r\nHost: " + host + "\r\nHost: evil.test\r\n" + end, "400"},
		"absolute form":    {"GET http://evil.test/ HTTP/1.1\r\nHost: " + host + "\r\n" + end, "421"},
		"user in the host": {"GET / HTTP/1.1\r\nHost: api.test@evil.test\r\n" + end, "4"},
		"connect":          {"CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n" + end, "405"},
		"trace":            {"TRACE / HTTP/1.1\r\nHost: " + host + "\r\n" + end, "405"},
		"two lengths":      {"POST / HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 3\r\nContent-Length: 30\r\n" + end + "abc", "400"},
		"strange encoding": {"POST / HTTP/1.1\r\nHost: " + host + "\r\nTransfer-Encoding: xchunked\r\n" + end, "501"},
		"space in header":  {"GET / HTTP/1.1\r\nHost : evil.test\r\nHost: " + host + "\r\n" + end, "400"},
		"folded header":    {"GET / HTTP/1.1\r\nHost: " + host + "\r\nX-A: b\r\n\tAuthorization: mine\r\n" + end, "200"},
		"huge header":      {"GET / HTTP/1.1\r\nHost: " + host + "\r\nX-A: " + strings.Repeat("a", 1<<17) + "\r\n" + end, "431"},
		"not http":         {"SSH-2.0-OpenSSH_9.9\r\n\r\n", "400"},
	} {
		got := exchange(t, in, "api.test", c.text)
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status) && !strings.HasPrefix(got, "HTTP/1.0 "+c.status) {
			t.Errorf("%s: %.200q, want %s", name, got, c.status)
		}
		if c.status != "200" && strings.Contains(got, "hunter2") {
			t.Errorf("%s: the secret is in %q", name, got)
		}
	}
	// Of a length and chunks only the chunks count: what comes after them is
	// another request, and a host of ours cannot be told otherwise.
	got := exchange(t, in, "api.test", "POST /one HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /two HTTP/1.1\r\nHost: evil.test\r\n"+end)
	if !strings.Contains(got, "POST "+host) || !strings.Contains(got, "421 ") || strings.Contains(got, "GET evil.test") {
		t.Errorf("length and chunks: %q", got)
	}
	found := false
	for _, c := range in.Connections(0) {
		found = found || c.Host == "evil.test" && !c.Allowed && strings.Contains(c.Why, "another host")
		if strings.Contains(fmt.Sprint(c), "hunter2") {
			t.Errorf("line: %+v", c)
		}
	}
	if !found {
		t.Error("no line about a request for another host")
	}
	text, err := json.Marshal(in.Connections(0))
	if err != nil || strings.Contains(string(text), "hunter2") {
		t.Error("the journal has the secret", err)
	}
}

func TestInjectTLS(t *testing.T) {
	ca, err := egress.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	server := api(t, true)
	w := newWorld()
	w.roots = x509.NewCertPool()
	w.roots.AddCert(server.Certificate())
	w.put("example.com", server.Listener.Addr().String(), "93.184.216.34") // which the certificate is for
	w.put("api.test", server.Listener.Addr().String(), "93.184.216.35")    // which it is not
	in := open(t, w, func(port int) egress.Config {
		c := withSecrets(ca, "example.com:%", "api.test:%")(port)
		c.Secrets[0].Hosts = c.Network.Allow
		return c
	})
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(ca.PEM()) {
		t.Fatal("no certificate")
	}
	for _, proto := range []int{1, 2} {
		text, err := secureGet(t, in, "example.com", &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, proto == 2)
		if want := fmt.Sprintf("key=[%s] x=[] body= proto=2", hidden); err != nil || !strings.Contains(text, want) {
			t.Errorf("HTTP/%d: %q, %v", proto, text, err)
		}
	}
	if text, err := secureGet(t, in, "api.test", &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, false); err != nil || !strings.Contains(text, "cannot be reached") {
		t.Errorf("a server that is somebody else: %q, %v", text, err)
	}
	if c := in.line("api.test"); !strings.Contains(c.Why, "certificate") {
		t.Errorf("line: %+v", c)
	}
	if text, err := secureGet(t, in, "example.com", &tls.Config{RootCAs: trusted, ServerName: "api.test", MinVersion: tls.VersionTLS12}, false); err == nil {
		t.Errorf("another name in the handshake: %q", text)
	}
	if _, err := secureGet(t, in, "example.com", &tls.Config{RootCAs: w.roots, MinVersion: tls.VersionTLS12}, false); err == nil {
		t.Error("our certificate is trusted by who does not know us")
	}
	// Without an authority there is nothing to show.
	if err := in.Set(withSecrets(nil, "example.com:%")(in.port)); err != nil {
		t.Fatal(err)
	}
	if _, err := secureGet(t, in, "example.com", &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, false); err == nil {
		t.Error("TLS without an authority")
	}
}

func secureGet(t *testing.T, in *inside, host string, c *tls.Config, h2 bool) (string, error) {
	tr := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: h2, DialContext: func(context.Context, string, string) (net.Conn, error) { return in.dial(host) }}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+":"+strconv.Itoa(in.port)+"/", nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: tr, Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if (resp.ProtoMajor == 2) != h2 {
		return "", fmt.Errorf("the protocol is %s", resp.Proto)
	}
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// Who says nothing, or says it slowly, is not waited for.
func TestSlowRequests(t *testing.T) {
	w := newWorld()
	w.put("api.test", api(t, false).Listener.Addr().String(), "93.184.216.34")
	in := open(t, w, func(port int) egress.Config {
		c := withSecrets(nil, "api.test:%")(port)
		c.Limits = egress.Limits{Idle: 100 * time.Millisecond}
		return c
	})
	for name, text := range map[string]string{
		"half a request": "GET / HTTP/1.1\r\nHost: api.test:" + strconv.Itoa(in.port) + "\r\n",
		"half a body":    "POST / HTTP/1.1\r\nHost: api.test:" + strconv.Itoa(in.port) + "\r\nContent-Length: 10\r\n\r\n1",
		"a slow server":  "GET /slow HTTP/1.1\r\nHost: api.test:" + strconv.Itoa(in.port) + "\r\n\r\n",
		"nothing more":   "G",
	} {
		c, err := in.dial("api.test")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, text)
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
		if c := in.line("api.test"); !strings.Contains(c.Why, "too long") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestSecretsChange(t *testing.T) {
	w := newWorld()
	w.put("api.test", api(t, false).Listener.Addr().String(), "93.184.216.34")
	in := open(t, w, withSecrets(nil, "api.test:%"))
	c, err := in.dial("api.test")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := "GET / HTTP/1.1\r\nHost: api.test:" + strconv.Itoa(in.port) + "\r\n\r\n"
	_, _ = io.WriteString(c, ask)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // what is left of it would be taken for an answer
		t.Fatal(err)
	}
	if err := in.Set(allow("api.test:%")(in.port)); err != nil {
		t.Fatal(err)
	}
	if err := dead(c); err != nil {
		t.Error(err)
	}
	if got := exchange(t, in, "api.test", strings.Replace(ask, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)); !strings.Contains(got, "key=[]") {
		t.Errorf("got %q", got)
	}
}

// A sandbox cannot make a secret readable on its way.
func TestClearText(t *testing.T) {
	w := newWorld()
	w.put("api.test", api(t, false).Listener.Addr().String(), "93.184.216.34")
	var c egress.Config
	in := open(t, w, func(port int) egress.Config {
		c = withSecrets(nil, "api.test:%")(port)
		c.Secrets[0].Plain = false
		return c
	})
	ask := "GET / HTTP/1.1\r\nHost: api.test:" + strconv.Itoa(in.port) + "\r\nAuthorization: mine\r\n\r\n"
	refused := func(what string) {
		t.Helper()
		got := exchange(t, in, "api.test", ask)
		if !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.Contains(got, "https only") || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %q", what, got)
		}
		if c := in.line("api.test"); c.Allowed || c.Address != "" || c.Why != "the host's credential is sent over https only" {
			t.Errorf("%s: %+v", what, c)
		}
	}
	refused("one secret")
	second := secret(c.Network.Allow[0])
	second.Header, second.Plain = "X-Other", true
	c.Secrets = append(c.Secrets, second)
	if err := in.Set(c); err != nil {
		t.Fatal(err)
	}
	refused("one of two")
	if dials := w.dials(); len(dials) != 0 {
		t.Errorf("dialled: %v", dials)
	}
	// What changes counts for the next request of a connection.
	c.Secrets = []egress.Secret{second}
	if err := in.Set(c); err != nil {
		t.Fatal(err)
	}
	conn, err := in.dial("api.test")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	r := bufio.NewReader(conn)
	for _, status := range []int{http.StatusOK, http.StatusForbidden} {
		_, _ = io.WriteString(conn, ask)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != status || strings.Contains(string(text), "hunter2") != (status == http.StatusOK) {
			t.Errorf("%d: %q, want %d", resp.StatusCode, text, status)
		}
		c.Secrets = []egress.Secret{secret(c.Network.Allow[0])}
		if err := in.Set(c); err != nil {
			t.Fatal(err)
		}
	}
}

// A secret's host must be public and on the list like any other.
func TestInjectIsNoWayAround(t *testing.T) {
	w := newWorld()
	w.put("api.test", api(t, false).Listener.Addr().String(), "10.0.0.5")
	in := open(t, w, withSecrets(nil, "api.test:%"))
	got := exchange(t, in, "api.test", "GET / HTTP/1.1\r\nHost: api.test:"+strconv.Itoa(in.port)+"\r\nConnection: close\r\n\r\n")
	if !strings.Contains(got, "502") || strings.Contains(got, "hunter2") {
		t.Errorf("got %q", got)
	}
	if c := in.line("api.test"); c.Allowed || !strings.Contains(c.Why, "10.0.0.5") {
		t.Errorf("line: %+v", c)
	}
	if err := in.Set(egress.Config{Secrets: []egress.Secret{secret("api.test")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := in.dial("api.test"); err == nil {
		t.Error("a secret puts its host on the list")
	}
}
