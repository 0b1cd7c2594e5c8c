package telemetry

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/cove-sandbox/cove"
)

// The events. Each is the message of one line in the log.
const (
	sessionCreated  = "session_created"
	sessionReused   = "session_reused"
	sessionExpired  = "session_expired"
	commandExecuted = "command_executed" // it ran, and exited with 0
	commandBroke    = "command_failed"   // it ended in any other way, or could not be run
	fileUploaded    = "file_uploaded"
	fileDownloaded  = "file_downloaded"
	validationFails = "validation_failed" // the form of a request, or a command that policy blocks
	limitExceeded   = "resource_limit_exceeded"
	runEnded        = "run_ended" // a question to data has an answer
)

// events writes what operators and their tools look for into the log.
type events struct{ logger *slog.Logger }

// ended writes what there is to say about an action.
func (l events) ended(ctx context.Context, e cove.Ending) {
	verb := slog.String("verb", string(e.Verb))
	how, isRun := ran(e)
	switch {
	case invalid(e):
		l.write(ctx, slog.LevelInfo, validationFails, e.Observed, e.Wall(), verb, slog.String("code", string(e.Code)), slog.String("reason", e.Reason), slog.String("outcome", string(e.Outcome)))
	case isRun:
		l.command(ctx, e.Observed, e.Wall(), verb, how, e.ExitCode, e.Code)
	case e.Code == "" && (e.Verb == cove.FileWrite || e.Verb == cove.FileUnpack):
		l.write(ctx, slog.LevelInfo, fileUploaded, e.Observed, e.Wall(), verb, slog.Int64("bytes", e.Bytes))
	}
	if limit := limitOf(e.Outcome, e.Reason); limit != "" {
		l.write(ctx, slog.LevelWarn, limitExceeded, e.Observed, e.Wall(), verb, slog.String("limit", limit))
	}
}

// happened writes what there is to say about what is told beside the actions.
func (l events) happened(ctx context.Context, h cove.Happening) {
	switch h.Kind {
	case cove.SessionCreated:
		l.write(ctx, slog.LevelInfo, sessionCreated, h.Observed, h.Wall)
	case cove.SessionReused:
		l.write(ctx, slog.LevelInfo, sessionReused, h.Observed, h.Wall)
	case cove.SessionEnded:
		if h.Cause == cove.ReasonSessionExpired {
			l.write(ctx, slog.LevelInfo, sessionExpired, h.Observed, h.Wall)
		}
	case cove.RunEnded:
		l.write(ctx, slog.LevelInfo, runEnded, h.Observed, h.Wall, slog.String("run_id", string(h.Run)),
			slog.String("query_type", string(h.Query)), slog.String("status", h.Status), slog.String("error_type", h.Fault))
	case cove.FileDownloaded:
		l.write(ctx, slog.LevelInfo, fileDownloaded, h.Observed, h.Wall, slog.Int64("bytes", h.Bytes))
	case cove.ProgramEnded:
		verb := slog.String("verb", string(cove.ProcessStart))
		l.command(ctx, h.Observed, h.Wall, verb, commandOf(h.Outcome, h.ExitCode, h.Code), h.ExitCode, h.Code)
		if limit := limitOf(h.Outcome, ""); limit != "" {
			l.write(ctx, slog.LevelWarn, limitExceeded, h.Observed, h.Wall, verb, slog.String("limit", limit))
		}
	}
}

func (l events) command(ctx context.Context, what cove.Observed, wall time.Duration, verb slog.Attr, how string, exit int, code cove.Code) {
	event := commandBroke
	if how == commandOK {
		event = commandExecuted
	}
	ended := slog.Int("exit_code", exit)
	if how == commandError {
		ended = slog.String("code", string(code)) // what could not be run did not exit
	}
	l.write(ctx, slog.LevelInfo, event, what, wall, verb, slog.String("outcome", how), ended)
}

func (l events) write(ctx context.Context, level slog.Level, event string, what cove.Observed, wall time.Duration, more ...slog.Attr) {
	if !l.logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs,
		slog.String("tenant", what.Tenant), slog.String("user", what.User), slog.String("thread", what.Thread),
		slog.String("session", string(what.Session)), slog.String("provider", what.Provider), slog.Float64("duration_ms", float64(wall)/1e6))
	if what.Principal != "" {
		attrs = append(attrs, slog.String("principal", what.Principal))
	}
	for _, a := range more {
		if a.Value.Kind() != slog.KindString || a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	if at := trace.SpanContextFromContext(ctx); at.IsSampled() {
		attrs = append(attrs, slog.String("trace_id", at.TraceID().String()))
	}
	l.logger.LogAttrs(ctx, level, event, attrs...) //nolint:sloglint // one of the constants above
}
