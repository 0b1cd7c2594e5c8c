package fake_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
)

func trier(t *testing.T, s cove.Sandbox) cove.Trier {
	t.Helper()
	r, ok := cove.As[cove.Trier](s)
	if !ok {
		t.Fatal("the sandbox takes nothing on trial")
	}
	return r
}

// A discard that a crash cut short between its two steps is finished by the next
// who opens the sandbox.
func TestDiscardCutShort(t *testing.T) {
	dir, id := t.TempDir(), cove.NewID()
	p := open(t, fake.Config{Dir: dir})
	s, err := p.Create(t.Context(), id, cove.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, "f", "old")
	if _, err := trier(t, s).Try(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, s, "f", "new")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	box := filepath.Join(dir, string(id))
	if err := os.Rename(filepath.Join(box, "tree", "workspace"), filepath.Join(box, "gone")); err != nil {
		t.Fatal(err)
	}
	s, err = open(t, fake.Config{Dir: dir}).Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(t.Context(), s, "f"); got != "old" || err != nil {
		t.Errorf("the file holds %q, %v", got, err)
	}
	keeper, _ := cove.As[cove.TrialKeeper](s)
	if _, err := keeper.Tried(t.Context()); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("the trial is there still: %v", err)
	}
	trial, err := trier(t, s).Try(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := trial.Discard(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(box, "gone")); err == nil {
		t.Error("what the discard took away is there still")
	}
}

// Who watches a workspace that is put back must look for himself.
func TestDiscardStartlesWatchers(t *testing.T) {
	s := sandbox(t, cove.Spec{})
	trial, err := trier(t, s).Try(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for c, err := range s.Files().Watch(ctx, ".") {
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Kind == cove.Watching:
			if err := trial.Discard(t.Context()); err != nil {
				t.Fatal(err)
			}
		case c.Kind == cove.Overflow:
			return
		default:
			t.Errorf("%+v", c)
		}
	}
	t.Error("nobody told the watcher")
}

func TestTrialHooks(t *testing.T) {
	fails := errors.New("injected")
	step := ""
	p := open(t, fake.Config{Hook: func(at string, _ cove.ID) error {
		if at == step {
			return fails
		}
		return nil
	}})
	s, err := p.Create(t.Context(), cove.NewID(), cove.Spec{Network: cove.Network{Mode: cove.NetworkOpen}})
	if err != nil {
		t.Fatal(err)
	}
	trial, err := trier(t, s).Try(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keeper, _ := cove.As[cove.TrialKeeper](s)
	egress, _ := cove.As[cove.Egress](s)
	for at, call := range map[string]func() error{
		"try":     func() error { _, err := trier(t, s).Try(t.Context()); return err },
		"tried":   func() error { _, err := keeper.Tried(t.Context()); return err },
		"commit":  func() error { return trial.Commit(t.Context()) },
		"discard": func() error { return trial.Discard(t.Context()) },
		"changes": func() error {
			for _, err := range trial.Changes(t.Context()) {
				return err
			}
			return nil
		},
		"network": func() error { return egress.SetNetwork(t.Context(), cove.Network{Mode: cove.NetworkNone}) },
		"connections": func() error {
			for _, err := range egress.Connections(t.Context(), 0) {
				return err
			}
			return nil
		},
	} {
		step = at
		if err := call(); !errors.Is(err, fails) {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestCurl(t *testing.T) {
	s := sandbox(t, cove.Spec{Network: cove.Network{Mode: cove.NetworkAllow, Allow: []string{"example.com", "*.example.com:8080", "nobody.example"}}})
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"http://example.com/", 0, "hello"},
		{"-fsS -m 5 https://EXAMPLE.com", 0, "hello"},
		{"http://example.com:8080/", 7, "not on the list"},
		{"http://www.example.com/", 7, "not on the list"},
		{"http://www.example.com:8080/", 7, "does not answer"},
		{"http://nobody.example/", 7, "does not answer"},
		{"http://8.8.8.8/", 7, "addresses are not on the list"},
		{"http://[fe80::1]/", 7, "private"},
		{"ftp://example.com/", 3, "rejected"},
		{"http:///", 3, "rejected"},
		{"http://example.com:99999/", 3, "port"},
		{"http://" + strings.Repeat("a", 300) + "/", 6, "too long"},
		{"", 2, "usage"},
		{"-x http://example.com", 2, "usage"},
	} {
		if r := sh(t, s, "curl "+c.args); r.ExitCode != c.code || !strings.Contains(r.stdout+r.stderr, c.says) {
			t.Errorf("curl %.60s: code %d, want %d\n%s%s", c.args, r.ExitCode, c.code, r.stdout, r.stderr)
		}
	}
	if r := sh(t, sandbox(t, cove.Spec{}), "curl http://example.com/"); r.ExitCode != 6 {
		t.Errorf("without a network: %+v", r)
	}
}

// The log has a bound, and its numbers go on.
func TestConnectionsAreBounded(t *testing.T) {
	s := sandbox(t, cove.Spec{Network: cove.Network{Mode: cove.NetworkOpen}})
	if r := sh(t, s, "for i in $(seq 1 1100); do curl http://example.com/; done > /dev/null"); r.ExitCode != 0 {
		t.Fatal(r.stderr)
	}
	egress, _ := cove.As[cove.Egress](s)
	var first, n int64
	for c, err := range egress.Connections(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 1 {
			first = c.Number
		}
	}
	if first != 77 || n != 1024 {
		t.Errorf("%d connections are kept, from %d on", n, first)
	}
	for _, n := range []cove.Network{{}, {Mode: "wide"}, {Mode: cove.NetworkOpen, Secrets: []string{"key"}}} {
		if err := egress.SetNetwork(t.Context(), n); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%+v: %v", n, err)
		}
	}
}
