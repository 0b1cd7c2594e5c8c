package inprocess

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"sync"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/retry"
)

// Main makes this program one that the provider local can start again as what
// runs inside a sandbox: when it was started as that, Main does not return. A
// program calls it first in main. Without, the provider local is Unavailable,
// unless the program was built with the agent in it; other providers do not mind.
func Main() { local.Main() }

// Config says how a platform is opened. The zero value is what cove serve would
// have here.
type Config struct {
	// Home is the directory of everything that is kept, COVE_HOME. It is made
	// where it is missing.
	Home string
	// Provider makes the sandboxes, SANDBOX_PROVIDER: "local", or "fake" for
	// tests, which isolates nothing.
	Provider string
	// Settings are others, by their names in docs/configuration.md. They weigh
	// more than the environment; a name that is none is Invalid.
	Settings map[string]string

	// Keep lets sandboxes outlive this program where the provider can, as those
	// of a server do. Whoever opens the directory next has them again; until then
	// nobody ends those whose time is up.
	Keep bool
	// NoAutoRetry tells the caller of a session that has expired or was lost, instead
	// of opening it again as package retry does.
	NoAutoRetry bool
	// Logger gets what the operator should know; nil means nobody does.
	Logger *slog.Logger
}

// Platform is a platform in this process. Its own methods act for the
// operating-system user that runs the program, in the tenant "default", who may
// do everything. It is safe for concurrent use.
type Platform struct {
	cove.Platform

	in      *daemon.Embedded
	retries bool
	close   func() error
}

// Open opens a platform. The caller closes it. ctx bounds the opening only.
//
// A directory that somebody else has is Conflict, with the pid in
// Details["pid"]. A setting that does not fit is Invalid, and a provider that is
// chosen and not ready is Unavailable, each with what to do.
func Open(ctx context.Context, cfg Config) (*Platform, error) {
	settings, err := cfg.load()
	if err != nil {
		return nil, err
	}
	logger := cfg.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	in, err := daemon.Embed(ctx, settings, cfg.Keep, logger)
	if err != nil && ctx.Err() != nil {
		return nil, cove.Wrap(cove.CodeOf(ctx.Err()), err, "%s", cove.MessageOf(ctx.Err()))
	}
	if err != nil {
		return nil, err
	}
	p := &Platform{in: in, retries: !cfg.NoAutoRetry}
	p.Platform = p.As(in.Owner())
	p.close = sync.OnceValue(func() error { return in.Close(context.WithoutCancel(ctx)) })
	return p, nil
}

// As returns the platform bound to another caller, such as one tenant of many. An
// empty tenant is "default". The program vouches for who that is: no key is
// looked at.
func (p *Platform) As(who cove.Principal) cove.Platform {
	if p.retries {
		return retry.On(p.in.As(who))
	}
	return p.in.As(who)
}

// Close ends what runs in the foreground, lets go of the sandboxes and gives the
// directory back. It is idempotent.
func (p *Platform) Close() error { return p.close() }

// load resolves the settings.
func (cfg Config) load() (config.Config, error) {
	given := map[string]string{}
	maps.Copy(given, cfg.Settings)
	for name, value := range map[string]string{"COVE_HOME": cfg.Home, "SANDBOX_PROVIDER": cfg.Provider} {
		if value != "" {
			given[name] = value
		}
	}
	// A setting that is given under one of its names is not looked for in the
	// environment under the other.
	ours := map[string]bool{}
	for s := range config.Settings() {
		for _, name := range []string{s.Env, s.Alias} {
			if _, ok := given[name]; ok && name != "" {
				ours[s.Env], ours[s.Alias] = true, true
			}
		}
	}
	for name := range given {
		if name == "" || !ours[name] {
			return config.Config{}, cove.InvalidField(name, "is not a setting; docs/configuration.md lists them").Reason(cove.ReasonConfiguration)
		}
	}
	return config.Load(config.Sources{
		Env: func(name string) (string, bool) {
			if ours[name] {
				value, ok := given[name]
				return value, ok
			}
			return config.Environment(name)
		},
		Providers: daemon.ProviderNames(), Root: os.Geteuid() == 0,
	})
}
