package policy

import (
	"fmt"

	"github.com/cove-sandbox/cove"
)

// authorize is the first layer: may this principal do this at all.
func authorize(a cove.Action) *cove.Refusal {
	scope := a.Verb.Trait().Scope
	if a.Principal.May(scope) {
		return nil
	}
	return &cove.Refusal{
		Rule:   RuleScope,
		Reason: fmt.Sprintf("%s needs the scope %s, which this key does not hold; ask an operator for a key that does.", a.Verb, scope),
		Word:   string(scope),
	}
}
