//go:build linux

package local_test

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/local/fence"
	"github.com/cove-sandbox/cove/provider/providertest/escape"
)

// networked gives every sandbox a network.
type networked struct {
	cove.Provider

	network cove.Network
}

func (n networked) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	spec.Network = n.network
	return n.Provider.Create(ctx, id, spec)
}

// answered are the attacks that take an answer for a way through. Of an open
// network every address is in the sandbox itself, where its own kernel answers;
// TestEgressOpen says what lies behind.
var answered = map[string]bool{"private_addresses": true, "metadata_addresses": true, "public_addresses": true}

// TestEgressBattery makes all attacks from sandboxes that have a network: it must
// be no way around any other wall.
func TestEgressBattery(t *testing.T) {
	p := openOut(t, nil)
	for name, n := range map[string]cove.Network{
		"allow": {Mode: cove.NetworkAllow, Allow: []string{"good.test"}, Secrets: []string{"key"}},
		"open":  {Mode: cove.NetworkOpen},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			for f, err := range escape.Run(t.Context(), networked{p, n}, escape.Options{Via: []escape.Via{escape.Exec}}) {
				if err != nil {
					t.Fatal(err)
				}
				if f.GotThrough() && !(n.Mode == cove.NetworkOpen && answered[f.Attack]) {
					t.Errorf("%+v", f)
				}
				if f.Skipped == "" {
					tried++
				}
			}
			if tried < 30 {
				t.Errorf("only %d attacks were made", tried)
			}
		})
	}
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
