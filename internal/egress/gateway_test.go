package egress_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

// site is a web server; it says who was asked for.
func site(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "hello "+r.Host)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// browser goes through the gateway and nowhere else.
func (in *inside) browser() *http.Client {
	t := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if _, err := netip.ParseAddr(host); err != nil {
			a, err := in.resolve(host)
			if err != nil {
				return nil, err
			}
			host = a.String()
		}
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, port))
	}}
	in.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: 20 * time.Second}
}

func (in *inside) url(host string) string { return "http://" + host + ":" + strconv.Itoa(in.port) }

func (in *inside) get(url string) (string, error) {
	req, err := http.NewRequestWithContext(in.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := in.browser().Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

func TestAllow(t *testing.T) {
	w := newWorld()
	w.put("good.test", site(t), "93.184.216.34")
	w.put("evil.test", site(t), "93.184.216.35")
	w.put("one.pkg.test", site(t), "93.184.216.36")
	in := open(t, w, allow("good.test:%", "*.pkg.test:%", "other.test:1"))
	for _, host := range []string{"good.test", "GOOD.test", "one.pkg.test"} {
		text, err := in.get(in.url(host))
		if err != nil || !strings.HasPrefix(text, "hello ") {
			t.Fatalf("%s: %q, %v", host, text, err)
		}
	}
	got := in.line("good.test")
	if !got.Allowed || got.Protocol != "tcp" || got.Port != in.port || got.Sent == 0 || got.Received == 0 || got.Took <= 0 || got.At.IsZero() ||
		got.Address != "93.184.216.34:"+strconv.Itoa(in.port) || got.Why != "" || got.Number == 0 {
		t.Errorf("line: %+v", got)
	}
	for _, host := range []string{"evil.test", "pkg.test", "evilpkg.test", "good.test.evil.net", "xgood.test", "sub.good.test", "pkg.test.evil.net"} {
		if _, err := in.get(in.url(host)); err == nil {
			t.Errorf("%s was reached", host)
		}
		if c := in.line(host); c.Allowed || c.Protocol != "dns" || c.Why == "" {
			t.Errorf("line: %+v", c)
		}
	}
	// The name is known, at another port.
	if err := cut(in.dial("other.test")); err != nil {
		t.Error(err)
	}
	if c := in.line("other.test"); c.Allowed || !strings.Contains(c.Why, "port") {
		t.Errorf("line: %+v", c)
	}
	if looked := w.lookups(); slices.ContainsFunc(looked, func(n string) bool { return strings.Contains(n, "evil") || n == "other.test" }) {
		t.Errorf("names left the host that nobody may reach: %v", looked)
	}
	all := in.Connections(0)
	if rest := in.Connections(all[0].Number); len(rest) != len(all)-1 {
		t.Errorf("%d after the first of %d", len(rest), len(all))
	}
	if len(in.Connections(1<<40)) != 0 {
		t.Error("connections of the future")
	}
}

func TestRawAddresses(t *testing.T) {
	in := open(t, newWorld(), allow("good.test:%"))
	for _, addr := range []string{"127.0.0.1", "127.64.1.77"} {
		if err := cut(in.raw(addr)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		if c := in.line(addr); c.Allowed || c.Why == "" {
			t.Errorf("line: %+v", c)
		}
	}
}

func TestOpen(t *testing.T) {
	w := newWorld()
	w.put("any.test", site(t), "93.184.216.34")
	w.put("inner.test", site(t), "10.0.0.5")
	in := open(t, w, func(int) egress.Config { return egress.Config{Network: cove.Network{Mode: cove.NetworkOpen}} })
	if text, err := in.get(in.url("any.test")); err != nil || !strings.HasPrefix(text, "hello ") {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := in.get(in.url("inner.test")); err == nil {
		t.Error("a private address was reached")
	}
	if c := in.line("inner.test"); c.Allowed || !strings.Contains(c.Why, "10.0.0.5") {
		t.Errorf("line: %+v", c)
	}
	if err := cut(in.raw("127.0.0.1")); err != nil { // what a program dials is what it means
		t.Error(err)
	}
	if c := in.line("127.0.0.1"); c.Allowed || !strings.Contains(c.Why, "not public") {
		t.Errorf("line: %+v", c)
	}
}

func TestPrivateRange(t *testing.T) {
	w := newWorld()
	w.put("inner.test", site(t), "10.0.0.5")
	w.put("meta.test", site(t), "10.0.0.6", "169.254.169.254")
	in := open(t, w, func(port int) egress.Config {
		c := allow("inner.test:%", "meta.test:%")(port)
		c.Private = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("169.254.0.0/16")}
		return c
	})
	if _, err := in.get(in.url("inner.test")); err != nil {
		t.Error(err)
	}
	if _, err := in.get(in.url("meta.test")); err == nil {
		t.Error("the metadata of a cloud was reached")
	}
}

// A name that leads here and there by turns, and one that leads to both.
func TestRebinding(t *testing.T) {
	w := newWorld()
	server := site(t)
	w.put("turns.test", server, "93.184.216.34")
	w.put("both.test", server, "93.184.216.34", "127.0.0.1")
	in := open(t, w, allow("turns.test:%", "both.test:%"))
	turn := 0
	w.mu.Lock()
	w.answer["turns.test"] = func() []netip.Addr {
		turn++
		if turn%2 == 0 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		}
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}
	}
	w.mu.Unlock()
	for i := range 10 {
		_, err := in.get(in.url("turns.test"))
		if good := i%2 == 0; good != (err == nil) {
			t.Errorf("turn %d: %v", i, err)
		}
	}
	if _, err := in.get(in.url("both.test")); err == nil {
		t.Error("one bad address of two was not enough")
	}
	for _, a := range w.dials() {
		if a.Addr().IsLoopback() {
			t.Errorf("%s was dialled", a)
		}
	}
}

// What is dialled in the end is looked at again.
func TestSecondWall(t *testing.T) {
	w := newWorld()
	w.put("good.test", site(t), "93.184.216.34")
	w.pass = func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(netip.MustParseAddr("192.168.1.1"), a.Port())
	}
	in := open(t, w, allow("good.test:%"))
	if _, err := in.get(in.url("good.test")); err == nil {
		t.Error("it went through")
	}
	if c := in.line("good.test"); c.Allowed || c.Why == "" {
		t.Errorf("line: %+v", c)
	}
}

// A range that is closed while somebody is on his way into it is closed.
func TestClosedOnTheWay(t *testing.T) {
	w := newWorld()
	w.put("inner.test", site(t), "10.0.0.5")
	in := open(t, w, func(port int) egress.Config {
		c := allow("inner.test:%")(port)
		c.Private = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		return c
	})
	w.mu.Lock()
	w.pass = func(a netip.AddrPort) netip.AddrPort {
		if err := in.Set(allow("inner.test:%")(in.port)); err != nil {
			t.Error(err)
		}
		return a
	}
	w.mu.Unlock()
	if _, err := in.get(in.url("inner.test")); err == nil {
		t.Error("it went through")
	}
	if c := in.line("inner.test"); c.Allowed || !strings.Contains(c.Why, "changed") {
		t.Errorf("line: %+v", c)
	}
}

func TestRedirectToMetadata(t *testing.T) {
	w := newWorld()
	w.put("good.test", site(t), "93.184.216.34")
	w.put("meta.test", site(t), "169.254.169.254")
	in := open(t, w, allow("good.test:%", "meta.test:%"))
	for _, to := range []string{in.url("meta.test"), in.url("127.0.0.1"), in.url("metadata.google.internal")} {
		if text, err := in.get(in.url("good.test") + "/?to=" + to); err == nil {
			t.Errorf("%s was reached: %s", to, text)
		}
	}
	for _, a := range w.dials() {
		if a.Addr() != netip.MustParseAddr("93.184.216.34") {
			t.Errorf("%s was dialled", a)
		}
	}
}

func TestSetEndsConnections(t *testing.T) {
	w := newWorld()
	w.put("a.test", echo(t), "93.184.216.34")
	w.put("b.test", echo(t), "93.184.216.35")
	in := open(t, w, allow("a.test:%", "b.test:%"))
	a, b := talk(t, in, "a.test"), talk(t, in, "b.test")
	if err := in.Set(allow("b.test:%")(in.port)); err != nil {
		t.Fatal(err)
	}
	if err := dead(a); err != nil {
		t.Errorf("a: %v", err)
	}
	if c := in.line("a.test"); !strings.Contains(c.Why, "changed") || c.Sent != 2 || c.Received != 2 || !c.Allowed {
		t.Errorf("line: %+v", c)
	}
	say(t, b)
	if _, err := in.dial("a.test"); err == nil {
		t.Error("a.test is still answered")
	}
	// From a list to everything and to nothing.
	if err := in.Set(egress.Config{Network: cove.Network{Mode: cove.NetworkOpen}}); err != nil {
		t.Fatal(err)
	}
	say(t, b)
	if err := in.Set(egress.Config{}); err != nil {
		t.Fatal(err)
	}
	if err := dead(b); err != nil {
		t.Errorf("b: %v", err)
	}
	if err := in.Set(egress.Config{Network: cove.Network{Mode: "all"}}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a mode that is none: %v", err)
	}
}

// echo says what it hears.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func talk(t *testing.T, in *inside, name string) net.Conn {
	t.Helper()
	c, err := in.dial(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	say(t, c)
	return c
}

func say(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, "hi"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
}

// A side that has said all is still told the rest.
func TestHalfClose(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		text, _ := io.ReadAll(c)
		_, _ = c.Write(append([]byte("heard "), text...))
	}()
	w := newWorld()
	w.put("half.test", l.Addr().String(), "93.184.216.34")
	in := open(t, w, allow("half.test:%"))
	c, err := in.dial("half.test")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "all")
	_ = c.(*net.TCPConn).CloseWrite()
	if text, err := io.ReadAll(c); err != nil || string(text) != "heard all" {
		t.Errorf("%q, %v", text, err)
	}
	if c := in.line("half.test"); c.Sent != 3 || c.Received != 9 || c.Why != "" {
		t.Errorf("line: %+v", c)
	}
}

func TestFailures(t *testing.T) {
	w := newWorld()
	w.put("down.test", "127.0.0.1:1", "93.184.216.34", "93.184.216.35")
	in := open(t, w, allow("down.test:%", "missing.test:%"))
	for host, want := range map[string]string{"down.test": "cannot be reached", "missing.test": "there is no such name"} {
		if _, err := in.get(in.url(host)); err == nil {
			t.Errorf("%s was reached", host)
		}
		c := in.line(host)
		if !c.Allowed || !strings.Contains(c.Why, want) || strings.Contains(c.Why, "10.") {
			t.Errorf("line: %+v", c)
		}
	}
}

func TestClose(t *testing.T) {
	w := newWorld()
	w.put("a.test", echo(t), "93.184.216.34")
	in := open(t, w, allow("a.test:%"))
	c := talk(t, in, "a.test")
	for range 2 {
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := dead(c); err != nil {
		t.Error(err)
	}
	if err := in.Set(egress.Config{}); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("set: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Listen(egress.Sockets{TCP: []net.Listener{l}}); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("listen: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the socket was left open: %v", err)
	}
	if len(in.Connections(0)) == 0 {
		t.Error("the journal is gone with the gateway")
	}
}

func TestConfigAsJSON(t *testing.T) {
	ca, err := egress.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	c := egress.Config{
		Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"a.test"}, Secrets: []string{"key"}},
		Secrets: []egress.Secret{{Name: "key", Hosts: []string{"a.test"}, Header: "X-Key", Value: "v"}},
		Private: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Limits: egress.DefaultLimits(), CA: ca,
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back egress.Config
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}
