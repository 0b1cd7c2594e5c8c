package telemetry

import (
	"context"
	"log/slog"

	"github.com/cove-sandbox/cove"
)

// Config says what is told, and where to.
type Config struct {
	Version   string
	Node      string
	Providers []string     // the values of the label provider
	Logger    *slog.Logger // gets the events, and trouble with the collector; nil: neither
	Endpoint  string       // the base URL of an OTLP collector; "": no traces
}

// Telemetry is a [cove.Observer]. It is made before the engine, and told of it
// with Serve. Close it after the engine.
type Telemetry struct {
	metrics *metrics
	events  events
	tracing *tracing // nil: off
}

// New returns a Telemetry. It sends nothing before something happens.
func New(cfg Config) (*Telemetry, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Telemetry{metrics: newMetrics(cfg), events: events{cfg.Logger}}
	if cfg.Endpoint == "" {
		return t, nil
	}
	var err error
	t.tracing, err = newTracing(cfg, t.metrics.spans)
	return t, err
}

// Begin implements [cove.Observer].
func (t *Telemetry) Begin(ctx context.Context, what cove.Observed) (context.Context, func(cove.Ending)) {
	if ctx.Value(scrape{}) != nil {
		return ctx, nil // our own look at the engine is nobody's action
	}
	again := ctx.Value(retry{}) != nil
	serves(ctx, what.Provider)
	ctx = t.tracing.begin(ctx, what.Verb)
	return ctx, func(e cove.Ending) {
		serves(ctx, e.Provider)
		t.metrics.ended(e, again)
		t.events.ended(ctx, e)
		t.tracing.end(ctx, e)
	}
}

// Note implements [cove.Observer].
func (t *Telemetry) Note(ctx context.Context, h cove.Happening) {
	t.metrics.happened(h)
	t.events.happened(ctx, h)
	t.tracing.happened(ctx, h)
}

// Close sends what waits to be sent, until ctx ends.
func (t *Telemetry) Close(ctx context.Context) error { return t.tracing.close(ctx) }
