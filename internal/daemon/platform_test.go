package daemon_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/platformtest"
)

// TestPlatformOfAServer runs a part of the suite against the server that cove
// serve runs, with keys that it gave out. What has no setting is left out.
func TestPlatformOfAServer(t *testing.T) {
	tier.Full(t, "client runs the suite over HTTP; other tests here use the server")
	platformtest.Run(t, func(t *testing.T, o platformtest.Options) platformtest.Harness {
		if o.QueueLength > 0 || o.OutputKept > 0 || o.OutputBudget > 0 || o.MaxFileSize > 0 || o.Flavors != nil || o.Volumes != nil || o.Shared != nil {
			t.Skip("no setting says this")
		}
		s := &served{t: t, home: filepath.Join(t.TempDir(), "home"), options: o}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		return s
	}, "sessions", "retry", "exec", "restart", "named_volumes")
}

// served is a server with state of its own, and clients of it.
type served struct {
	t       *testing.T
	home    string
	options platformtest.Options

	ready   daemon.Ready
	end     context.CancelFunc
	ended   chan error
	clients []*client.Client
}

func (s *served) Start() error {
	env := map[string]string{
		"COVE_HOME": s.home, "COVE_ADDR": "127.0.0.1:0", "SANDBOX_PROVIDER": "fake", "POOL_SIZE": "0",
		"MSB_MAX_TOTAL_MEMORY_MB": "1048576", "MSB_ENABLE_LRU_EVICTION": strconv.FormatBool(s.options.Evict),
	}
	if n := s.options.MaxSessions; n > 0 {
		env["MSB_MAX_SESSIONS"] = strconv.Itoa(n)
	}
	if b := s.options.VolumeSize; b > 0 {
		env["COVE_VOLUME_MB"] = strconv.FormatInt(int64(b/cove.MiB), 10)
	}
	if n := s.options.MaxVolumes; n > 0 {
		env["COVE_MAX_VOLUMES"] = strconv.Itoa(n)
	}
	if d := s.options.ExecTimeout; d > 0 {
		env["SANDBOX_TIMEOUT_SEC"] = strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
	}
	cfg, err := config.Load(config.Sources{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ready := make(chan daemon.Ready, 1)
	s.end, s.ended = cancel, make(chan error, 1)
	go func() {
		s.ended <- daemon.Serve(ctx, cfg, daemon.Options{Logger: slog.New(slog.DiscardHandler), Ready: func(r daemon.Ready) { ready <- r }})
	}()
	select {
	case s.ready = <-ready:
		return nil
	case err := <-s.ended:
		return err
	}
}

func (s *served) must(err error) {
	if err != nil {
		s.t.Error(err)
	}
}

func (s *served) dial(key string, opts ...client.Option) *client.Client {
	c, err := client.New(s.ready.URL, key, opts...)
	s.must(err)
	s.clients = append(s.clients, c)
	return c
}

// As asks the server for a key with what p has, and returns a client that shows
// it.
func (s *served) As(p cove.Principal) cove.Platform {
	first, err := os.ReadFile(s.ready.KeyFile)
	s.must(err)
	_, secret, err := s.dial(strings.TrimSpace(string(first))).Admin().CreateKey(s.t.Context(), cove.KeyRequest{
		Name: p.Name, Tenant: p.Tenant, Scopes: p.Scopes, Limits: p.Limits, Defaults: p.Defaults,
	})
	s.must(err)
	var opts []client.Option
	if on := s.options.AutoRetry; on != nil {
		opts = append(opts, client.WithAutoRetry(*on))
	}
	return s.dial(secret, opts...)
}

func (s *served) Extras() platformtest.Extras { return platformtest.Fake() }

func (s *served) Close() {
	for _, c := range s.clients {
		s.must(c.Close())
	}
	s.clients = nil
	s.end()
	s.must(<-s.ended)
}

func (s *served) Restart() error {
	s.Close()
	return s.Start()
}
