package policy

import "github.com/cove-sandbox/cove/internal/scope"

// The rules that a refusal can name, in Refusal.Rule.
const (
	RuleScope      = scope.Rule                // the principal lacks the scope that the verb needs
	RuleProfile    = "unknown profile"         // the session names a profile that is not configured
	RuleLanguage   = "language"                // code in a language whose interpreter is not on the list
	RuleEmpty      = "nothing to judge"        // a command was expected and none came
	RuleSize       = "size"                    // the command is longer than can be judged
	RuleDepth      = "nesting"                 // the command is nested deeper than can be judged
	RuleSyntax     = "syntax"                  // the shell could not read it, or we do not look into it
	RuleAmbiguous  = "ambiguous"               // shells disagree on what the text means
	RuleDenied     = "denied program"          // the profile denies it by name
	RuleUnlisted   = "not on the list"         // the profile does not list it
	RuleApproval   = "needs approval"          // the profile wants a person to agree
	RulePath       = "program path"            // a program named by an unusual path
	RuleName       = "name is not literal"     // the name of the command is only known when it runs
	RuleArgument   = "argument is not literal" // what the argument does is only known when it runs
	RuleBuiltin    = "builtin"                 // a builtin of the shell that runs or hides commands
	RuleFunction   = "function"                // a function that may not be defined when it is called
	RuleVariable   = "guarded variable"        // a variable that changes what programs run or load
	RuleArithmetic = "arithmetic"              // the shell would run what a variable holds
	RuleIndirect   = "indirect expansion"      // a variable that names another, or holds code
	RuleRedirect   = "redirection"             // a file that is no file
	RuleOption     = "option"                  // an option that starts a program, or one that we do not know
	RuleFind       = "find action"             // an action of find that is not a search
	RuleAwk        = "awk program"             // awk code that runs commands, or cannot be read
	RuleSed        = "sed script"              // sed code that runs commands, or cannot be read
	RulePython     = "python code"             // python code that is not on the safe side
	RuleImport     = "import"                  // Python code that imports a module on the list, or cannot be read
	RuleShell      = "shell"                   // a shell that runs what cannot be read
)
