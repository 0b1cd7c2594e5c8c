package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// Template is a base that sessions can start from.
type Template struct {
	Name      string            `json:"name"`
	Shared    bool              `json:"shared" jsonschema:"with all tenants; otherwise it is the caller's tenant's"`
	Kind      string            `json:"kind,omitempty" jsonschema:"host: the host's own programs, layer: files over them, tree: files of its own"`
	Digest    string            `json:"digest,omitempty" jsonschema:"of its files, sha256 in hex"`
	Source    string            `json:"source,omitempty" jsonschema:"what it was made from"`
	CreatedAt *time.Time        `json:"created_at,omitempty"`
	Size      cove.Bytes        `json:"size" jsonschema:"bytes in its files"`
	Files     int64             `json:"files"`
	Packages  []TemplatePackage `json:"packages" jsonschema:"those that were added to the host's"`
	Notes     []string          `json:"notes,omitempty" jsonschema:"what was left out"`
	Ready     bool              `json:"ready" jsonschema:"sessions can start from it"`
	Why       string            `json:"why,omitempty" jsonschema:"it is not ready"`
	Remedy    string            `json:"remedy,omitempty"`
	Providers []string          `json:"providers" jsonschema:"those that have it"`
}

// TemplatePackage is a package in a template.
type TemplatePackage = cove.TemplatePackage

// TemplateOf returns the form of t.
func TemplateOf(t cove.Template) Template {
	w := Template{
		Name: t.Name, Shared: t.Shared, Kind: t.Kind, Digest: t.Digest, Source: t.Source, Size: t.Size, Files: t.Files, Packages: t.Packages, Notes: t.Notes,
		Ready: t.Ready, Why: t.Why, Remedy: t.Remedy, Providers: t.Providers,
	}
	if !t.CreatedAt.IsZero() {
		w.CreatedAt = &t.CreatedAt
	}
	if w.Packages == nil {
		w.Packages = []TemplatePackage{}
	}
	if w.Providers == nil {
		w.Providers = []string{}
	}
	return w
}

// Cove returns the platform's own form.
func (w Template) Cove() cove.Template {
	t := cove.Template{
		Name: w.Name, Shared: w.Shared, Kind: w.Kind, Digest: w.Digest, Source: w.Source, Size: w.Size, Files: w.Files, Packages: w.Packages, Notes: w.Notes,
		Ready: w.Ready, Why: w.Why, Remedy: w.Remedy, Providers: w.Providers,
	}
	if w.CreatedAt != nil {
		t.CreatedAt = *w.CreatedAt
	}
	return t
}

// TemplateTag asks for another name of a template.
type TemplateTag struct {
	As     string `json:"as" jsonschema:"the name; what had it is replaced"`
	Shared bool   `json:"shared,omitempty" jsonschema:"with all tenants, which needs the scope admin; left out, it is the caller's tenant's"`
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

	SessionCreated bool `json:"session_created" jsonschema:"this very request made the session"`
}

// AnalyzeRequest asks what would be decided about a command, about code or
// about a query.
type AnalyzeRequest struct {
	Command  *Command          `json:"command,omitempty"`
	Env      map[string]string `json:"env,omitempty" jsonschema:"what the command would find in its environment"`
	Policy   string            `json:"policy,omitempty" jsonschema:"of a command; left out, that of the key or of the settings"`
	Language string            `json:"language,omitempty" jsonschema:"of the code: python"`
	Code     *string           `json:"code,omitempty"`

	SQL        *string        `json:"sql,omitempty" jsonschema:"of a run"`
	PythonCode *string        `json:"python_code,omitempty" jsonschema:"of a run"`
	DatasetID  string         `json:"dataset_id,omitempty" jsonschema:"of a run"`
	Files      []cove.RunFile `json:"files,omitempty" jsonschema:"of a run"`
	Provider   string         `json:"provider,omitempty" jsonschema:"of a run; left out, that of the settings"`

	SessionID cove.ID         `json:"session_id,omitempty" jsonschema:"where the code would run; its interpreter looks"`
	Template  string          `json:"template,omitempty" jsonschema:"whose interpreter looks at the code, without a session; left out, the default"`
	Imports   cove.ImportMode `json:"imports,omitempty" jsonschema:"off, warn or block; only stricter than the server's setting"`
}

// AnalyzeCodeOf returns the form of r, which is about a session or about none.
func AnalyzeCodeOf(session cove.ID, r cove.AnalyzeRequest) AnalyzeRequest {
	return AnalyzeRequest{Language: r.Language, Code: &r.Code, SessionID: session, Template: r.Template, Imports: r.Imports}
}

// CoveCode returns the platform's own form of a request about code.
func (w AnalyzeRequest) CoveCode() cove.AnalyzeRequest {
	r := cove.AnalyzeRequest{Language: w.Language, Template: w.Template, Imports: w.Imports}
	if w.Code != nil {
		r.Code = *w.Code
	}
	return r
}

// Analysis is what a policy decides about a command, about code or about a
// question to data, and what was found in it.
type Analysis struct {
	Policy   string            `json:"policy"`
	Effect   cove.Effect       `json:"effect" jsonschema:"allow, deny or ask"`
	Layer    cove.Layer        `json:"layer,omitempty" jsonschema:"authorization or content"`
	Refusal  *cove.Refusal     `json:"refusal,omitempty" jsonschema:"why not, with the rule, the word and its place"`
	Programs []AnalysisProgram `json:"programs" jsonschema:"every command that was found"`

	Security *cove.SecurityReport `json:"security,omitempty" jsonschema:"what was found in the code"`
	Provider string               `json:"provider,omitempty" jsonschema:"whose sandbox looked at the code"`
	Template string               `json:"template,omitempty" jsonschema:"whose interpreter looked at the code"`

	Tables  []string `json:"tables,omitempty" jsonschema:"those that a question to data names, as dataset.table"`
	Columns []string `json:"columns,omitempty" jsonschema:"those that it names, as dataset.table.column, where it says which"`
	Imports []string `json:"imports,omitempty" jsonschema:"what the Python of a run imports"`

	Timeout   *float64  `json:"timeout,omitempty" jsonschema:"seconds that a policy gives the code"`
	MaxOutput *Quantity `json:"max_output,omitempty" jsonschema:"bytes that a policy lets the code write"`
}

// AnalysisOf returns the form of a.
func AnalysisOf(a *cove.CodeAnalysis) Analysis {
	return Analysis{
		Effect: a.Decision.Effect, Layer: a.Decision.Layer, Refusal: a.Decision.Refusal, Programs: []AnalysisProgram{},
		Security: a.Security, Provider: a.Provider, Template: a.Template,
		Timeout: optional(a.Decision.Limits.Wall, time.Second), MaxOutput: bytesQuantity(a.Decision.Limits.Output),
	}
}

// Cove returns the platform's own form.
func (w Analysis) Cove() (*cove.CodeAnalysis, error) {
	l, err := limits(w.Timeout, w.MaxOutput)
	return &cove.CodeAnalysis{
		Decision: cove.Decision{Effect: w.Effect, Layer: w.Layer, Refusal: w.Refusal, Limits: l},
		Security: w.Security, Provider: w.Provider, Template: w.Template,
	}, err
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
