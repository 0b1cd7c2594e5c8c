package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cli"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/measure"
	"github.com/cove-sandbox/cove/provider/fake"
)

// asCove is what makes this executable play cove.
const asCove = "COVE_BENCH_PLAYS_COVE=1"

func TestMain(m *testing.M) {
	name, value, _ := strings.Cut(asCove, "=")
	if os.Getenv(name) == value {
		os.Exit(cli.Main())
	}
	if mood := os.Getenv(playHelper); mood != "" {
		helper(mood)
	}
	goleak.VerifyTestMain(m)
}

// curling is a provider in whose sandboxes curl says something, whatever it is
// asked for.
type curling struct {
	cove.Provider

	says string
}

func (c curling) Unwrap() cove.Provider { return c.Provider }

func (c curling) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	box, err := c.Provider.Create(ctx, id, spec)
	return curlingBox{box, c.says}, err
}

type curlingBox struct {
	cove.Sandbox

	says string
}

func (c curlingBox) Unwrap() cove.Sandbox { return c.Sandbox }

func (c curlingBox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	if cmd.Argv[0] == "curl" {
		cmd.Argv = []string{"echo", c.says}
	}
	return c.Sandbox.Start(ctx, cmd)
}

func pretend(t *testing.T, cfg fake.Config, says string) cove.Provider {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	p, err := fake.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return curling{p, says}
}

// small is little of everything.
func small(t *testing.T) livingOptions {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return livingOptions{
		rounds: 1, fill: "mkdir data && echo x >data/file", download: 1 << 20, patience: time.Minute,
		restart: restartOptions{cove: self, env: []string{asCove}, provider: "fake", sessions: 3, rounds: 1, patience: time.Minute},
	}
}

// TestLivingRows proves that everything is measured, on a pretend provider; the
// numbers are not looked at.
func TestLivingRows(t *testing.T) {
	_, err := exec.LookPath("curl")
	linuxtest.Need(t, err)
	rows, err := livingRows(t.Context(), small(t), func(dir string) (cove.Provider, error) {
		p, err := fake.New(fake.Config{Dir: dir})
		return curling{p, "0.002"}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 7 {
		t.Errorf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.name == "" || r.measured == "" || r.baseline == "" || r.must == 0 {
			t.Errorf("%+v lacks something", r)
		}
	}
}

func TestLivingRowsSayWhatIsWrong(t *testing.T) {
	broken := errors.New("broken")
	if _, err := livingRows(t.Context(), small(t), func(string) (cove.Provider, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("a provider that does not open: %v", err)
	}
	fails := func(at string) fake.Config {
		return fake.Config{Hook: func(step string, _ cove.ID) error {
			if step == at {
				return broken
			}
			return nil
		}}
	}
	type part = func(context.Context, livingOptions, cove.Provider) ([]row, error)
	for name, c := range map[string]struct {
		part part
		cfg  fake.Config
		want string
	}{
		"no snapshots":  {savedRows, fake.Config{Powers: []cove.Power{cove.PowerFork}}, "makes no snapshots"},
		"no forks":      {savedRows, fake.Config{Powers: []cove.Power{cove.PowerSnapshot}}, "makes no forks"},
		"no trials":     {trialRows, fake.Config{Powers: []cove.Power{}}, "has no trials"},
		"no sandbox":    {trialRows, fails("create.begin"), "broken"},
		"no program":    {savedRows, fails("start"), "broken"},
		"snapshot":      {savedRows, fails("snapshot"), "broken"},
		"fork":          {savedRows, fails("fork"), "broken"},
		"try":           {trialRows, fails("try"), "broken"},
		"changes":       {trialRows, fails("changes"), "broken"},
		"commit":        {trialRows, fails("commit"), "broken"},
		"not a time":    {egressRows, fake.Config{}, "instead of a time"},
		"left standing": {egressRows, fails("destroy.begin"), "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			o := small(t)
			o.dir = t.TempDir()
			c.cfg.Dir = o.dir
			if _, err := c.part(t.Context(), o, pretend(t, c.cfg, "nothing")); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestASnapshotThatIsNeverWritten(t *testing.T) {
	o := livingOptions{dir: t.TempDir(), patience: time.Millisecond}
	if err := o.written(t.Context(), "name"); err == nil || !strings.Contains(err.Error(), "not on the disk") {
		t.Error(err)
	}
}

func TestRunIn(t *testing.T) {
	p := pretend(t, fake.Config{}, "")
	err := inSandbox(t.Context(), p, cove.Network{}, func(box cove.Sandbox) error { return line(box, "echo no luck >&2; exit 3")(t.Context()) })
	if err == nil || !strings.Contains(err.Error(), "exit code 3: no luck") {
		t.Error(err)
	}
}

// A rate that the host itself does not have is not asked for.
func TestRateRow(t *testing.T) {
	second := measure.Series{time.Second}
	for size, want := range map[cove.Bytes]float64{4_000_000_000: 150, 400_000_000: 100} {
		if r := rateRow(size, pair{second, second}); r.must != want || !r.ok() {
			t.Errorf("%d: %+v", size, r)
		}
	}
}

func TestSite(t *testing.T) {
	s, err := newSite(t.Context(), 3<<20+1)
	if err != nil {
		t.Fatal(err)
	}
	for page, size := range map[string]int64{"/": 0, "/download": 3<<20 + 1} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.server.Addr+page, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK || resp.ContentLength != size {
			t.Errorf("%s: %s, %d bytes", page, resp.Status, resp.ContentLength)
		}
		_ = resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

func TestRestartRowSaysWhatIsWrong(t *testing.T) {
	o := small(t).restart
	o.cove = filepath.Join(t.TempDir(), "cove")
	if _, err := restartRow(t.Context(), o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no cove: %v", err)
	}
	o.cove, o.patience = script(t, "cove", "echo no luck >&2; exec sleep 60"), 100*time.Millisecond
	if _, err := restartRow(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("a cove that does not work: %v", err)
	}
	o = small(t).restart
	o.provider = "none"
	if _, err := restartRow(t.Context(), o); err == nil || !strings.Contains(err.Error(), "it has ended") {
		t.Errorf("a provider that there is not: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := restartRow(ended, small(t).restart); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

// A server that is gone is started once more, to close what it held.
func TestEndOfAKilledHome(t *testing.T) {
	h := newHome(small(t).restart, filepath.Join(t.TempDir(), "home"))
	defer h.stop(syscall.SIGKILL)
	if err := h.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := h.client.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	h.sessions = []cove.ID{s.ID}
	h.stop(syscall.SIGKILL)
	if err := h.end(t.Context()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(h.dir, "providers", "fake", "0*")); len(left) > 0 || h.cmd != nil {
		t.Errorf("left: %v", left)
	}
	h.sessions = []cove.ID{cove.NewID()}
	if err := h.end(t.Context()); !errors.Is(err, cove.NotFound) {
		t.Errorf("a session that is not there: %v", err)
	}
}
