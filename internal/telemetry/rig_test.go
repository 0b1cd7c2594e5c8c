package telemetry_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a Telemetry with what it wrote.
type rig struct {
	*telemetry.Telemetry

	t   *testing.T
	log *bytes.Buffer
}

func start(t *testing.T, change ...func(*telemetry.Config)) *rig {
	t.Helper()
	r := &rig{t: t, log: &bytes.Buffer{}}
	drop := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	cfg := telemetry.Config{
		Version: "1.2.3", Node: "n1", Providers: []string{"fake", "local"},
		Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{ReplaceAttr: drop})),
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if r.Telemetry, err = telemetry.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

// scraped returns the metrics as Prometheus reads them.
func (r *rig) scraped() string {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		r.t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// wants looks for lines among the metrics.
func (r *rig) wants(lines ...string) {
	r.t.Helper()
	text := r.scraped()
	for _, l := range lines {
		if !strings.Contains("\n"+text, "\n"+l+"\n") {
			r.t.Errorf("the metrics have no line %q; they have:\n%s", l, related(text, l))
		}
	}
}

func related(text, line string) string {
	name, _, _ := strings.Cut(line, "{")
	var found []string
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, name) {
			found = append(found, l)
		}
	}
	return strings.Join(found, "")
}

var ann = cove.Observed{Principal: "key1", Tenant: "acme", Session: "s1", Provider: "fake", User: "ann", Thread: "t9"}

// act plays an action that took 20 ms.
func (r *rig) act(ctx context.Context, e cove.Ending) {
	r.t.Helper()
	_, end := r.Begin(ctx, e.Observed)
	e.Began = time.Unix(1_000_000, 0)
	e.Decided, e.Intended = e.Began.Add(time.Millisecond), e.Began.Add(2*time.Millisecond)
	e.Done, e.Ended = e.Began.Add(18*time.Millisecond), e.Began.Add(20*time.Millisecond)
	end(e)
}

// of is ann's use of a verb.
func of(verb cove.Verb) cove.Observed {
	o := ann
	o.Verb = verb
	return o
}

// platform answers what a scrape asks.
type platform struct {
	cove.Platform

	err error
}

func (p platform) Admin() cove.Admin { return admin{err: p.err} }

type admin struct {
	cove.Admin

	err error
}

func (a admin) Stats(context.Context) (*cove.Stats, error) {
	return &cove.Stats{
		MaxSessions: 8, SessionsByFlavor: map[string]int{"small": 2, "odd\xff": 1}, SessionsByState: map[cove.State]int{cove.Running: 3},
		Memory: 3 * cove.GiB, MaxMemory: 8 * cove.GiB, CPUs: 3, Uptime: time.Minute, PoolSize: 4, PoolAvailable: 3, Queued: 1, Opened: 4, Reused: 1,
	}, a.err
}

func (a admin) Tasks(context.Context) ([]cove.TaskStatus, error) {
	return []cove.TaskStatus{
		{Name: "expiry", State: cove.TaskPaused, Runs: 5, Done: 2},
		{Name: "orphans", State: cove.TaskWaiting, Runs: 1, LastError: "x"},
	}, a.err
}

func healthy(context.Context) bool { return true }
