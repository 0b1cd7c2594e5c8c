// Package scope decides what a principal may do by the scopes that it holds.
//
// It is the first layer of every decision, and all of them where no command policy
// is set: a program that was built to run one command need not hold what reads
// commands. The package does no I/O and keeps no state. It must not look at what a
// command would do; that is what internal/policy is for.
package scope

import (
	"fmt"
	"slices"

	"github.com/cove-sandbox/cove"
)

// Rule is what its refusals name, in Refusal.Rule.
const Rule = "scope"

// Policy lets principals do what their scopes say, and every command run. Its zero
// value is ready.
type Policy struct{}

var _ cove.Policy = Policy{}

// Decide judges a. Equal actions get equal decisions.
func (Policy) Decide(a cove.Action) cove.Decision {
	if r := Authorize(a); r != nil {
		return cove.Decision{Effect: cove.Deny, Layer: cove.Authorization, Refusal: r}
	}
	return cove.Decision{Effect: cove.Allow}
}

// Authorize returns why the principal may not do this at all, or nil.
func Authorize(a cove.Action) *cove.Refusal {
	trait := a.Verb.Trait()
	scope := trait.Scope
	own := trait.Own != "" && a.Tenant != "" && a.Tenant == a.Principal.Tenant
	if a.Principal.May(scope) || slices.ContainsFunc(trait.Also, a.Principal.May) || own && a.Principal.May(trait.Own) {
		return trusted(a)
	}
	if own {
		scope = trait.Own
	}
	return &cove.Refusal{
		Rule:   Rule,
		Reason: fmt.Sprintf("%s needs the scope %s, which this key does not hold; ask an operator for a key that does.", a.Verb, scope),
		Word:   string(scope),
	}
}

// trusted refuses who wants to be trusted and is not.
func trusted(a cove.Action) *cove.Refusal {
	if a.Code == nil || !a.Code.Trusted || a.Principal.May(cove.ScopeTrusted) {
		return nil
	}
	return &cove.Refusal{
		Rule:   Rule,
		Reason: fmt.Sprintf("code whose imports nobody looks at needs the scope %s, which this key does not hold; leave trusted out, or ask an operator for a key that does.", cove.ScopeTrusted),
		Word:   string(cove.ScopeTrusted),
	}
}
