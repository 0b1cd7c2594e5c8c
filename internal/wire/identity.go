package wire

import "github.com/cove-sandbox/cove"

// Identity is who sent a request.
type Identity struct {
	Name    string       `json:"name"`
	KeyName string       `json:"key_name,omitempty" jsonschema:"what people call the key"`
	Tenant  string       `json:"tenant"`
	Scopes  []cove.Scope `json:"scopes" jsonschema:"what they may do"`
}

// IdentityOf returns the form of p.
func IdentityOf(p cove.Principal) Identity {
	return Identity{Name: p.Name, KeyName: p.Label, Tenant: p.Tenant, Scopes: append([]cove.Scope{}, p.Scopes...)}
}

// JournalCheck is what became of the chain of the journal.
type JournalCheck struct {
	Lines    int64    `json:"lines" jsonschema:"those that could be read"`
	Problems []string `json:"problems" jsonschema:"what was changed, lost or moved; none where all is good"`
}
