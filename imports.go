package cove

import (
	"context"
	"slices"
)

// ImportMode says what becomes of Python code that imports what it should not.
type ImportMode string

// The modes, from lax to strict.
const (
	ImportsOff   ImportMode = "off"   // nobody looks
	ImportsWarn  ImportMode = "warn"  // it runs, and the answer says what was found
	ImportsBlock ImportMode = "block" // it does not run
)

// ImportModes returns every mode, from lax to strict.
func ImportModes() []ImportMode { return []ImportMode{ImportsOff, ImportsWarn, ImportsBlock} }

// Tighten returns the stricter of two modes; "" is no wish.
func (m ImportMode) Tighten(by ImportMode) ImportMode {
	if slices.Index(ImportModes(), by) > slices.Index(ImportModes(), m) {
		return by
	}
	return m
}

// SecurityReport is what was found in code before it ran. It is a guard-rail for
// code that means well, not the fence: that is the sandbox.
type SecurityReport struct {
	Mode     ImportMode `json:"mode"`
	Imports  []Import   `json:"imports"`            // all, in the order of the code
	Blocked  []Import   `json:"blocked_imports"`    // those on the list
	Bypassed bool       `json:"bypassed,omitempty"` // the caller was trusted, and nobody looked
	Syntax   *CodeError `json:"syntax,omitempty"`   // the code cannot be parsed, and so cannot run
	// Unread says why nobody could look: the code is too large or too deep, or took
	// too long. It blocks where a dangerous import would.
	Unread string `json:"unread,omitempty"`
}

// Modules returns the modules that are blocked, each once and in order.
func (r *SecurityReport) Modules() []string {
	names := []string{}
	if r == nil {
		return names
	}
	for _, i := range r.Blocked {
		if !slices.Contains(names, i.Module) {
			names = append(names, i.Module)
		}
	}
	return names
}

// Import is one place where code names a module.
type Import struct {
	Module string `json:"module"`         // "?" where only running the code would tell
	Name   string `json:"name,omitempty"` // what is taken from it, by from
	How    string `json:"how"`            // import, from, or what loads or runs it, such as __import__, import_module, exec, eval
	Line   int    `json:"line"`           // from 1; of the literal, for what stands in one
	Column int    `json:"column"`         // in bytes, from 1
}

// AnyModule stands in [Import.Module] for what only running the code would tell.
const AnyModule = "?"

// ImportPolicy is a [Policy] that knows which imports are dangerous. Like Decide,
// its methods are pure.
type ImportPolicy interface {
	Policy
	// ImportMode is what becomes of dangerous imports in the code of an action.
	ImportMode(a Action) ImportMode
	// Dangerous returns those that are on the list, in their order.
	Dangerous(list []Import) []Import
}

// AnalyzeRequest asks what is in code, without running it.
type AnalyzeRequest struct {
	Language string
	Code     string
	Template string     // whose interpreter looks, where there is no session; "" means the default
	Imports  ImportMode // as in [CodeRequest]
}

// Validate reports a request that nobody can look into.
func (r AnalyzeRequest) Validate() error {
	if l := Language(r.Language); l != "python" {
		return Errorf(Unsupported, "only Python code can be looked into, not %.40q", l).With("field", "language").
			Remedy("name the language python, or run the code: the sandbox holds it")
	}
	return r.code().Validate()
}

func (r AnalyzeRequest) code() CodeRequest {
	return CodeRequest{Language: r.Language, Code: r.Code, Imports: r.Imports}
}

// CodeAnalysis is what was found in code, and what a policy makes of it.
type CodeAnalysis struct {
	Decision Decision        `json:"decision"`
	Security *SecurityReport `json:"security"`
	Provider string          `json:"provider"`
	Template string          `json:"template"`
}

// Analyzer finds the imports of code by the interpreter that will run it, in a
// place where no code of a caller ever ran. It fills Imports, Syntax and Unread;
// what is blocked is for a policy to say. An error means that the looking itself
// broke, not that of the code.
type Analyzer interface {
	Analyze(ctx context.Context, in Starter, language, code string) (*SecurityReport, error)
}
