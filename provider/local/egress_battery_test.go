//go:build linux

package local_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/local/fence"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// worldly is a provider whose sandboxes reach the attacker's world and nothing
// else.
type worldly struct {
	cove.Provider

	world *escape.World
}

func (w worldly) Unwrap() cove.Provider { return w.Provider }
func (w worldly) World() *escape.World  { return w.world }

// openWorldly bounds how many names a sandbox may use.
func openWorldly(t *testing.T) cove.Provider {
	t.Helper()
	w, err := escape.NewWorld()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	w.MostNames = 64
	return worldly{openOut(t, func(c *local.Config) {
		c.SetWorld(w)
		c.Egress.Limits.Names = w.MostNames
	}), w}
}

// withstand makes attacks that must all be stopped.
func withstand(t *testing.T, p cove.Provider, o escape.Options) (tried int) {
	t.Helper()
	for f, err := range escape.Run(t.Context(), p, o) {
		if err != nil {
			t.Fatal(err)
		}
		if f.GotThrough() {
			t.Errorf("%+v", f)
		}
		if f.Skipped == "" {
			tried++
		}
		t.Logf("%s by %s: %s%s%s", f.Attack, f.Via, f.By, f.Detail, f.Skipped)
	}
	return tried
}

// TestEgressBattery makes all attacks from sandboxes that have a network, and in
// one case all else that a sandbox can have: it must be no way around any other
// wall.
func TestEgressBattery(t *testing.T) {
	p := openWorldly(t)
	for _, arrangement := range []escape.Arrangement{escape.Everything, escape.Opened} {
		t.Run(string(arrangement), func(t *testing.T) {
			if tried := withstand(t, p, escape.Options{Via: []escape.Via{escape.Exec}, Arrangement: arrangement}); tried < 60 {
				t.Errorf("only %d attacks were made", tried)
			}
		})
	}
}

// TestEscapesOutside makes the attacks on the way out, by every way in, where the
// attacker has servers and names of his own.
func TestEscapesOutside(t *testing.T) {
	var names []string
	for _, a := range escape.Battery() {
		if strings.HasPrefix(a.Name, "egress_") {
			names = append(names, a.Name)
		}
	}
	if tried := withstand(t, openWorldly(t), escape.Options{Only: names}); tried != 3*len(names) {
		t.Errorf("%d of %d attacks were made", tried, 3*len(names))
	}
}

// TestEscapesOutsideUser is the same as an ordinary user.
func TestEscapesOutsideUser(t *testing.T) {
	tier.Full(t, "TestEscapesOutside runs as root")
	linuxtest.Again(t, "^TestEscapesOutside$")
}

func TestUnopened(t *testing.T) {
	for want, errs := range map[cove.Code][]error{
		cove.Conflict:    {syscall.EADDRINUSE, &fence.Fault{Step: "bind", Errno: syscall.EADDRINUSE}},
		cove.Unavailable: {syscall.EPERM, errors.New("else"), fence.ErrEnded},
		cove.Canceled:    {context.Canceled},
		cove.Exhausted:   {cove.Errorf(cove.Exhausted, "full")},
	} {
		for _, err := range errs {
			if got := local.Unopened(err); cove.CodeOf(got) != want {
				t.Errorf("%v is %v", err, got)
			}
		}
	}
}

// A list that nobody reads to its end, and one whose reader is gone.
func TestEgressConnections(t *testing.T) {
	p := openOut(t, nil)
	s, e := reach(t, p, allowed("good.test"))
	run(t, s, "getent hosts one.test two.test three.test")
	n := 0
	for c, err := range e.Connections(t.Context(), 0) {
		if err != nil || c.Host != "one.test" {
			t.Errorf("%+v, %v", c, err)
		}
		n++
		break
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range e.Connections(ended, 0) {
		n++
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
	}
	if n != 2 {
		t.Errorf("%d were seen", n)
	}
	// A full /tmp has no room for whom to trust.
	run(t, s, "head -c 1000000000 /dev/zero > /tmp/full")
	more := allowed("good.test")
	more.Secrets = []string{"key"}
	if err := e.SetNetwork(t.Context(), more); cove.CodeOf(err) != cove.Exhausted {
		t.Errorf("without room: %v", err)
	}
	run(t, s, "rm /tmp/full")
	if err := e.SetNetwork(t.Context(), more); err != nil {
		t.Error(err)
	}
}
