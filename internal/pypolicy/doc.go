// Package pypolicy says whether Python code may run over data: it judges what
// stands in the code, as told by who read it, and names the rule, the word and the
// place where it says no.
//
// Code imports six modules, takes from them what names.txt has, and hands none of them
// on, so that all it gets from a module by its name is seen. Builtins are those of a list.
// Of what values have, the methods that read or write files, the ways into the interpreter
// and private names are refused, and so are names of methods that are made at run time,
// where that can be seen.
//
// It keeps code that means well, or was led astray, away from what a question to
// data does not need. It is not the fence: that is the kernel, which holds the interpreter
// of internal/datarun/pyrun, and the sandbox. The package is pure: it parses nothing, runs
// nothing and has no effect.
package pypolicy
