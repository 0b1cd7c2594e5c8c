//go:build !lean

package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/httpapi"
	"github.com/cove-sandbox/cove/internal/telemetry"
	"github.com/cove-sandbox/cove/internal/wire"
)

// lastTraces is how long the last traces may take to be sent.
const lastTraces = 5 * time.Second

func newTelemetry(cfg config.Config, o Options) (*telemetry.Telemetry, error) {
	return telemetry.New(telemetry.Config{
		Version: o.Version, Node: cfg.NodeID, Providers: ProviderNames(), Logger: o.Logger, Endpoint: cfg.Telemetry.Endpoint,
	})
}

// endTelemetry sends the last traces. That they cannot be sent is no failure of
// the server.
func (s *server) endTelemetry(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTraces)
	defer cancel()
	if err := s.telemetry.Close(ctx); err != nil {
		s.Logger.WarnContext(ctx, "end of traces", slog.Any("error", err))
	}
}

// source is what the metrics ask of the server.
func (s *server) source() telemetry.Source {
	return telemetry.Source{
		Platform: s.parts.engine.As(owner()),
		Healthy:  func(ctx context.Context) bool { return s.health(ctx).Status == wire.Healthy },
	}
}

// answered hands on how a request went.
func (s *server) answered(ctx context.Context, e httpapi.Ending) {
	s.telemetry.Answered(ctx, telemetry.Answer{
		Method: e.Method, Route: e.Route, Status: e.Status, Err: e.Err, Wall: e.Wall,
		Principal: e.Principal, Tenant: e.Tenant, Session: e.Session,
	})
}
