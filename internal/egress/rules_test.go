package egress_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
)

func TestRules(t *testing.T) {
	list := []string{"example.com", "*.example.org", "api.example.net:8443", "*.db.test:5432", "Mixed.Test.", "db.test"}
	for _, c := range []struct {
		name string
		port uint16
		want bool
	}{
		{"example.com", 80, true},
		{"example.com", 443, true},
		{"example.com", 8080, false},
		{"www.example.com", 443, false},
		{"evilexample.com", 443, false},
		{"example.com.evil.net", 443, false},
		{"example.org", 443, false},
		{"a.example.org", 443, true},
		{"a.b.example.org", 443, true},
		{"evilexample.org", 443, false},
		{"a.example.org.evil.net", 443, false},
		{"api.example.net", 8443, true},
		{"api.example.net", 443, false},
		{"x.db.test", 5432, true},
		{"x.db.test", 443, false},
		{"db.test", 5432, false},
		{"db.test", 443, true},
		{"mixed.test", 443, true},
		{"com", 443, false},
		{"", 443, false},
	} {
		if got, err := egress.Allows(list, c.name, c.port); err != nil || got != c.want {
			t.Errorf("%s:%d is %v, want %v (%v)", c.name, c.port, got, c.want, err)
		}
	}
	for _, bad := range []string{"", "*", "*.", "a..b", "a.*.b", "1.2.3.4", "0x7f.1", "a:0", "a:65536", "a:", "a:x", "bücher.example", "a b", "-a.test", "a-.test", strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 127) + "test", "http://a", "a/b"} {
		if _, err := egress.Allows([]string{bad}, "a", 80); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := egress.Allows(make([]string, 300), "a", 80); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("too many: %v", err)
	}
	ports, err := egress.Ports(append(list, "again.test:8443", "usual.test:443"))
	slices.Sort(ports)
	if diff := cmp.Diff([]uint16{5432, 8443}, ports); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := egress.Ports([]string{"a b"}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("ports of a bad list: %v", err)
	}
}

func TestCleanName(t *testing.T) {
	for text, want := range map[string]string{
		"A.Test": "a.test", "a.test.": "a.test", "xn--bcher-kva.example": "xn--bcher-kva.example", "_srv._tcp.a": "_srv._tcp.a",
		"a.test..": "", ".": "", "": "", "127.0.0.1": "", "127.1": "", "0x7f000001": "", "2130706433": "", "a.0x1f": "", "a.08": "", "1.test": "1.test", "::1": "", "a\x00b": "",
	} {
		if got, ok := egress.CleanName(text); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
}

func TestReachable(t *testing.T) {
	private := []netip.Prefix{netip.MustParsePrefix("10.7.0.0/16"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("100.64.0.0/10")}
	own := []netip.Addr{netip.MustParseAddr("93.184.216.99")}
	for addr, want := range map[string]bool{
		"93.184.216.34": true, "1.1.1.1": true, "2606:4700::1111": true, "64:ff9b::5db8:d822": true,
		"10.7.1.1": true, "::ffff:10.7.1.1": true, "fd00:1::1": true, "::ffff:93.184.216.34": true,

		"93.184.216.99": false, "::ffff:93.184.216.99": false, // ourselves
		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "127.0.0.1": false, "127.255.1.1": false, "169.254.1.1": false, "172.16.0.1": false,
		"172.31.255.255": false, "192.168.0.1": false, "192.0.0.1": false, "192.0.2.1": false, "198.18.0.1": false, "198.19.255.255": false,
		"198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "239.1.1.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"169.254.169.254": false, "169.254.170.2": false, "fd00:ec2::254": false, "168.63.129.16": false, "100.100.100.200": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fec0::1": false, "ff02::1": false, "2001:db8::1": false, "3fff::1": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "::93.184.216.34": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b::a00:1": false, "64:ff9b:1::1": false, "64:ff9b::a83f:8110": false,
		"2002:7f00:1::1": false, "2002:a9fe:a9fe::1": false, "2001::1": false, "2001:0:7f00:1::1": false, "100::1": false, "5f00::1": false,
	} {
		if got := egress.Reachable(netip.MustParseAddr(addr), private, own); got != want {
			t.Errorf("%s is %v, want %v", addr, got, want)
		}
	}
	if egress.Reachable(netip.Addr{}, nil, nil) {
		t.Error("no address is one")
	}
	meta := netip.MustParseAddr("169.254.169.254")
	if !egress.Reachable(meta, []netip.Prefix{netip.PrefixFrom(meta, 32)}, nil) {
		t.Error("an address that was opened by itself is closed")
	}
}

func TestBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b egress.Bucket
		for i := range 20 {
			if ok, _ := b.Take(10); !ok {
				t.Fatalf("the %d. of 20 is refused", i+1)
			}
		}
		ok, tell := b.Take(10)
		if ok || !tell {
			t.Errorf("one too many: %v, %v", ok, tell)
		}
		if ok, tell := b.Take(10); ok || tell {
			t.Errorf("a second one too many: %v, %v", ok, tell)
		}
		<-time.After(time.Second)
		for range 10 {
			if ok, _ := b.Take(10); !ok {
				t.Fatal("a second later")
			}
		}
		if ok, tell := b.Take(10); ok || !tell {
			t.Errorf("again one too many: %v, %v", ok, tell)
		}
		var bytes egress.Bucket
		if wait := bytes.Spend(2000, 1000); wait != 0 {
			t.Errorf("what is there: %s", wait)
		}
		if wait := bytes.Spend(500, 1000); wait != 500*time.Millisecond {
			t.Errorf("what is owed: %s", wait)
		}
		<-time.After(500 * time.Millisecond)
		if wait := bytes.Spend(1000, 1000); wait != time.Second {
			t.Errorf("what is owed later: %s", wait)
		}
	})
}

func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := egress.NewNames(egress.Range)
		first, ok := n.Address("a.test", 4)
		if !ok || !egress.Range.Contains(first) || first == netip.MustParseAddr("198.18.0.1") {
			t.Fatalf("first: %s, %v", first, ok)
		}
		for i := range 3 {
			if _, ok := n.Address(fmt.Sprintf("n%d.test", i), 4); !ok {
				t.Fatal(i)
			}
		}
		if a, ok := n.Address("more.test", 4); ok {
			t.Errorf("a fifth got %s", a)
		}
		<-time.After(9 * time.Minute)
		if a, ok := n.Address("a.test", 4); !ok || a != first {
			t.Errorf("again: %s, %v", a, ok)
		}
		<-time.After(2 * time.Minute)
		// Those that nobody asked for give way, in the order of their last use.
		for i := range 3 {
			if _, ok := n.Address(fmt.Sprintf("m%d.test", i), 4); !ok {
				t.Error(i)
			}
		}
		if name, ok := n.Name(first); !ok || name != "a.test" {
			t.Errorf("a.test gave way: %q", name)
		}
		if _, ok := n.Address("last.test", 4); ok {
			t.Error("one in use gave way")
		}
		if _, ok := n.Name(netip.MustParseAddr("198.18.0.1")); ok {
			t.Error("the name server stands for a name")
		}
	})
}

func TestConfigs(t *testing.T) {
	good := egress.Secret{Name: "key", Hosts: []string{"a.test"}, Header: "Authorization", Value: "Bearer hunter2"}
	if err := (egress.Config{Secrets: []egress.Secret{good}}).Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*egress.Secret){
		"no name":        func(s *egress.Secret) { s.Name = "" },
		"bad name":       func(s *egress.Secret) { s.Name = "a b" },
		"no host":        func(s *egress.Secret) { s.Hosts = nil },
		"bad host":       func(s *egress.Secret) { s.Hosts = []string{"*"} },
		"no header":      func(s *egress.Secret) { s.Header = "" },
		"bad header":     func(s *egress.Secret) { s.Header = "X-A: b\r\nX-C" },
		"host header":    func(s *egress.Secret) { s.Header = "host" },
		"length header":  func(s *egress.Secret) { s.Header = "Content-Length" },
		"no value":       func(s *egress.Secret) { s.Value = "" },
		"line break":     func(s *egress.Secret) { s.Value = "hunter2\r\nX-Evil: 1" },
		"bare newline":   func(s *egress.Secret) { s.Value = "hunter2\nX" },
		"zero":           func(s *egress.Secret) { s.Value = "hunter2\x00" },
		"space at end":   func(s *egress.Secret) { s.Value = "hunter2 " },
		"too long value": func(s *egress.Secret) { s.Value = strings.Repeat("hunter2", 1<<14) },
	} {
		s := good
		change(&s)
		err := egress.Config{Secrets: []egress.Secret{s}}.Check()
		if cove.CodeOf(err) != cove.Invalid || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v %s", good, good, good, good.LogValue()); strings.Contains(text, "hunter2") {
		t.Errorf("printed: %s", text)
	}
	for name, c := range map[string]egress.Config{
		"limit":       {Limits: egress.Limits{Connections: -1}},
		"names":       {Limits: egress.Limits{Names: 1 << 20}},
		"rate":        {Limits: egress.Limits{Rate: 5}},
		"range":       {Private: []netip.Prefix{{}}},
		"mapped":      {Private: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}},
		"many":        {Secrets: make([]egress.Secret, 100)},
		"certificate": {CA: &egress.Authority{Certificate: []byte("x")}},
		"list":        {Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"a b"}}},
	} {
		if err := c.Check(); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	ca, err := egress.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	if err := (egress.Config{CA: &egress.Authority{Certificate: ca.Certificate, Key: []byte("x")}}).Check(); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("key: %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", ca, ca, ca, ca.LogValue()); len(text) > 80 {
		t.Errorf("printed: %s", text)
	}
	if _, err := egress.Open(egress.Config{}, egress.Sockets{Range: netip.MustParsePrefix("127.0.0.0/24")}, egress.Options{}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a small range: %v", err)
	}
}
