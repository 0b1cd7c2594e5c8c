// Package all is the list of providers that this build has. It is written out,
// so that reading it says what there is: nothing registers itself, and nothing
// is opened before somebody asks for it. It must not decide which provider is
// used; that is the configuration's business.
package all

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path/filepath"
	"slices"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/docker"
	"github.com/cove-sandbox/cove/provider/e2b"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/provider/gvisor"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/microsandbox"
)

// Config is what the providers need.
type Config struct {
	Home string // each provider keeps its state in a directory of its own below it
	Once bool   // few sandboxes will be made, and none outlives this process
	Keep bool   // sandboxes outlive this process where they can
	// Reserve is how much of the disk below Home snapshots and workspaces on disk leave free.
	Reserve cove.Bytes
	// Memory is what all sandboxes of this machine may have together; 0 is no bound.
	Memory cove.Bytes
	// Egress is for providers that give sandboxes a way out.
	Egress Egress
	// Templates are for providers whose sandboxes see this machine's files.
	Templates Templates

	// What the operator says about single providers; Dir, Egress and Templates in
	// them are filled in from the above.
	Gvisor       Gvisor
	Docker       Docker
	Microsandbox Microsandbox
	E2B          E2B
}

// Gvisor is for the provider of that name.
type Gvisor = gvisor.Config

// Docker is for the provider of that name.
type Docker = docker.Config

// Microsandbox is for the provider of that name.
type Microsandbox = microsandbox.Config

// E2B is for the provider of that name.
type E2B = e2b.Config

// Egress is what the ways out of sandboxes have in common.
type Egress = local.Egress

// Templates are what sandboxes can be made from beside the base.
type Templates = local.Templates

// Template is one of them.
type Template = local.Template

// TemplateKind says what a template's files are.
type TemplateKind = local.TemplateKind

// Secret is a credential that requests get on their way out.
type Secret = local.Secret

// Limits bounds the connections of a sandbox.
type Limits = local.Limits

// Names returns the names of all providers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(Providers(Config{}))) }

// Providers returns how to open each provider, by its name. Opening one touches
// only its own state; the caller closes it.
func Providers(cfg Config) map[string]func() (cove.Provider, error) {
	dir := func(name string) string { return filepath.Join(cfg.Home, name) }
	g, d, m, e := cfg.Gvisor, cfg.Docker, cfg.Microsandbox, cfg.E2B
	g.Dir, g.Egress, g.Templates = dir("gvisor"), cfg.Egress, cfg.Templates
	d.Dir, d.Egress = dir("docker"), cfg.Egress
	around := ""
	if cfg.Memory > 0 {
		around = groupName(cfg.Home)
	}
	g.Around, g.Together, d.Around, d.Together = around, cfg.Memory, around, cfg.Memory
	m.Dir, e.Dir = dir("microsandbox"), dir("e2b")
	return map[string]func() (cove.Provider, error){
		"docker": opener(docker.New, d),
		"e2b":    opener(e2b.New, e),
		"fake":   opener(fake.New, fake.Config{Dir: dir("fake")}),
		"gvisor": opener(gvisor.New, g),
		"local": opener(local.New, local.Config{
			Dir: dir("local"), Once: cfg.Once, Keeper: cfg.Keep, Egress: cfg.Egress, Templates: cfg.Templates, Reserve: cfg.Reserve,
			Around: around, Together: cfg.Memory,
		}),
		"microsandbox": opener(microsandbox.New, m),
	}
}

// groupName is the name of the control group around those of all providers of a home.
func groupName(home string) string {
	sum := sha256.Sum256([]byte(home))
	return "cove-all-" + hex.EncodeToString(sum[:6])
}

// opener binds a provider to its settings.
func opener[P cove.Provider, C any](open func(C) (P, error), cfg C) func() (cove.Provider, error) {
	return func() (cove.Provider, error) {
		p, err := open(cfg)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
}
