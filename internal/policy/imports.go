package policy

import (
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Imports says what becomes of Python code that imports what it should not.
type Imports struct {
	// Mode is for all code; a request can ask for a stricter one. "" means off.
	Mode cove.ImportMode `json:"mode,omitempty"`
	// Block is added to the built-in list, and Allow taken from both. A name stands
	// for the module and all in it; a longer name beats a shorter one.
	Block []string `json:"block,omitempty"`
	Allow []string `json:"allow,omitempty"`
}

// DangerousModules is the built-in list: what reaches the operating system, other
// programs, the network, or whatever else is hidden from who reads the code.
func DangerousModules() []string {
	return []string{
		"os", "posix", "nt", "subprocess", "_posixsubprocess", "shutil", "pathlib", "pty", "tty", "signal", "fcntl", "mmap", "resource", "multiprocessing", "_multiprocessing",
		"socket", "_socket", "socketserver", "ssl", "_ssl", "http.client", "http.server", "urllib.request", "ftplib", "telnetlib", "smtplib", "poplib", "imaplib", "nntplib",
		"xmlrpc", "webbrowser", "requests", "httpx", "aiohttp", "urllib3", "paramiko",
		"ctypes", "_ctypes", "cffi", "importlib", "_frozen_importlib", "_frozen_importlib_external", "_imp", "imp", "zipimport", "runpy", "code", "codeop", "builtins", "marshal",
	}
}

const (
	maxModules    = 512
	maxModuleName = 128
)

var moduleName = newPattern(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// Validate reports the first thing that makes the rules unusable.
func (i Imports) Validate() error {
	if !slices.Contains(append(cove.ImportModes(), ""), i.Mode) {
		return cove.InvalidField("imports.mode", "%.40q is unknown; use off, warn or block", i.Mode)
	}
	for _, l := range []struct {
		field string
		names []string
	}{{"imports.block", i.Block}, {"imports.allow", i.Allow}} {
		if len(l.names) > maxModules {
			return cove.InvalidField(l.field, "has %d names; the most is %d", len(l.names), maxModules)
		}
		for _, name := range l.names {
			if len(name) > maxModuleName || !moduleName.MatchString(name) {
				return cove.InvalidField(l.field, "%.80q is not the name of a module; write one such as os or urllib.request", name)
			}
			if l.field == "imports.allow" && slices.Contains(i.Block, name) {
				return cove.InvalidField(l.field, "%s is in block, too; keep one", name)
			}
		}
	}
	return nil
}

// modules are the rules made ready for looking things up: true for what is
// blocked, false for what is allowed.
type modules map[string]bool

func newModules(i Imports) modules {
	m := modules{}
	for _, name := range slices.Concat(DangerousModules(), i.Block) {
		m[name] = true
	}
	for _, name := range i.Allow {
		m[name] = false
	}
	return m
}

// blocks reports whether a name, or what it is a part of, is on the list.
func (m modules) blocks(name string) bool {
	for {
		if blocked, listed := m[name]; listed {
			return blocked
		}
		cut := strings.LastIndexByte(name, '.')
		if cut < 0 {
			return false
		}
		name = name[:cut]
	}
}

// loaders are the ways to load a module by a name that is only known at run time.
// Where importlib may be used, so may they.
var loaders = []string{"__import__", "import_module", "find_spec", "find_loader", "get_loader", "resolve_name", "locate", "load_module", "run_module", "sys.modules", "importlib"}

// dangerous reports whether an import is on the list.
func (m modules) dangerous(i cove.Import) bool {
	switch {
	case i.Module == cove.AnyModule && slices.Contains(loaders, i.How):
		return m.blocks("importlib")
	case i.Module == cove.AnyModule:
		return m.blocks("builtins")
	case i.Name != "":
		return m.blocks(i.Module + "." + i.Name)
	}
	return m.blocks(i.Module)
}

// ImportMode implements [cove.ImportPolicy].
func (p *Policy) ImportMode(a cove.Action) cove.ImportMode {
	if a.Code == nil || cove.Language(a.Code.Language) != "python" || a.Code.Trusted && a.Principal.May(cove.ScopeTrusted) {
		return cove.ImportsOff
	}
	return cove.ImportsOff.Tighten(p.imports).Tighten(a.Code.Imports)
}

// Dangerous implements [cove.ImportPolicy].
func (p *Policy) Dangerous(list []cove.Import) []cove.Import {
	found := []cove.Import{}
	for _, i := range list {
		if p.modules.dangerous(i) {
			found = append(found, i)
		}
	}
	return found
}

// importing judges what was found in code. In mode block, code into which nobody
// looked does not run.
func (p *Policy) importing(a cove.Action) *cove.Refusal {
	if a.Verb != cove.ContextRun || p.ImportMode(a) != cove.ImportsBlock {
		return nil
	}
	r := a.Report
	if r == nil {
		r = &cove.SecurityReport{Unread: "nobody looked"}
	}
	if r.Unread != "" {
		return &cove.Refusal{Rule: RuleImport, Reason: "the imports of this code could not be found: " + r.Unread + "; make it simpler, or write data to a file and read it from there"}
	}
	found := p.Dangerous(r.Imports)
	if len(found) == 0 {
		return nil
	}
	first := found[0]
	reason := "Security policy blocked import: " + first.Module
	if first.Module == cove.AnyModule {
		reason += " (what " + first.How + " would load or run here is only known when it runs)"
	}
	return &cove.Refusal{Rule: RuleImport, Reason: reason, Word: first.Module, Line: first.Line, Column: first.Column}
}
