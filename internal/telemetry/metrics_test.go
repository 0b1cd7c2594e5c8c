package telemetry_test

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/telemetry"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const golden = "testdata/metrics.txt"

// everything makes each metric have a value.
func (r *rig) everything() {
	r.t.Helper()
	ctx := r.t.Context()
	r.Serve(telemetry.Source{Platform: platform{}, Healthy: healthy})
	again := httptest.NewRequest(http.MethodPost, "/", nil)
	again.Header.Set("Cove-Retry", "session_expired")
	r.act(r.Request(again, "/api"), cove.Ending{Observed: of(cove.ProcessExec), Outcome: cove.TimedOut})
	r.act(ctx, cove.Ending{Observed: of(cove.ProcessExec), Outcome: cove.Blocked, Code: cove.Denied})
	r.act(ctx, cove.Ending{Observed: of(cove.FileWrite), Bytes: 7})
	for _, kind := range []string{cove.SessionCreated, cove.SessionReused, cove.ProgramEnded, cove.FileDownloaded, cove.PoolHit, "session.evicted"} {
		r.Note(ctx, cove.Happening{Observed: ann, Kind: kind})
	}
	r.Note(ctx, cove.Happening{Observed: ann, Kind: cove.RunEnded, Query: cove.QuerySQL, Status: "success"})
	r.Note(ctx, cove.Happening{Observed: ann, Kind: cove.SessionEnded, Cause: cove.ReasonSessionExpired})
	r.Answered(ctx, telemetry.Answer{Method: http.MethodGet, Route: "/api", Status: 200})
}

// TestNames compares names, kinds and labels with the golden file: a change to
// one of them breaks dashboards and alerts of operators.
func TestNames(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	r := start(t, func(c *telemetry.Config) { c.Endpoint = collector.URL })
	r.everything()
	if err := r.Close(t.Context()); err != nil { // the spans are counted when they are sent
		t.Fatal(err)
	}
	got := names(r.scraped())
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("names of metrics are what operators build on; keep the old ones, or run with -update and say so in CHANGELOG.md (-want +got):\n%s", diff)
	}
}

// TestSeldomIsThereFromTheStart: alerts ask for the rate of these, and a series
// whose first value is 1 has none.
func TestSeldomIsThereFromTheStart(t *testing.T) {
	text := start(t).scraped()
	for _, line := range []string{
		`cove_notes_total{kind="session.lost",provider="local"} 0`,
		`cove_sessions_expired_total{provider="local"} 0`,
		`cove_sessions_ended_total{cause="node_lost",provider="fake"} 0`,
		`cove_limit_violations_total{limit="memory",provider="fake"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
}

// names lists our metrics in an exposition with their types and labels.
func names(text string) string {
	kind, labels := map[string]string{}, map[string]map[string]bool{}
	label := regexp.MustCompile(`([a-z_]+)="`)
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); f[0] == "#" {
			if f[1] == "TYPE" && strings.HasPrefix(f[2], "cove_") {
				kind[f[2]], labels[f[2]] = f[3], map[string]bool{}
			}
			continue
		}
		name, _, _ := strings.Cut(line, "{")
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		for _, m := range label.FindAllStringSubmatch(line, -1) {
			if set := labels[name]; set != nil && m[1] != "le" {
				set[m[1]] = true
			}
		}
	}
	var out []string
	for name, k := range kind {
		var list []string
		for l := range labels[name] {
			list = append(list, l)
		}
		slices.Sort(list)
		out = append(out, strings.TrimSpace(name+" "+k+" "+strings.Join(list, ","))+"\n")
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

func TestLabelsAreBounded(t *testing.T) {
	r := start(t)
	r.everything()
	for _, l := range regexp.MustCompile(`(?m)^cove_\S*(tenant|user|thread|session|principal)="`).FindAllString(r.scraped(), -1) {
		t.Errorf("%s is a label that callers choose", l)
	}
	odd := of(cove.ProcessExec)
	odd.Provider = "made up\xff"
	r.act(t.Context(), cove.Ending{Observed: odd, Code: "odd\xff", Outcome: cove.Exited})
	r.Note(t.Context(), cove.Happening{Observed: odd, Kind: "odd\xff"})
	r.Note(t.Context(), cove.Happening{Observed: odd, Kind: cove.SessionEnded, Cause: "odd\xff"})
	r.Answered(t.Context(), telemetry.Answer{Method: "ODD\xff", Status: 404})
	r.wants(
		`cove_actions_total{code="other",provider="other",verb="process.exec"} 1`,
		`cove_notes_total{kind="other",provider="other"} 1`,
		`cove_sessions_ended_total{cause="other",provider="other"} 1`,
		`cove_http_requests_total{method="other",route="none",status="404"} 1`,
	)
}

func TestCommands(t *testing.T) {
	r := start(t)
	for _, e := range []cove.Ending{
		{Observed: of(cove.ProcessExec), Outcome: cove.Exited},
		{Observed: of(cove.ProcessExec), Outcome: cove.Exited, ExitCode: 3},
		{Observed: of(cove.ProcessExec), Outcome: cove.OutOfMemory, ExitCode: 137},
		{Observed: of(cove.ProcessExec), Outcome: cove.Blocked, Code: cove.Denied},
		{Observed: of(cove.ProcessExec), Code: cove.NotFound, Reason: cove.ReasonSessionExpired},
		{Observed: of(cove.ContextRun), Outcome: cove.Exited},
		{Observed: of(cove.ProcessStart)}, // it is a command when it ends
		{Observed: of(cove.ProcessStart), Code: cove.Exhausted},
		{Observed: of(cove.SessionOpen), Code: cove.Exhausted, Reason: cove.ReasonTenantQuota},
		{Observed: of(cove.SessionOpen), Code: cove.Invalid},
	} {
		r.act(t.Context(), e)
	}
	r.Note(t.Context(), cove.Happening{Observed: ann, Kind: cove.ProgramEnded, Outcome: cove.TimedOut, ExitCode: -1, Wall: time.Minute})
	r.wants(
		`cove_commands_total{outcome="ok",provider="fake",verb="process.exec"} 1`,
		`cove_commands_total{outcome="failed",provider="fake",verb="process.exec"} 1`,
		`cove_commands_total{outcome="out_of_memory",provider="fake",verb="process.exec"} 1`,
		`cove_commands_total{outcome="blocked",provider="fake",verb="process.exec"} 1`,
		`cove_commands_total{outcome="error",provider="fake",verb="process.exec"} 1`,
		`cove_commands_total{outcome="ok",provider="fake",verb="context.run"} 1`,
		`cove_commands_total{outcome="error",provider="fake",verb="process.start"} 1`,
		`cove_commands_total{outcome="timed_out",provider="fake",verb="process.start"} 1`,
		`cove_command_duration_seconds_count{provider="fake",verb="process.exec"} 3`,
		`cove_limit_violations_total{limit="memory",provider="fake"} 1`,
		`cove_limit_violations_total{limit="time",provider="fake"} 1`,
		`cove_limit_violations_total{limit="tenant_quota",provider="fake"} 1`,
		`cove_validation_failures_total{provider="fake",verb="process.exec"} 1`,
		`cove_validation_failures_total{provider="fake",verb="session.open"} 1`,
		`cove_journal_duration_seconds_count{part="outcome"} 10`,
	)
}

func TestRetries(t *testing.T) {
	r := start(t)
	req := httptest.NewRequest(http.MethodPost, "/", nil)
	r.act(r.Request(req, "/x"), cove.Ending{Observed: of(cove.ProcessExec), Outcome: cove.Exited})
	req.Header.Set("Cove-Retry", "session_expired")
	r.act(r.Request(req, "/x"), cove.Ending{Observed: of(cove.ProcessExec), Outcome: cove.Exited, ExitCode: 1})
	r.act(r.Request(req, "/x"), cove.Ending{Observed: of(cove.ProcessExec), Code: cove.Unavailable})
	r.wants(
		`cove_retries_total{outcome="success",provider="fake",verb="process.exec"} 1`,
		`cove_retries_total{outcome="failure",provider="fake",verb="process.exec"} 1`,
	)
}

func TestScrapesAskTheServer(t *testing.T) {
	r := start(t)
	if text := r.scraped(); strings.Contains(text, "cove_uptime") || !strings.Contains(text, `cove_build_info{goversion="go1`) {
		t.Error("before there is a server to ask, only the build is known")
	}
	r.Serve(telemetry.Source{Platform: platform{}, Healthy: healthy})
	r.wants(
		"cove_healthy 1", "cove_uptime_seconds 60", `cove_sessions{state="running"} 3`, `cove_sessions{state="paused"} 0`,
		`cove_sessions_active{flavor="small"} 2`, `cove_sessions_active{flavor="odd_"} 1`, "cove_session_reuse_ratio 0.25",
		"cove_pool_available 3", "cove_sessions_queued 1", `cove_task_paused{task="expiry"} 1`, `cove_task_failing{task="orphans"} 1`,
		`cove_task_runs_total{task="expiry"} 5`,
	)
	r.Serve(telemetry.Source{Platform: platform{err: errors.New("no")}, Healthy: func(ctx context.Context) bool {
		if _, end := r.Begin(ctx, of(cove.AdminStats)); end != nil {
			t.Error("a scrape counts itself as an action")
		}
		return false
	}})
	r.wants("cove_healthy 0")
}

// TestRuns: words that are not ours make no series.
func TestRuns(t *testing.T) {
	r := start(t)
	for _, h := range []cove.Happening{
		{Query: cove.QuerySQL, Status: "success"},
		{Query: cove.QueryPython, Status: "timeout", Fault: cove.RunTimeout},
		{Query: "cobol", Status: "odd", Fault: "ODD"},
	} {
		h.Observed, h.Kind, h.Wall = ann, cove.RunEnded, time.Second
		r.Note(t.Context(), h)
	}
	r.wants(
		`cove_runs_total{error_type="none",provider="fake",query_type="sql",status="success"} 1`,
		`cove_runs_total{error_type="RUNNER_TIMEOUT",provider="fake",query_type="python",status="timeout"} 1`,
		`cove_runs_total{error_type="other",provider="fake",query_type="other",status="other"} 1`,
		`cove_run_seconds_count{provider="fake",query_type="sql"} 1`,
	)
}
