package policy

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// guarded are variables that change which programs run, what they load, or how
// the shell reads a line.
var guarded = words{
	"PATH", "ENV", "SHELL", "SHELLOPTS", "BASHOPTS", "POSIXLY_CORRECT", "PS0", "PS1", "PS2", "PS3", "PS4",
	"PROMPT_COMMAND", "PROMPT_DIRTRIM", "GLOBIGNORE", "EXECIGNORE", "FIGNORE", "CDPATH", "PWD", "OLDPWD", "DIRSTACK",
	"FUNCNAME", "FUNCNEST", "HOSTFILE", "INPUTRC", "MAIL", "MAILPATH", "MAILCHECK", "TEXTDOMAIN", "TEXTDOMAINDIR",
	"TMOUT", "FCEDIT", "EDITOR", "VISUAL", "PAGER", "BROWSER", "MANPAGER", "LESSOPEN", "LESSCLOSE", "LESS",
	"AWKPATH", "AWKLIBPATH", "GREP_OPTIONS", "GREP_COLOR", "TAR_OPTIONS", "TAPE", "RSYNC_RSH",
	"GCONV_PATH", "LOCPATH", "NLSPATH", "GETCONF_DIR", "HOSTALIASES", "LOCALDOMAIN", "RES_OPTIONS", "TZDIR",
	"PERL5OPT", "PERL5LIB", "PERLLIB", "PERL5DB", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "MAKEFLAGS", "GOFLAGS", "_",
}

// guardedPrefixes are families of such variables.
var guardedPrefixes = []string{
	"BASH_", "LD_", "DYLD_", "GLIBC_", "MALLOC_", "PYTHON", "GAWK_", "HIST", "COMP_", "READLINE_",
	"OPENSSL_", "SSL_", "GIT_", "SSH_", "JQ_", "DEBUGINFOD_",
}

// harmlessNames belong to such families and do nothing of the kind.
var harmlessNames = words{"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONHASHSEED", "JQ_COLORS"}

var (
	localeName  = newPattern(`^(LANG|LANGUAGE|LC_[A-Z]+)$`)
	localeValue = newPattern(`^(|C|POSIX|[A-Za-z_]+\.(UTF-8|utf8|UTF8)|C\.UTF-8)$`)
	separators  = newPattern(`^[ \t\n,:;|/.=@#%&+]*$`)
)

// guardedName reports a variable that may not be set at all.
func guardedName(name string) bool {
	if harmlessNames.has(name) {
		return false
	}
	return guarded.has(name) || slices.ContainsFunc(guardedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// assignable checks the name of a variable that is set to something unknown.
func (s *script) assignable(n syntax.Node, name string) {
	if guardedName(name) || checkedValues(name) != nil {
		s.reject(n, RuleVariable, "%s changes what programs run or load, or how the shell reads; it cannot be set", name)
	}
}

// checkedValues returns the values that a variable may have, for those that may
// have some only.
func checkedValues(name string) func(value string) bool {
	switch {
	case name == "IFS":
		return separators.MatchString
	case name == "HOME" || name == "TMPDIR":
		return func(v string) bool { return strings.HasPrefix(v, "/") }
	case localeName.MatchString(name):
		return localeValue.MatchString
	}
	return nil
}

// environment judges the variables that a caller sets for a command.
func (j *judge) environment(env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		check := checkedValues(name)
		if !identifier.MatchString(name) || guardedName(name) || check != nil && !check(env[name]) {
			j.refuse(place{}, RuleVariable, name, "%.80s in the environment changes what programs run or load, or how the shell reads; a session with a command policy cannot set it so", name)
		}
	}
}

// assign judges name=value, name[index]=value and name=(…).
func (s *script) assign(a *syntax.Assign) {
	if a.Name == nil {
		s.reject(a, RuleArgument, "what this sets is only known when it runs")
		return
	}
	name := a.Name.Value
	if !identifier.MatchString(name) {
		s.reject(a, RuleAmbiguous, "%s is not the name of a variable; bash would take this for a command", name)
		return
	}
	check := checkedValues(name)
	switch {
	case check == nil || a.Naked && a.Index == nil:
		if guardedName(name) {
			s.assignable(a.Name, name)
		}
	case a.Append || a.Index != nil || a.Array != nil || !s.checkedWord(a.Value, check):
		s.reject(a, RuleVariable, "%s can only be set to a harmless value that is written out", name)
	}
	s.subscript(name, a.Index, a)
	s.word(a.Value)
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			s.subscript(name, e.Index, a.Name)
			s.word(e.Value)
		}
	}
}

func (s *script) checkedWord(w *syntax.Word, check func(string) bool) bool {
	if w == nil {
		return check("")
	}
	text, ok := literal(w)
	return ok && check(text)
}

var (
	declFlags = newPattern(`^-[aAgrxlu]+$`)
	declNames = []string{"declare", "typeset", "local", "export", "readonly"}
)

// declClause judges declare, local, export, readonly and typeset.
func (s *script) declClause(d *syntax.DeclClause) {
	s.found(arg{at: s.src.at(offset(d)), text: d.Variant.Value}, d.Variant.Value, KindBuiltin)
	if !slices.Contains(declNames, d.Variant.Value) {
		s.reject(d, RuleBuiltin, "%s is not looked into", d.Variant.Value)
	}
	for _, a := range d.Args {
		if a.Name == nil && a.Value != nil {
			s.declOption(d, a.Value)
			continue
		}
		if a.Index != nil && !all(a.Index) {
			s.arithmetic(a.Index) // expanded twice here, also for the key of a map
		}
		s.takenApart(a)
		s.assign(a)
	}
}

// declOption judges an argument that is no plain assignment: an option, or
// something in quotes that could become either.
func (s *script) declOption(d *syntax.DeclClause, w *syntax.Word) {
	s.word(w)
	text, ok := literal(w)
	switch {
	case !ok:
		s.reject(w, RuleArgument, "what %s does with this is only known when it runs", d.Variant.Value)
	case !declFlags.MatchString(text) && text != "-p" && text != "--":
		s.reject(w, RuleBuiltin, "%s does more with this than set a variable; write name=value without quotes around the name", d.Variant.Value)
	}
}
