package pypolicy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/pypolicy/fact"
)

// The rules, as refusals name them.
const (
	RuleImport    = "py.import"    // modules that are not for runs, and what is not taken from one by its name
	RuleBuiltin   = "py.builtin"   // open, exec, getattr and the like
	RuleDunder    = "py.dunder"    // __x__, by name, as an attribute and in texts
	RuleRead      = "py.read"      // what reads files
	RuleWrite     = "py.write"     // what writes files
	RuleAttribute = "py.attribute" // what a module has and runs do not need; ways into the interpreter
	RulePrivate   = "py.private"   // attributes that begin with _
	RuleModule    = "py.module"    // a module that is handed on
	RuleEval      = "py.eval"      // texts that pandas evaluates and nobody can read before
	RuleOption    = "py.option"    // settings of pandas that load code
	RuleUnread    = "py.unread"    // code that could not be looked into
)

// Modules returns what code may import, in order. Parts of them that have a list in
// names.txt may be imported, too.
func Modules() []string {
	return []string{"pandas", "numpy", "math", "statistics", "re", "datetime"}
}

// Judge says whether code may run, and where not what is the first thing in it that
// speaks against it. Code that cannot be parsed is allowed: it will not run.
func Judge(r *fact.Report) *cove.RunDecision {
	d := &cove.RunDecision{Allowed: true, Imports: imports(r.Facts)}
	if r.Syntax != nil {
		return d
	}
	if r.Unread != "" {
		d.Refusal = &cove.Refusal{Rule: RuleUnread, Reason: "the code cannot be looked into: " + r.Unread + "; ask in smaller pieces"}
	}
	for _, f := range r.Facts {
		if d.Refusal != nil {
			break
		}
		if rule, reason := judge(f); rule != "" {
			word := f.Name
			if f.Kind == fact.Import {
				word = f.Of
			}
			d.Refusal = &cove.Refusal{Rule: rule, Reason: plain(reason), Word: plain(word), Line: f.Line, Column: f.Column}
		}
	}
	d.Allowed = d.Refusal == nil
	return d
}

// Problem is the error of a run whose code does not run: because it cannot be
// parsed, or because the decision is against it. Otherwise it is nil.
func Problem(r *fact.Report, d *cove.RunDecision) *cove.RunError {
	if s := r.Syntax; s != nil {
		text := "Python syntax error: " + s.Value
		if s.Line > 0 {
			text += fmt.Sprintf(" (line %d)", s.Line)
		}
		return &cove.RunError{Type: cove.RunPythonFailed, Message: text}
	}
	if d.Allowed {
		return nil
	}
	text := d.Refusal.Reason
	if d.Refusal.Line > 0 {
		text = fmt.Sprintf("line %d, column %d: %s", d.Refusal.Line, d.Refusal.Column, text)
	}
	return &cove.RunError{Type: cove.RunPythonPolicy, Message: text + " (" + d.Refusal.Rule + ")", Refusal: d.Refusal}
}

// plain is a text with nothing in it that a terminal obeys: words of the code are
// quoted in it.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// imports is what the code imports, each once and in order.
func imports(facts []fact.Fact) []string {
	var out []string
	for _, f := range facts {
		if (f.Kind == fact.Import || f.Kind == fact.From) && !slices.Contains(out, f.Of) {
			out = append(out, f.Of)
		}
	}
	return out
}

// judge returns the rule that a fact breaks and why, or "".
func judge(f fact.Fact) (rule, reason string) {
	switch f.Kind {
	case fact.Import:
		return imported(f.Of)
	case fact.From:
		return from(f)
	case fact.Name:
		return name(f)
	case fact.Special, fact.Text:
		return special(f.Name)
	case fact.Define:
		if !methods[f.Name] {
			return special(f.Name)
		}
		return "", ""
	case fact.Attribute:
		return attribute(f)
	case fact.Word:
		if writers[f.Name] || texts[f.Name] {
			return method(f.Name)
		}
		return "", ""
	case fact.Method:
		return method(f.Name)
	case fact.Option:
		return option(f.Name)
	case fact.Query:
		return query(f.Name)
	}
	return RuleUnread, fmt.Sprintf("something stands there that no rule is about (%.40q)", string(f.Kind))
}

func imported(path string) (rule, reason string) {
	if isModule(path) {
		return "", ""
	}
	return RuleImport, fmt.Sprintf("%.80s is not to be imported; runs have %s", path, strings.Join(Modules(), ", "))
}

func from(f fact.Fact) (rule, reason string) {
	switch {
	case !isModule(f.Of):
		return imported(f.Of)
	case f.Name == "*":
		return RuleImport, "name what is to be imported: * is not for runs"
	case here[f.Name]:
		return RuleImport, f.Name + " is to be called as " + f.Of + "." + f.Name
	case taken[f.Of][f.Name]:
		return "", ""
	}
	if rule, reason = outside(f.Of, f.Name); rule == RuleAttribute {
		rule = RuleImport
	}
	return rule, reason
}

// outside is why something of a module may not be used.
func outside(module, name string) (rule, reason string) {
	path := module + "." + name
	switch {
	case readers[name]:
		return RuleRead, path + " reads files; the tables are there by name and in dfs"
	case writers[name], moduleWriters[name]:
		return RuleWrite, path + " writes files; leave what is to be returned in result_df or result"
	}
	return RuleAttribute, path + " is not for runs"
}

func special(name string) (rule, reason string) {
	if harmless[name] {
		return "", ""
	}
	return RuleDunder, fmt.Sprintf("%.80s leads into the interpreter; names of the form __x__ are not for runs", name)
}

func isSpecial(name string) bool {
	return len(name) > 4 && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__")
}

func name(f fact.Fact) (rule, reason string) {
	capital := f.Name != "" && f.Name[0] >= 'A' && f.Name[0] <= 'Z'
	switch {
	case isSpecial(f.Name):
		return special(f.Name)
	case f.Name == "getattr":
		return RuleBuiltin, "getattr is only for names that stand in the code: getattr(x, \"name\")"
	case closed[f.Name], f.Builtin && !builtins[f.Name] && !capital:
		return RuleBuiltin, f.Name + " is not for runs, as the name of a variable neither"
	case f.Last && isModule(f.Of):
		return RuleModule, fmt.Sprintf("%s is a module, which is only for taking something from it: %s.something", f.Name, f.Name)
	}
	return "", ""
}

func attribute(f fact.Fact) (rule, reason string) {
	if isSpecial(f.Name) && (!harmless[f.Name] || isModule(f.Of)) {
		return RuleDunder, fmt.Sprintf("%.80s leads into the interpreter; names of the form __x__ are not for runs", f.Name)
	}
	if isModule(f.Of) {
		path := f.Of + "." + f.Name
		switch {
		case !taken[f.Of][f.Name]:
			return outside(f.Of, f.Name)
		case isModule(path) && f.Last:
			return RuleModule, fmt.Sprintf("%s is a module, which is only for taking something from it: %s.something", path, path)
		}
	}
	switch {
	case texts[f.Name]:
		return text(f)
	case here[f.Name] && f.Last && !f.Called:
		return RuleEval, f.Name + " is to be called where it stands; a column of this name is had by x[\"" + f.Name + "\"]"
	case slices.Contains(f.Keywords, "backend"), drawers[f.Name] && f.Spread:
		return RuleOption, f.Name + " is not to choose who draws: that loads code"
	}
	if rule, reason = member(f.Name); rule == RulePrivate && f.Own {
		return "", ""
	}
	return rule, reason
}

// text judges a method that gives a text, or writes it.
func text(f fact.Fact) (rule, reason string) {
	to := slices.ContainsFunc(f.Keywords, func(k string) bool { return destination[k] })
	if f.Called && f.Args == 0 && !f.Spread && !to {
		return "", ""
	}
	return RuleWrite, f.Name + " is only to give a text: call it where it stands, with keywords alone and no place to write to"
}

// member judges the name of something that any value may have.
func member(name string) (rule, reason string) {
	switch {
	case writers[name]:
		return RuleWrite, name + " writes files; leave what is to be returned in result_df or result. A column of this name is had by x[\"" + name + "\"]"
	case doors[name]:
		return RuleAttribute, name + " is not for runs; a column of this name is had by x[\"" + name + "\"]"
	case strings.HasPrefix(name, "_") && !isSpecial(name) && !offered[name] && strings.Trim(name, "_0123456789") != "":
		return RulePrivate, fmt.Sprintf("%.80s is private", name)
	}
	return "", ""
}

// method judges the name of a method that is handed over as a text.
func method(name string) (rule, reason string) {
	switch {
	case name == fact.Any:
		return RuleEval, "what is called is to stand in the code where it is handed over, or where a name is set to it: the name of a method as a text, a function, or a list or dictionary of them; for one that is only known when the code runs, write lambda g: …"
	case texts[name]:
		return RuleWrite, name + " is not to be called by a text"
	case name == "eval", name == "query":
		return RuleEval, name + " is not to be called by a text"
	case isSpecial(name):
		return special(name)
	}
	return member(name)
}

// settings are those of pandas that change how things look and count.
var settings = regexp.MustCompile(`^(compute|display|mode|styler)\.[a-z_.]+$`)

func option(name string) (rule, reason string) {
	if settings.MatchString(name) {
		return "", ""
	}
	return RuleOption, "only the settings display, mode, compute and styler of pandas are to be changed, by their whole names in the code"
}

func query(name string) (rule, reason string) {
	if name == fact.Unparsed {
		return RuleEval, "the text for pandas to evaluate is not an expression that can be read"
	}
	return RuleEval, "the text for pandas to evaluate is to stand in the code; use @name in it for a value"
}
