package escape_test

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

func TestWorld(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	w, err := escape.NewWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	for name, want := range map[string]string{
		"good.escape.test": "[93.184.216.34]", "both.escape.test": "[93.184.216.34 10.11.12.13]", "inner.escape.test": "[10.11.12.13]",
		"meta.escape.test": "[169.254.169.254]", "x.tunnel.escape.test.": "[93.184.216.34]", "localhost": "[127.0.0.1]", "switch.escape.test": "[93.184.216.35]",
	} {
		if got, err := w.Lookup(t.Context(), name); err != nil || strings.Trim(strings.Join(texts(got), " "), "[]") != strings.Trim(want, "[]") {
			t.Errorf("%s is %v, %v", name, got, err)
		}
	}
	if got, err := w.Lookup(t.Context(), "none.test"); err == nil {
		t.Errorf("a name that is not there: %v", got)
	}
	first, _ := w.Lookup(t.Context(), "turn.escape.test")
	second, _ := w.Lookup(t.Context(), "turn.escape.test")
	if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
		t.Errorf("answers that change: %v, %v", first, second)
	}
	anything := func(netip.AddrPort) error { return nil }
	for request, want := range map[string]string{
		"GET / HTTP/1.0\r\n": "this is the host", "GET /?to=http://x/ HTTP/1.0\r\n": "Location: http://x/\r\n", "x\n": "", "x": "",
	} {
		c, err := w.Dial(t.Context(), netip.MustParseAddrPort("93.184.216.34:80"), anything)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, request)
		if request == "x" {
			c.Close()
			continue
		}
		got, _ := io.ReadAll(c)
		c.Close()
		if !strings.Contains(string(got), want) || (want == "") != (len(got) == 0) {
			t.Errorf("%q is answered with %q", request, got)
		}
	}
	no := errors.New("no")
	for _, to := range []string{"93.184.216.34:80", "93.184.216.35:80"} {
		if _, err := w.Dial(t.Context(), netip.MustParseAddrPort(to), func(netip.AddrPort) error { return no }); !errors.Is(err, no) {
			t.Errorf("against the check: %v", err)
		}
	}
	for _, to := range []string{"93.184.216.35:80", "10.0.0.1:80", "[64:ff9b::a9fe:a9fe]:80", "[::1]:80"} {
		if _, err := w.Dial(t.Context(), netip.MustParseAddrPort(to), anything); err == nil {
			t.Errorf("%s is there", to)
		}
	}
}

func texts(list []netip.Addr) []string {
	var all []string
	for _, a := range list {
		all = append(all, a.String())
	}
	return all
}

// TestArrangements: what a provider cannot have is said, and not left out.
func TestArrangements(t *testing.T) {
	for arrangement, code := range map[escape.Arrangement]cove.Code{"upside down": cove.Invalid, escape.Opened: cove.Unsupported, escape.Allowed: cove.Unsupported, escape.Everything: cove.Unsupported} {
		_, err := escape.RunOne(t.Context(), bare{newFake(t, fake.Config{})}, "file_names", escape.Files, escape.Options{Arrangement: arrangement})
		if cove.CodeOf(err) != code {
			t.Errorf("%s: %v", arrangement, err)
		}
	}
}
