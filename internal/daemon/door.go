//go:build !lean

package daemon

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/cove-sandbox/cove/internal/httpapi"
)

// guard puts the bounds on connections, and TLS, in front of the address.
func (s *server) guard(ctx context.Context) error {
	if s.tcp == nil {
		return nil
	}
	s.warnPlain(ctx, s.tcp)
	secured, err := s.withTLS(s.bound(s.tcp))
	if err == nil {
		s.tcp = secured
	}
	return err
}

// bound puts the bounds on connections in front of a listener.
func (s *server) bound(l net.Listener) net.Listener {
	return httpapi.Limit(l, httpapi.Bounds{All: s.cfg.Server.Conns, PerRemote: s.cfg.Server.RemoteConns, Refused: s.refused()})
}

// refusedEvery is how often the log tells of connections that were too many:
// a flood must not fill it.
const refusedEvery = 10 * time.Second

// refused returns what logs connections that were closed because of a bound.
func (s *server) refused() func(net.Addr) {
	var mu sync.Mutex
	var last time.Time
	count := 0
	return func(remote net.Addr) {
		mu.Lock()
		defer mu.Unlock()
		count++
		if time.Since(last) < refusedEvery {
			return
		}
		s.Logger.LogAttrs(context.Background(), slog.LevelWarn, "too many connections, see COVE_CONNECTIONS and COVE_CONNECTIONS_PER_REMOTE",
			slog.String("remote", remote.String()), slog.Int("closed", count))
		last, count = time.Now(), 0
	}
}
