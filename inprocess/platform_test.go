package inprocess_test

import (
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/platformtest"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestMain(m *testing.M) {
	inprocess.Main()
	// A keeper ends some seconds after it has nothing to hold; its parent waits.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/cove-sandbox/cove/internal/keeper.start.func2"))
}

// TestPlatform runs a part of the suite on what Open returns; the engine's own
// test runs all of it. What has no setting is left out.
func TestPlatform(t *testing.T) {
	platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
		return openHarness(t, "fake", o, platformtest.Fake())
	}, tier.Pick([]string{"expiry", "retry", "restart"}, "sessions", "expiry", "retry", "restart")...)
}

// TestPlatformOfRealSandboxes runs less of it on sandboxes of this machine.
func TestPlatformOfRealSandboxes(t *testing.T) {
	needLocal(t)
	platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
		return openHarness(t, "local", o, platformtest.Extras{})
	}, tier.Pick([]string{"exec"}, "reuse", "retry", "exec", "named_volumes")...)
}

// needLocal skips the test where this machine cannot make sandboxes.
func needLocal(t *testing.T) {
	t.Helper()
	p, err := local.New(local.Config{Dir: providertest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	providertest.Ready(t, p)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// harness is a program with a platform inside.
type harness struct {
	t      *testing.T
	config inprocess.Config
	extras platformtest.Extras
	in     *inprocess.Platform
}

func openHarness(t *testing.T, provider string, o platformtest.Options, extras platformtest.Extras) *harness {
	t.Helper()
	if o.QueueLength > 0 || o.OutputKept > 0 || o.OutputBudget > 0 || o.MaxFileSize > 0 || o.Flavors != nil || o.Volumes != nil || o.Shared != nil {
		t.Skip("no setting says this")
	}
	h := &harness{t: t, extras: extras, config: inprocess.Config{
		Home: filepath.Join(t.TempDir(), "home"), Provider: provider,
		NoAutoRetry: o.AutoRetry != nil && !*o.AutoRetry,
		Settings: map[string]string{
			"POOL_SIZE": "0", "MSB_MAX_TOTAL_MEMORY_MB": "1048576", "MSB_ENABLE_LRU_EVICTION": strconv.FormatBool(o.Evict),
		},
	}}
	if o.MaxSessions > 0 {
		h.config.Settings["MSB_MAX_SESSIONS"] = strconv.Itoa(o.MaxSessions)
	}
	if o.MaxMemory > 0 {
		h.config.Settings["MSB_MAX_TOTAL_MEMORY_MB"] = strconv.FormatInt(int64(o.MaxMemory/cove.MiB), 10)
	}
	if o.VolumeSize > 0 {
		h.config.Settings["COVE_VOLUME_MB"] = strconv.FormatInt(int64(o.VolumeSize/cove.MiB), 10)
	}
	if o.MaxVolumes > 0 {
		h.config.Settings["COVE_MAX_VOLUMES"] = strconv.Itoa(o.MaxVolumes)
	}
	if o.ExecTimeout > 0 {
		h.config.Settings["SANDBOX_TIMEOUT_SEC"] = strconv.FormatFloat(o.ExecTimeout.Seconds(), 'f', -1, 64)
	}
	if err := h.open(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *harness) open() (err error) {
	h.in, err = inprocess.Open(h.t.Context(), h.config)
	return err
}

func (h *harness) As(p cove.Principal) cove.Platform { return h.in.As(p) }

func (h *harness) Extras() platformtest.Extras { return h.extras }

func (h *harness) Close() {
	if err := h.in.Close(); err != nil {
		h.t.Error(err)
	}
}

func (h *harness) Restart() error {
	if h.config.Provider != "fake" {
		return errors.ErrUnsupported // its sandboxes end with the program
	}
	h.Close()
	return h.open()
}

// TestKeep: sandboxes end with the program, unless they are to be kept.
func TestKeep(t *testing.T) {
	needLocal(t)
	for _, keep := range []bool{false, true} {
		cfg := inprocess.Config{Home: filepath.Join(t.TempDir(), "home"), Provider: "local", Keep: keep, Settings: settings()}
		p := open(t, cfg)
		s, err := p.Sessions().Open(t.Context(), cove.OpenRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		p = open(t, cfg)
		x, err := p.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "true"})
		switch {
		case keep && (err != nil || x.Session != s.ID):
			t.Errorf("a sandbox that was kept: %+v, %v", x, err)
		case !keep && cove.ReasonOf(err) != cove.ReasonNodeLost:
			t.Errorf("a sandbox that was not kept: %+v, %v", x, err)
		case keep:
			if _, err := p.Sessions().Close(t.Context(), s.ID, false); err != nil {
				t.Error(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
