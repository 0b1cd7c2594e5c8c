package wire

import "github.com/cove-sandbox/cove"

// Template is a base that sessions can start from.
type Template struct {
	Name      string   `json:"name"`
	Providers []string `json:"providers" jsonschema:"those that have it"`
}

// CodeCall asks for code to be run in a session that may have to be made first.
type CodeCall struct {
	CodeRequest

	SessionID cove.ID `json:"session_id,omitempty" jsonschema:"left out, a new session is made"`
	Template  string  `json:"template,omitempty" jsonschema:"of the new session"`
	Flavor    string  `json:"flavor,omitempty" jsonschema:"of the new session"`
}

// CodeCalled is the answer to a CodeCall.
type CodeCalled struct {
	CodeResult

	SessionCreated bool   `json:"session_created" jsonschema:"this very request made the session"`
	Template       string `json:"template,omitempty" jsonschema:"of the session, where this request made it"`
}

// AnalyzeRequest asks what would be decided about a command, about code or
// about a query.
type AnalyzeRequest struct {
	Command  *Command          `json:"command,omitempty"`
	Env      map[string]string `json:"env,omitempty" jsonschema:"what the command would find in its environment"`
	Policy   string            `json:"policy,omitempty" jsonschema:"left out, that of the key or of the settings"`
	Language string            `json:"language,omitempty"`
	Code     *string           `json:"code,omitempty"`
	SQL      *string           `json:"sql,omitempty"`
}

// Analysis is what a policy decides about a command, and what it found in it.
type Analysis struct {
	Policy   string            `json:"policy"`
	Effect   cove.Effect       `json:"effect" jsonschema:"allow, deny or ask"`
	Refusal  *cove.Refusal     `json:"refusal,omitempty" jsonschema:"why not, with the rule, the word and its place"`
	Programs []AnalysisProgram `json:"programs" jsonschema:"every command that was found"`
}

// AnalysisProgram is one command that a policy found.
type AnalysisProgram struct {
	Name   string      `json:"name"`
	Kind   string      `json:"kind" jsonschema:"program, builtin or function"`
	Effect cove.Effect `json:"effect" jsonschema:"of the name alone; its arguments may still be refused"`
	Line   int         `json:"line,omitempty"`
	Column int         `json:"column,omitempty"`
}

// VerifyRequest asks for the attacks on a provider.
type VerifyRequest struct {
	Provider string `json:"provider,omitempty" jsonschema:"left out, that of the settings"`
}

// Finding is how one attempt to break out went.
type Finding struct {
	Attack  string `json:"attack"`
	Try     string `json:"try"`
	Via     string `json:"via"`
	Held    bool   `json:"held"`
	By      string `json:"by,omitempty" jsonschema:"what stopped it"`
	Detail  string `json:"detail,omitempty" jsonschema:"what got through, or why nobody can tell"`
	Skipped string `json:"skipped,omitempty" jsonschema:"why it was not tried; then held says nothing"`
}

// Verdict is what the attacks came to.
type Verdict struct {
	Attempts   int `json:"attempts"`
	Held       int `json:"held"`
	GotThrough int `json:"got_through"`
	NotTried   int `json:"not_tried"`
}

// Count adds a finding.
func (v *Verdict) Count(f Finding) {
	v.Attempts++
	switch {
	case f.Skipped != "":
		v.NotTried++
	case f.Held:
		v.Held++
	default:
		v.GotThrough++
	}
}
