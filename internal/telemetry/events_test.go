package telemetry_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/telemetry"
)

const who = "tenant=acme user=ann thread=t9 session=s1 provider=fake"

// TestEvents has each of the nine events, and each road to it.
func TestEvents(t *testing.T) {
	acted := who + " duration_ms=20 principal=key1"
	for _, c := range []struct {
		name string
		act  *cove.Ending
		note *cove.Happening
		want []string
	}{
		{name: "created", note: &cove.Happening{Kind: cove.SessionCreated}, want: []string{"level=INFO msg=session_created " + who + " duration_ms=1500"}},
		{name: "reused", note: &cove.Happening{Kind: cove.SessionReused}, want: []string{"level=INFO msg=session_reused " + who + " duration_ms=1500"}},
		{
			name: "expired", note: &cove.Happening{Kind: cove.SessionEnded, Cause: cove.ReasonSessionExpired},
			want: []string{"level=INFO msg=session_expired " + who + " duration_ms=1500"},
		},
		{name: "closed", note: &cove.Happening{Kind: cove.SessionEnded, Cause: cove.ReasonSessionClosed}},
		{name: "the journal's note of it", note: &cove.Happening{Kind: "session.expired"}},
		{
			name: "executed", act: &cove.Ending{Observed: of(cove.ProcessExec), Outcome: cove.Exited},
			want: []string{"level=INFO msg=command_executed " + acted + " verb=process.exec outcome=ok exit_code=0"},
		},
		{
			name: "failed", act: &cove.Ending{Observed: of(cove.ContextRun), Outcome: cove.Exited, ExitCode: 3},
			want: []string{"level=INFO msg=command_failed " + acted + " verb=context.run outcome=failed exit_code=3"},
		},
		{
			name: "could not be run", act: &cove.Ending{Observed: of(cove.ProcessExec), Code: cove.Unavailable},
			want: []string{"level=INFO msg=command_failed " + acted + " verb=process.exec outcome=error code=unavailable"},
		},
		{
			name: "out of time", act: &cove.Ending{Observed: of(cove.ProcessExec), Outcome: cove.TimedOut, ExitCode: -1},
			want: []string{
				"level=INFO msg=command_failed " + acted + " verb=process.exec outcome=timed_out exit_code=-1",
				"level=WARN msg=resource_limit_exceeded " + acted + " verb=process.exec limit=time",
			},
		},
		{
			name: "in the background", note: &cove.Happening{Kind: cove.ProgramEnded, Outcome: cove.OutOfMemory, ExitCode: 137},
			want: []string{
				"level=INFO msg=command_failed " + who + " duration_ms=1500 verb=process.start outcome=out_of_memory exit_code=137",
				"level=WARN msg=resource_limit_exceeded " + who + " duration_ms=1500 verb=process.start limit=memory",
			},
		},
		{
			name: "a question", note: &cove.Happening{Kind: cove.RunEnded, Run: "r1", Query: cove.QuerySQL, Status: "error", Fault: cove.RunSQLFailed},
			want: []string{"level=INFO msg=run_ended " + who + " duration_ms=1500 run_id=r1 query_type=sql status=error error_type=SQL_EXECUTION_ERROR"},
		},
		{
			name: "blocked", act: &cove.Ending{Observed: of(cove.ProcessExec), Outcome: cove.Blocked, Code: cove.Denied},
			want: []string{"level=INFO msg=validation_failed " + acted + " verb=process.exec code=denied outcome=blocked"},
		},
		{
			name: "invalid", act: &cove.Ending{Observed: of(cove.SessionOpen), Code: cove.Invalid},
			want: []string{"level=INFO msg=validation_failed " + acted + " verb=session.open code=invalid"},
		},
		{
			name: "uploaded", act: &cove.Ending{Observed: of(cove.FileWrite), Bytes: 12},
			want: []string{"level=INFO msg=file_uploaded " + acted + " verb=file.write bytes=12"},
		},
		{
			name: "too large", act: &cove.Ending{Observed: of(cove.FileWrite), Bytes: 12, Code: cove.Invalid, Reason: cove.ReasonFileTooLarge},
			want: []string{"level=WARN msg=resource_limit_exceeded " + acted + " verb=file.write limit=file_size"},
		},
		{
			name: "downloaded", note: &cove.Happening{Kind: cove.FileDownloaded, Bytes: 9},
			want: []string{"level=INFO msg=file_downloaded " + who + " duration_ms=1500 bytes=9"},
		},
		{name: "a look", act: &cove.Ending{Observed: of(cove.SessionGet)}},
		{name: "denied", act: &cove.Ending{Observed: of(cove.SessionClose), Code: cove.Denied}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t)
			if c.act != nil {
				r.act(t.Context(), *c.act)
			} else {
				h := *c.note
				h.Observed, h.Wall = ann, 1500*time.Millisecond
				h.Principal = ""
				r.Note(t.Context(), h)
			}
			var got []string
			if text := strings.TrimSpace(r.log.String()); text != "" {
				got = strings.Split(text, "\n")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRequestsBeforeTheRoad has what is refused before it is an action, and
// what must not be told twice.
func TestRequestsBeforeTheRoad(t *testing.T) {
	fromRoad := cove.Errorf(cove.Invalid, "no")
	fromRoad.Op = string(cove.ProcessExec)
	for _, c := range []struct {
		name  string
		err   error
		event string
		lines []string
	}{
		{"fine", nil, "", nil},
		{"not JSON", cove.Errorf(cove.Invalid, "no"), "validation_failed", []string{`cove_validation_failures_total{provider="none",verb="request"} 1`}},
		{"too often", cove.Errorf(cove.Exhausted, "no").Reason(cove.ReasonRateLimited), "resource_limit_exceeded", []string{`cove_limit_violations_total{limit="rate",provider="none"} 1`}},
		{"too much on the disk", cove.Errorf(cove.Exhausted, "no").Reason(cove.ReasonTenantDisk), "resource_limit_exceeded", []string{`cove_limit_violations_total{limit="tenant_disk",provider="none"} 1`}},
		{"a full disk", cove.Errorf(cove.Exhausted, "no").Reason(cove.ReasonDiskReserve), "resource_limit_exceeded", []string{`cove_limit_violations_total{limit="disk_reserve",provider="none"} 1`}},
		{"too large", cove.Errorf(cove.Invalid, "no").Reason("body_too_large"), "resource_limit_exceeded", []string{`cove_limit_violations_total{limit="body_size",provider="none"} 1`}},
		{"no key", cove.Errorf(cove.Unauthenticated, "no"), "", nil},
		{"told by the road", fromRoad, "", nil},
		{"not ours", http.ErrAbortHandler, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t)
			r.Answered(t.Context(), telemetry.Answer{Method: http.MethodPost, Route: "/api/x", Status: 200, Err: c.err, Wall: time.Second, Tenant: "acme", Session: "s1"})
			r.wants(append(c.lines, `cove_http_requests_total{method="POST",route="/api/x",status="200"} 1`)...)
			if c.event == "" && r.log.Len() > 0 || !strings.Contains(r.log.String(), c.event) {
				t.Errorf("the log is %q, want %q", r.log, c.event)
			}
		})
	}
}

func TestQuietLog(t *testing.T) {
	r := start(t, func(c *telemetry.Config) { c.Logger = slog.New(slog.DiscardHandler) })
	r.act(t.Context(), cove.Ending{Observed: of(cove.ProcessExec), Outcome: cove.Exited})
	silent := start(t, func(c *telemetry.Config) { c.Logger = nil })
	silent.act(t.Context(), cove.Ending{Observed: of(cove.ProcessExec), Outcome: cove.Exited})
	silent.wants(`cove_commands_total{outcome="ok",provider="fake",verb="process.exec"} 1`)
}
