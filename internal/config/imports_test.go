package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
)

func TestImportModes(t *testing.T) {
	for word, want := range map[string][2]cove.ImportMode{
		"":      {cove.ImportsOff, cove.ImportsBlock},
		"false": {cove.ImportsOff, cove.ImportsOff},
		"warn":  {cove.ImportsWarn, cove.ImportsWarn},
		"true":  {cove.ImportsBlock, cove.ImportsBlock},
	} {
		env := map[string]string{}
		if word != "" {
			env["SANDBOX_BLOCK_DANGEROUS_IMPORTS"] = word
		}
		c := load(t, sources(t, env))
		if got := [2]cove.ImportMode{c.ImportMode(), c.ToolImports()}; got != want {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
	_, err := config.Load(sources(t, map[string]string{"SANDBOX_BLOCK_DANGEROUS_IMPORTS": "maybe"}))
	if cove.CodeOf(err) != cove.Invalid {
		t.Errorf("got %v", err)
	}
}

func TestImportLists(t *testing.T) {
	src := sources(t, nil)
	writeFile(t, src, "imports:\n  block: [pickle, yaml]\n  allow: pathlib,os.path\n")
	c := load(t, src)
	if diff := cmp.Diff(config.Imports{"block": {"pickle", "yaml"}, "allow": {"pathlib", "os.path"}}, c.Imports); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"imports:\n  deny: [os]\n":                  `"deny" is not a setting; use block and allow (line 2`,
		"imports:\n  block: {a: b}\n":               "block: ",
		"imports:\n  block: [os]\n  allow: [os]\n":  `"os" is in block and in allow; keep one`,
		"imports: [os]\n":                           "write a group of names below it",
		"imports:\n  block: [os]\n  block: [sys]\n": "",
	} {
		src := sources(t, nil)
		writeFile(t, src, text)
		if _, err := config.Load(src); cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
