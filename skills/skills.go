// Package skills holds what models are told about Cove, as files where programs that
// run models look for them. It must not hold anything but them: no logic, no text of
// its own.
package skills

import _ "embed" // for the files

//go:embed cove/SKILL.md
var cove string

// Cove returns how to use Cove well, for a model, in Markdown.
func Cove() string { return cove }
