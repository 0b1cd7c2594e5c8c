package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/hostpath"
	"github.com/cove-sandbox/cove/internal/volume"
)

// site is where an assembly keeps its things, and how.
type site struct {
	dir   string
	node  string                                        // in the journal and in records
	store func(ctx context.Context) (cove.Store, error) // opened after the journal
	// join makes a node of what is assembled; nil where it is alone.
	join func(ctx context.Context, a *assembly, ec *engine.Config) error
	// look compares the store with what is at the site before anything is changed there;
	// nil where nothing outlives the process, and where others keep the records.
	look    func(ctx context.Context, a *assembly, ec *engine.Config) error
	spares  int    // sandboxes kept ready
	version string // of this program; "" where nobody asks
	logger  *slog.Logger
	// observer is told what the engine does; nil: nobody is.
	observer cove.Observer
	// sign makes the URLs of links; nil where nobody serves them.
	sign func(cove.Grant) (string, error)

	// run is what the only session of a run in process will ask for, or nil for a
	// server. What such a run makes ends with it.
	run *cove.Spec
	// solo says that the run is one program.
	solo bool
	// fresh says that no earlier process left anything at the site.
	fresh bool
	// language is what the only piece of code of the run is written in, or "".
	language string
	// mortal says that sandboxes end with this process, where they would not.
	mortal bool
	parts  Parts
	// asks says that the run asks questions to data and has no session, and files are
	// what of; without any, it is the datasets of the settings.
	asks  bool
	files []cove.RunFile
}

// Parts replaces parts of a platform, for those who test one. Its zero value
// replaces nothing.
type Parts struct {
	// Agent is the path of an executable that is the agent, for providers that bring
	// one into their sandboxes.
	Agent string
	// Wrap puts something around a provider.
	Wrap func(cove.Provider) cove.Provider
	// WrapRunner puts something around what answers questions to data.
	WrapRunner func(cove.Runner) cove.Runner
}

// assembly is a running engine and all that it stands on.
type assembly struct {
	engine    *engine.Engine
	journal   *audit.Journal
	store     cove.Store
	templates *templates
	close     []func() error // in the order of opening
}

// assemble puts the parts together at a site. On error nothing stays open.
func assemble(ctx context.Context, cfg config.Config, at site) (_ *assembly, err error) {
	a := &assembly{}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.release())
		}
	}()
	if err := buildable(cfg); err != nil {
		return nil, cove.WithReason(err, cove.ReasonConfiguration)
	}
	ec := engineConfig(cfg)
	if a.templates, err = openTemplates(ctx, cfg, at.run == nil); err != nil {
		return nil, err
	}
	a.later(a.templates.Close)
	ec.Templates = maker(a.templates, cfg)
	list, err := providers(cfg, provision{dir: filepath.Join(at.dir, "providers"), once: at.run != nil, keep: at.run == nil && !at.mortal, templates: a.templates, agent: at.parts.Agent}, at.wanted(&ec))
	if err != nil {
		return nil, err
	}
	for i, p := range list {
		a.later(p.Close)
		if at.parts.Wrap != nil {
			list[i] = at.parts.Wrap(p)
		}
	}
	ec.Providers, ec.Solo = list, at.solo
	interpreters(&ec)
	if err := dataRuns(ctx, a, &ec, cfg, at.files); err != nil {
		return nil, cove.WithReason(err, cove.ReasonConfiguration)
	}
	if err := policies(&ec, cfg); err != nil {
		return nil, cove.WithReason(err, cove.ReasonConfiguration)
	}
	ahead := at.prepare(ctx, ec, list)
	a.later(ahead.discard)
	// A sandbox takes longer than all else here, so it goes first.
	runtime.Gosched()
	journal, err := audit.Open(audit.Config{Dir: filepath.Join(at.dir, "journal"), Node: at.node, Brief: at.run != nil, Logger: at.logger}) //nolint:contextcheck // the journal outlives the call
	if err != nil {
		return nil, err
	}
	a.journal = journal
	a.later(journal.Close)
	if a.store, err = at.store(ctx); err != nil {
		return nil, err
	}
	a.later(a.store.Close)
	if at.join != nil {
		if err := at.join(ctx, a, &ec); err != nil {
			return nil, err
		}
	}
	if err := a.openFiles(ctx, &ec, cfg, at); err != nil {
		return nil, err
	}
	// Now, because it may have to wait for the host.
	if err := ready(ctx, cfg, cfg.Fallback, list, at.logger); err != nil {
		return nil, err
	}
	ec.Store, ec.Journal = a.store, journal
	artifacts(&ec, cfg)
	ec.PoolSize, ec.Node, ec.Logger, ec.Observer = at.spares, at.node, at.logger, at.observer
	ec.Version = at.version
	ec.Fleeting, ec.Fresh, ec.Spare, ec.Sign = at.run != nil, at.fresh, ahead.take, at.sign
	return a, a.open(ctx, cfg, at, ec)
}

// open starts the engine, with what answers questions to data and messages about it.
func (a *assembly) open(ctx context.Context, cfg config.Config, at site, ec engine.Config) error {
	if wrap := at.parts.WrapRunner; wrap != nil {
		for name, r := range ec.Runners {
			ec.Runners[name] = wrap(r)
		}
	}
	end, err := chats(&ec, cfg, at.logger)
	if err != nil {
		return cove.WithReason(err, cove.ReasonConfiguration)
	}
	a.later(end)
	a.engine, err = engine.Open(ctx, ec)
	return err
}

// pretender is the provider that isolates nothing. What it runs takes the memory,
// the time and the disk of this process, so it is there only where the settings or
// a run of one's own name it.
const pretender = "fake"

func pretends(ec *engine.Config) bool {
	return ec.Provider == pretender || slices.Contains(ec.Fallback, pretender)
}

// wanted returns the providers to open: for a run the one that it names, or
// those of the settings, because each takes its time; for a server all that are
// good for its callers.
func (at site) wanted(ec *engine.Config) []string {
	if at.run == nil {
		return slices.DeleteFunc(ProviderNames(), func(name string) bool { return name == pretender && !pretends(ec) })
	}
	if at.run.Provider != "" && !slices.Contains(ProviderNames(), at.run.Provider) {
		return ProviderNames()
	}
	if at.run.Provider != "" {
		ec.Provider, ec.Fallback = at.run.Provider, nil
	}
	return append([]string{ec.Provider}, ec.Fallback...)
}

// prepare begins to make the sandbox of the run, if there is one.
func (at site) prepare(ctx context.Context, ec engine.Config, list []cove.Provider) *early {
	if at.run == nil || at.asks {
		return nil
	}
	mold, ok := ec.MoldOf(*at.run)
	if !ok {
		return nil
	}
	return prepareEarly(ctx, list, mold, ec.StartTimeout, func(spare cove.Spare) cove.Spare {
		return ec.Heat(spare, mold, *at.run, at.language)
	})
}

func (a *assembly) later(close func() error) { a.close = append(a.close, close) }

// release closes what was opened, last first.
func (a *assembly) release() error {
	var errs []error
	for _, c := range slices.Backward(a.close) {
		errs = append(errs, c())
	}
	a.close = nil
	return errors.Join(errs...)
}

// end closes the engine and then all below it.
func (a *assembly) end(ctx context.Context) error {
	return errors.Join(a.engine.Close(ctx), a.release())
}

// engineConfig is the part of the settings that the engine takes as they are.
func engineConfig(cfg config.Config) engine.Config {
	return engine.Config{
		Provider: cfg.Provider, Fallback: cfg.Fallback, Flavors: cfg.Flavors,
		Sizes: map[string]cove.Resources{"docker": {CPUs: cfg.Docker.CPULimit, Memory: cfg.Docker.Memory}},
		Defaults: cove.Spec{
			Flavor: cfg.Session.Flavor, Policy: cfg.CommandPolicy, Idle: cfg.Session.IdleTimeout,
			Workspace: cove.Workspace{Size: cfg.Workspace.Size, Files: cfg.Workspace.Files},
		},
		Volumes: cfg.Volumes.Allowed, Shared: cfg.Volumes.Shared, Private: []string{cfg.Home}, Paths: hostPaths(cfg),
		VolumeSize: cfg.Volumes.Size, VolumeFiles: cfg.Volumes.Files, MaxVolumes: cfg.Volumes.Most,
		MaxSessions: cfg.Session.Max, MaxMemory: cfg.Session.MaxTotalMemory, Evict: cfg.Session.LRUEviction, MaxPool: cfg.Pool.Max,
		ExecTimeout: cfg.Exec.Timeout, StartTimeout: cfg.Session.StartTimeout, KeepPaused: hours(cfg.Session.PausedDays * 24),
		CleanupInterval: cfg.Maintenance.Cleanup, OrphanInterval: cfg.Maintenance.Orphans,
		OutputBudget: cfg.Exec.MaxOutput, MaxFileSize: cfg.Workspace.MaxFileSize,
		Warm: cfg.Pool.Warm != "off", Prices: cfg.Prices.Cove(),
		KeepRuns: hours(cfg.Runs.KeepHours), MaxRuns: cfg.Runs.Most, OpenPlaces: cfg.Runs.Network == "open", KeepChats: hours(cfg.Runs.ChatDays * 24),
	}
}

// hostPaths are the paths of the settings, which only operators are told.
func hostPaths(cfg config.Config) hostpath.Filter {
	return hostpath.New(cfg.Home, cfg.Datasets, strings.TrimPrefix(cfg.ArchiveURL, "file://"), cfg.Gvisor.Runsc)
}

func hours(n float64) time.Duration { return time.Duration(n * float64(time.Hour)) }

// buildable refuses settings that ask for what this build does not have:
// ignoring them would be a surprise.
func buildable(cfg config.Config) error {
	if names := ProviderNames(); !slices.Contains(names, cfg.Provider) {
		return cove.InvalidField("SANDBOX_PROVIDER", "%q is not part of this build; use %s", cfg.Provider, strings.Join(names, ", "))
	}
	return nil
}

// openFiles makes places for what sessions leave: archives, output and volumes, and has
// what is there compared with the store.
func (a *assembly) openFiles(ctx context.Context, ec *engine.Config, cfg config.Config, at site) error {
	archives, err := a.openArchives(ctx, cfg, at)
	if err != nil {
		return err
	}
	output, err := openRoot(filepath.Join(at.dir, "output"))
	if err != nil {
		return homeError(at.dir, err)
	}
	a.later(output.Close)
	ec.Archives, ec.Output = archives, output
	if at.join != nil && cfg.Redis.URL != "" && cfg.ArchiveURL != "" {
		if ec.Moving, err = a.openBucket(ctx, cfg, at); err != nil {
			return err
		}
	}
	if err := a.openFolders(ec, cfg, at); err != nil || at.look == nil {
		return err
	}
	return at.look(ctx, a, ec)
}

// openFolders makes a place for volumes by name, and bounds what tenants keep, unless
// what is made ends with a run.
func (a *assembly) openFolders(ec *engine.Config, cfg config.Config, at site) error {
	if at.run != nil {
		return nil // its bounds are those of the process
	}
	ec.TenantDisk, ec.DiskReserve = cfg.Session.TenantDisk, cfg.Session.DiskReserve
	ec.Free = func() (cove.Bytes, error) { return freeSpace(at.dir) }
	ec.Descriptors = descriptorsFor
	folders, err := volume.Open(filepath.Join(at.dir, "volumes"))
	if err != nil {
		return err
	}
	a.later(folders.Close)
	ec.Folders = folders
	return nil
}

func openRoot(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// ready refuses to start where neither the chosen provider nor one of those
// after it can work. The sentence begins with the setting as it was written.
func ready(ctx context.Context, cfg config.Config, then []string, list []cove.Provider, logger *slog.Logger) error {
	setting := cmp.Or(cfg.Origin("SANDBOX_PROVIDER").Name, "SANDBOX_PROVIDER")
	var why, remedy string
	for _, name := range append([]string{cfg.Provider}, then...) {
		i := slices.IndexFunc(list, func(p cove.Provider) bool { return p.Name() == name })
		if i < 0 {
			continue // the engine refuses it by name
		}
		caps, err := list[i].Probe(ctx)
		if err != nil && ctx.Err() != nil {
			return ctx.Err() // whoever starts it has left
		}
		if err != nil {
			return cove.Wrap(cove.Unavailable, err, "%s: provider %s cannot be probed", setting, name).Remedy("see cove doctor")
		}
		switch {
		case caps.Ready && why == "":
			return nil
		case caps.Ready:
			logger.WarnContext(ctx, "another provider serves", slog.String("provider", name), slog.String("instead_of", cfg.Provider), slog.String("reason", why))
			return nil
		case why == "":
			why, remedy = fmt.Sprintf("%s: provider %s is not ready: %s", setting, name, caps.Why), caps.Remedy
		default:
			why += fmt.Sprintf("; nor is %s: %s", name, caps.Why)
		}
	}
	if why == "" {
		return nil
	}
	return cove.Errorf(cove.Unavailable, "%s", why).With("field", setting).Reason(cove.ReasonConfiguration).Remedy("%s", remedy)
}

// owner is the principal of the user who runs this process.
func owner() cove.Principal { return principal(os.Geteuid()) }

// principal is an operating-system user, who may do everything.
func principal(uid int) cove.Principal { return osPrincipal(osUser + userName(uid)) }

// osUser begins the name of every principal that has no key.
const osUser = "os:"

func osPrincipal(name string) cove.Principal {
	return cove.Principal{Name: name, Tenant: cove.DefaultTenant, Scopes: []cove.Scope{cove.ScopeAll}}
}

// Level reads COVE_LOG_LEVEL, which is one of slog's words already.
func Level(word string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(word)) // the settings let no other word through
	return l
}
