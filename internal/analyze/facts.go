package analyze

import (
	"encoding/json"

	"github.com/cove-sandbox/cove/internal/pypolicy/fact"
)

// Bounds on facts, as facts.py has them.
const (
	maxFacts    = 4000
	maxKeywords = 64
)

// facts reads an answer that tells facts.
func (a answer) facts() (*fact.Report, error) {
	var f struct {
		found
		Facts []fact.Fact `json:"facts"`
	}
	if err := json.Unmarshal(a, &f); err != nil || a == nil || len(f.Facts) > maxFacts {
		return nil, misunderstood()
	}
	r := &fact.Report{Facts: f.Facts, Syntax: f.syntax(), Unread: cut(f.Unread, maxWord)}
	if r.Syntax == nil && r.Unread == "" && f.Facts == nil {
		return nil, misunderstood()
	}
	for i := range r.Facts {
		g := &r.Facts[i]
		if len(g.Keywords) > maxKeywords {
			return nil, misunderstood()
		}
		for k, word := range g.Keywords {
			g.Keywords[k] = cut(word, maxWord)
		}
		g.Kind, g.Name, g.Of = fact.Kind(cut(string(g.Kind), maxWord)), cut(g.Name, maxWord), cut(g.Of, maxWord)
		g.Line, g.Column, g.Args = max(g.Line, 0), max(g.Column, 0), max(g.Args, 0)
	}
	return r, nil
}
