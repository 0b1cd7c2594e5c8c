// Package all is the list of providers that this build has. It is written out,
// so that reading it says what there is: nothing registers itself, and nothing
// is opened before somebody asks for it. It must not decide which provider is
// used; that is the configuration's business.
package all

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/fake"
	"github.com/cove-sandbox/cove/provider/local"
)

// Config is what the providers need.
type Config struct {
	Home string // each provider keeps its state in a directory of its own below it
	Once bool   // few sandboxes will be made, and none outlives this process
	Keep bool   // sandboxes outlive this process where they can
	// Egress is for providers that give sandboxes a way out.
	Egress Egress
}

// Egress is what the ways out of sandboxes have in common.
type Egress = local.Egress

// Secret is a credential that requests get on their way out.
type Secret = local.Secret

// Limits bounds the connections of a sandbox.
type Limits = local.Limits

// Names returns the names of all providers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(Providers(Config{}))) }

// Providers returns how to open each provider, by its name. Opening one touches
// only its own state; the caller closes it.
func Providers(cfg Config) map[string]func() (cove.Provider, error) {
	return map[string]func() (cove.Provider, error){
		"fake": func() (cove.Provider, error) {
			p, err := fake.New(fake.Config{Dir: filepath.Join(cfg.Home, "fake")})
			if err != nil {
				return nil, err
			}
			return p, nil
		},
		"local": func() (cove.Provider, error) {
			p, err := local.New(local.Config{Dir: filepath.Join(cfg.Home, "local"), Once: cfg.Once, Keeper: cfg.Keep, Egress: cfg.Egress})
			if err != nil {
				return nil, err
			}
			return p, nil
		},
	}
}
