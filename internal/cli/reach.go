package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/daemon"
)

// link is a platform and how to let go of it.
type link struct {
	cove.Platform

	cfg    config.Config
	apart  bool // it is in another process, which may have other settings
	remote bool // and that is not the daemon of COVE_HOME
	close  func() error
}

func providerNames() []string { return daemon.ProviderNames() }

func isRoot() bool { return os.Geteuid() == 0 }

// oneShot returns the platform for what leaves nothing behind: the server that
// the settings name, or this process; or the daemon of COVE_HOME, which alone has
// volumes by name.
// spec is what will be asked of it, and solo says that it is one program.
func (a *app) oneShot(cmd *cobra.Command, spec cove.Spec, solo bool) (link, error) {
	return a.reachOnce(cmd, spec, func(cfg config.Config) (*daemon.Local, error) {
		return daemon.OneShot(cmd.Context(), cfg, spec, solo)
	})
}

func (a *app) reachOnce(cmd *cobra.Command, spec cove.Spec, inProcess func(config.Config) (*daemon.Local, error)) (link, error) {
	cfg, err := a.load(cmd)
	if err != nil {
		return link{}, err
	}
	if err := leave(cfg, spec); err != nil {
		return link{}, err
	}
	if address, ok := cfg.Remote(); ok {
		return dial(cfg, address)
	}
	if slices.ContainsFunc(spec.Volumes, func(v cove.Volume) bool { return v.Name != "" }) {
		return a.lasting(cmd)
	}
	p, err := inProcess(cfg)
	if err != nil {
		return link{}, err
	}
	return link{Platform: p, cfg: cfg, close: func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), tidyTime)
		defer cancel()
		return p.Close(ctx)
	}}, nil
}

// timed gives a program the time that the caller's environment says, where the
// server may have been started with another.
func (p link) timed(l *cove.Limits) {
	const name = "SANDBOX_TIMEOUT_SEC"
	if source := p.cfg.Origin(name).Source; l.Wall == 0 && (source == config.FromEnv || source == config.FromFlag) {
		l.Wall = p.cfg.Exec.Timeout
	}
}

// note says something beside the answer.
func (a *app) note(text string) {
	_, _ = io.WriteString(a.sys.Stderr, "cove: "+escape(text)+"\n") // it is beside the answer
}

// progress tells a person at a terminal what takes long.
func (a *app) progress(format string, args ...any) {
	if _, ok := terminal(a.sys.Stderr); ok && !a.json {
		a.note(fmt.Sprintf(format, args...))
	}
}

// openOnce opens a session that ends with the command. A server that the command cannot
// tell to end it, because the command was killed, ends it when its time is up.
func (a *app) openOnce(ctx context.Context, p link, spec cove.Spec) (*cove.Session, error) {
	if p.apart { // in this process no session keeps its files
		spec.OnEnd = cove.EndClose
	}
	return a.open(ctx, p, cove.OpenRequest{Spec: spec})
}

// open opens a session and shows the place in the queue meanwhile. What the
// user set for this machine's sandboxes is asked for by name: the daemon may
// have been started with other settings.
func (a *app) open(ctx context.Context, p link, req cove.OpenRequest) (*cove.Session, error) {
	if config.IsPolicyFile(req.Spec.Policy) {
		req.Spec.Policy = p.cfg.CommandPolicy
	}
	if !p.remote {
		fill := func(field *string, env, value string) {
			if *field == "" && p.cfg.IsSet(env) {
				*field = value
			}
		}
		if len(p.cfg.Fallback) == 0 { // who names a provider gets that one or none
			fill(&req.Spec.Provider, "SANDBOX_PROVIDER", p.cfg.Provider)
		}
		fill(&req.Spec.Flavor, "MSB_DEFAULT_FLAVOR", p.cfg.Session.Flavor)
		fill(&req.Spec.Policy, "SANDBOX_COMMAND_POLICY", p.cfg.CommandPolicy)
	}
	req.OnQueue = func(position int) { a.progress("waiting for room: place %d in the queue", position) }
	s, err := p.Sessions().Open(ctx, req)
	if err == nil && s.Instead != "" {
		a.note(fmt.Sprintf("served by %s, because %s is not ready", s.Provider, s.Instead))
	}
	return s, err
}
