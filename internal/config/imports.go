package config

import (
	"slices"

	"github.com/cove-sandbox/cove"
)

// Imports are changes to the list of modules that Python code should not import:
// block adds to it, allow takes from it.
type Imports map[string][]string

// importLists are the lists there are, in the order in which they are shown.
var importLists = []string{"block", "allow"}

func (i *Imports) fromNode(n node) error {
	all := Imports{}
	for _, b := range n.tree {
		if !slices.Contains(importLists, b.key) {
			return atLine(b.line, "%.80q is not a setting; use block and allow", b.key)
		}
		words, err := b.node.words()
		if err != nil {
			return atLine(b.line, "%s: %s", b.key, err)
		}
		all[b.key] = words
	}
	for _, name := range all["allow"] {
		if slices.Contains(all["block"], name) {
			return atLine(n.line, "contradicts itself: %.80q is in block and in allow; keep one", name)
		}
	}
	*i = all
	return nil
}

// Names returns the lists that have something in them.
func (i Imports) Names() []string {
	return slices.DeleteFunc(slices.Clone(importLists), func(name string) bool { return len(i[name]) == 0 })
}

// ImportMode is what becomes of dangerous imports in all Python code.
func (c Config) ImportMode() cove.ImportMode {
	switch c.Exec.DangerousImports {
	case "true":
		return cove.ImportsBlock
	case "warn":
		return cove.ImportsWarn
	}
	return cove.ImportsOff
}

// ToolImports is what becomes of them in the code of run_python_code, for which
// they are refused unless somebody said otherwise.
func (c Config) ToolImports() cove.ImportMode {
	if c.Exec.DangerousImports == "" {
		return cove.ImportsBlock
	}
	return c.ImportMode()
}
