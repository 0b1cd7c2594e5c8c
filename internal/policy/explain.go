package policy

import "github.com/cove-sandbox/cove"

// Kind says what the name of a command stands for.
type Kind string

// What a command can be.
const (
	KindProgram  Kind = "program"
	KindBuiltin  Kind = "builtin"
	KindFunction Kind = "function"
)

// Program is one command that was found, with its place in the line. What a
// program starts in turn, such as that of find -exec, is found too.
type Program struct {
	Name   string      `json:"name"`
	Kind   Kind        `json:"kind"`
	Effect cove.Effect `json:"effect"` // of the name alone; its arguments may still be refused
	Line   int         `json:"line,omitempty"`
	Column int         `json:"column,omitempty"`
}

// Explanation is a decision and what it was made from.
type Explanation struct {
	Profile  string        `json:"profile"`
	Decision cove.Decision `json:"decision"`
	Programs []Program     `json:"programs"`
}

// Explain judges a command under a profile and runs nothing. The error is
// Invalid, for a profile that cannot be used.
func Explain(profile Profile, req cove.ExecRequest) (Explanation, error) {
	if err := profile.Validate(); err != nil {
		return Explanation{}, err
	}
	return explain(newList(profile), req), nil
}

// Explain judges a command under one of the profiles and runs nothing; "" means
// the default one. The error is Invalid, for a profile that does not exist.
func (p *Policy) Explain(profile string, req cove.ExecRequest) (Explanation, error) {
	if profile == "" {
		profile = p.fallback
	}
	l, ok := p.lists[profile]
	if !ok {
		return Explanation{}, p.unknown("policy", profile)
	}
	return explain(l, req), nil
}

func explain(l *list, req cove.ExecRequest) Explanation {
	j := &judge{list: l, programs: []Program{}}
	j.command(&req, req.Env)
	return Explanation{Profile: l.name, Decision: j.decision(), Programs: j.programs}
}
