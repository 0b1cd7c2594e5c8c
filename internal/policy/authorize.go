package policy

import (
	"fmt"

	"github.com/cove-sandbox/cove"
)

// authorize is the first layer: may this principal do this at all.
func authorize(a cove.Action) *cove.Refusal {
	trait := a.Verb.Trait()
	scope := trait.Scope
	own := trait.Own != "" && a.Tenant != "" && a.Tenant == a.Principal.Tenant
	if a.Principal.May(scope) || own && a.Principal.May(trait.Own) {
		return nil
	}
	if own {
		scope = trait.Own
	}
	return &cove.Refusal{
		Rule:   RuleScope,
		Reason: fmt.Sprintf("%s needs the scope %s, which this key does not hold; ask an operator for a key that does.", a.Verb, scope),
		Word:   string(scope),
	}
}
