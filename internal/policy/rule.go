package policy

import "github.com/cove-sandbox/cove/internal/scope"

// The rules that a refusal can name, in Refusal.Rule.
const (
	RuleScope    = scope.Rule            // the principal lacks the scope that the verb needs
	RuleProfile  = "unknown profile"     // the session names a profile that is not configured
	RuleLanguage = "language"            // code in a language whose interpreter is not on the list
	RuleEmpty    = "nothing to judge"    // a command was expected and none came
	RuleSize     = "size"                // the command is longer than can be judged
	RuleDepth    = "nesting"             // the command is nested deeper than can be judged
	RuleSyntax   = "syntax"              // the shell could not read it
	RuleDenied   = "denied program"      // the profile denies it by name
	RuleUnlisted = "not on the list"     // the profile does not list it
	RuleApproval = "needs approval"      // the profile wants a person to agree
	RulePath     = "program path"        // a program named by an unusual path
	RuleName     = "name is not literal" // the name of the command is only known when it runs
	RuleBuiltin  = "builtin"             // a builtin of the shell that runs a text, or changes what names stand for
	RuleFunction = "function"            // a function with the name of a program on a list
	RuleVariable = "guarded variable"    // a variable that changes what programs run or load
	RuleRedirect = "redirection"         // a network connection of bash
	RuleImport   = "import"              // Python code that imports a module on the list, or cannot be read
)
