package policy

import (
	"maps"
	"slices"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/scope"
)

// Config is what a Policy is made from. The zero value has the built-in
// profiles and applies none where a session names none.
type Config struct {
	// Profiles are added to the built-in ones.
	Profiles []Profile `json:"profiles,omitempty"`
	// Default is the profile of sessions that name none; "" means no profile.
	Default string `json:"default,omitempty"`
	// Imports is about Python code.
	Imports Imports `json:"imports,omitzero"`
}

// Policy judges actions. It is immutable and safe for concurrent use.
type Policy struct {
	lists    map[string]*list
	fallback string
	imports  cove.ImportMode
	modules  modules
}

var _ cove.ImportPolicy = (*Policy)(nil)

// New returns a policy, or Invalid for rules that cannot be used and for a
// default that does not exist.
func New(cfg Config) (*Policy, error) {
	if err := cfg.Imports.Validate(); err != nil {
		return nil, err
	}
	p := &Policy{lists: map[string]*list{}, fallback: cfg.Default, imports: cfg.Imports.Mode, modules: newModules(cfg.Imports)}
	for _, builtin := range []Profile{AgentBash()} {
		p.lists[builtin.Name] = newList(builtin)
	}
	for _, profile := range cfg.Profiles {
		if err := profile.Validate(); err != nil {
			return nil, err
		}
		if _, taken := p.lists[profile.Name]; taken {
			return nil, cove.InvalidField("policy.profiles", "%q is there twice or built in; choose another name", profile.Name)
		}
		p.lists[profile.Name] = newList(profile)
	}
	if _, ok := p.lists[cfg.Default]; !ok && cfg.Default != "" {
		return nil, p.unknown("policy.default", cfg.Default)
	}
	return p, nil
}

// Profiles returns the names of all profiles, sorted.
func (p *Policy) Profiles() []string { return slices.Sorted(maps.Keys(p.lists)) }

func (p *Policy) unknown(field, name string) error {
	return cove.InvalidField(field, "%.80q is not a command policy; use one of %v", name, p.Profiles())
}

// Decide judges a. Equal actions get equal decisions. A refusal of the content
// layer says which word at which place is the reason; places are those of a
// shell line, and an argv has none.
func (p *Policy) Decide(a cove.Action) cove.Decision {
	if r := scope.Authorize(a); r != nil {
		return cove.Decision{Effect: cove.Deny, Layer: cove.Authorization, Refusal: r}
	}
	d := p.content(a)
	if r := p.importing(a); r != nil && d.Effect != cove.Deny {
		return cove.Decision{Effect: cove.Deny, Layer: cove.Content, Refusal: r}
	}
	return d
}
