package policy

// programRule judges the arguments of a program that can start others.
type rule func(j *judge, name arg, args []arg, in input)

var pythonName = newPattern(`^(python|pypy)[0-9.]*$`)

// programRule returns the rule for a program, or nil if it starts no others.
func programRule(name string) rule {
	switch name {
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		return awkRule
	case "sed", "gsed":
		return sedRule
	case "find", "gfind":
		return findRule
	case "sort", "gsort":
		return sortRule
	case "bash":
		return bashRule
	case "sh", "dash", "ash":
		return shRule
	case "env":
		return envRule
	case "xargs":
		return xargsRule
	case "watch":
		return watchRule
	case "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "busybox", "toybox", "eval", "parallel", "script":
		return neverRule
	}
	if l, ok := launchers[name]; ok {
		return l.judge
	}
	if pythonName.MatchString(name) {
		return pythonRule
	}
	return nil
}

// neverRule refuses programs that start whatever they are told to, in ways that
// are not looked into, also where a profile lists them.
func neverRule(j *judge, name arg, _ []arg, _ input) {
	j.refuse(name.at, RuleShell, name.text, "%s runs other commands in ways that are not looked into", name.text)
}
