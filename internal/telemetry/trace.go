package telemetry

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/cove-sandbox/cove"
)

// scope is the name under which our spans are known.
const scope = "github.com/cove-sandbox/cove"

// tracing makes the spans. A nil one makes none.
type tracing struct {
	exporter *exporter
	tracer   trace.Tracer
}

// newTracing starts what sends spans to a collector.
func newTracing(cfg Config, spans *prometheus.CounterVec) (*tracing, error) {
	base, err := url.Parse(cfg.Endpoint)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, cove.InvalidField("OTEL_EXPORTER_OTLP_ENDPOINT", "is not the URL of a collector; use http://host:4318 or unset it")
	}
	process := []attribute.KeyValue{
		attribute.String("service.name", "cove"), attribute.String("service.version", cfg.Version), attribute.String("service.instance.id", cfg.Node),
	}
	x := newExporter(base.JoinPath("v1", "traces").String(), encoder(scope, cfg.Version, process), cfg.Logger, spans)
	// Everything is said here: what is not, the SDK would read from the environment.
	p := sdk.NewTracerProvider(
		sdk.WithSpanProcessor(x), sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())), sdk.WithResource(resource.NewSchemaless(process...)),
		sdk.WithRawSpanLimits(sdk.SpanLimits{
			AttributeValueLengthLimit: 256, AttributeCountLimit: 32, EventCountLimit: 32, LinkCountLimit: 1,
			AttributePerEventCountLimit: 8, AttributePerLinkCountLimit: 1,
		}),
	)
	return &tracing{exporter: x, tracer: p.Tracer(scope, trace.WithInstrumentationVersion(cfg.Version))}, nil
}

func (t *tracing) close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.exporter.Shutdown(ctx)
}

// request starts the span of a request, below the one that the caller names.
func (t *tracing) request(ctx context.Context, r *http.Request, route string) context.Context {
	if t == nil {
		return ctx
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	ctx, _ = t.tracer.Start(ctx, r.Method+" "+route, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("http.route", route)))
	return ctx
}

// answered ends the span of a request.
func (t *tracing) answered(ctx context.Context, status int) {
	if t == nil {
		return
	}
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// begin starts the span of an action.
func (t *tracing) begin(ctx context.Context, verb cove.Verb) context.Context {
	if t == nil {
		return ctx
	}
	ctx, _ = t.tracer.Start(ctx, string(verb))
	return ctx
}

// end ends the span of an action, with one below it for each part of the road.
func (t *tracing) end(ctx context.Context, e cove.Ending) {
	if t == nil {
		return
	}
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	t.part(ctx, "decide", e.Began, e.Decided)
	t.part(ctx, "journal intent", e.Decided, e.Intended)
	from := e.Intended
	if from.IsZero() {
		from = e.Decided
	}
	t.part(ctx, "do", from, e.Done)
	if !e.Intended.IsZero() {
		t.part(ctx, "journal outcome", e.Done, e.Ended)
	}
	span.SetAttributes(words(
		"cove.tenant", e.Tenant, "cove.principal", e.Principal, "cove.user", e.User, "cove.thread", e.Thread,
		"cove.session", string(e.Session), "cove.provider", e.Provider, "cove.effect", string(e.Effect),
		"cove.code", string(e.Code), "cove.reason", e.Reason, "cove.outcome", string(e.Outcome),
	)...)
	if e.Outcome != "" {
		span.SetAttributes(attribute.Int("cove.exit_code", e.ExitCode))
	}
	if e.Bytes > 0 {
		span.SetAttributes(attribute.Int64("cove.bytes", e.Bytes))
	}
	switch e.Code { //nolint:exhaustive // the rest is the caller's affair
	case cove.Internal, cove.Unavailable, cove.Timeout:
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(e.Ended))
}

// part makes the span of one part of the road, if it was reached.
func (t *tracing) part(ctx context.Context, name string, from, to time.Time) {
	if from.IsZero() || to.IsZero() {
		return
	}
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(from))
	span.End(trace.WithTimestamp(to))
}

// happened puts what is told inside an action on its span.
func (t *tracing) happened(ctx context.Context, h cove.Happening) {
	if t != nil {
		trace.SpanFromContext(ctx).AddEvent(h.Kind, trace.WithAttributes(words("cove.session", string(h.Session), "cove.provider", h.Provider, "cove.cause", h.Cause)...))
	}
}

// words are the attributes of a list of names and values, but for empty ones.
func words(list ...string) []attribute.KeyValue {
	var out []attribute.KeyValue
	for i := 0; i+1 < len(list); i += 2 {
		if list[i+1] != "" {
			out = append(out, attribute.String(list[i], list[i+1]))
		}
	}
	return out
}
