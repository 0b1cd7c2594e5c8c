// Package template says what a sandbox can be made from beside the base: who has
// templates, and what one is. Providers whose sandboxes see this machine's files
// share it. It must not build, fetch or open a template; that is internal/rootfs's
// business.
package template

import (
	"maps"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Set are templates. Methods are safe for concurrent use, and quick: they are
// called with each sandbox.
type Set interface {
	// Names returns those that are ready, without the base.
	Names() []string
	// Lacking says of those that are not ready why, and what to do: a sentence each.
	Lacking() []string
	// Get returns one that is ready. NotFound is for a name that nothing was built
	// under, and Unavailable for what is not any more what was built.
	Get(name string) (Template, error)
}

// Template is one of them. Nobody may change it, nor what is in its tree, while it
// is in use.
type Template struct {
	Name string
	// Digest tells apart what was built under one name, one after the other.
	Digest string
	Kind   Kind
	// Tree is the absolute path of its directory; "" for the host's own files.
	Tree string
	// Env is what programs get; a sandbox's own variables come on top.
	Env map[string]string
	// Path are directories that programs are searched in before all others.
	Path []string
	// Preload are the modules, by language, that a warm interpreter loads. It is for
	// who starts those; where there are some for Python, sandboxes are made so that
	// interpreters can be forked into them.
	Preload map[string][]string
}

// Preloads reports whether interpreters have something to load ahead.
func (t *Template) Preloads() bool { return len(t.Preload["python"]) > 0 }

// Kind says what a template's tree is.
type Kind string

// The kinds of templates.
const (
	KindHost  Kind = "host"  // there is none: sandboxes see what those of the base see
	KindLayer Kind = "layer" // lies over the host's files, with the same names
	KindTree  Kind = "tree"  // is all that sandboxes see; its /etc has our own files on top
)

// Bounds of what a template may say.
const (
	mostVariables = 256
	mostVariable  = 32 << 10
	mostSearched  = 32
)

// Check refuses what no sandbox could be made from.
func (t *Template) Check() error {
	broken := func(format string, args ...any) error {
		return cove.Errorf(cove.Unavailable, "template %.60q "+format, append([]any{t.Name}, args...)...).Remedy("build it again with cove template build")
	}
	switch t.Kind {
	case KindHost:
	case KindLayer, KindTree:
		if !filepath.IsAbs(t.Tree) {
			return broken("has no directory")
		}
	default:
		return broken("is of an unknown kind, %.40q", string(t.Kind))
	}
	if len(t.Env) > mostVariables || len(t.Path) > mostSearched {
		return broken("has too many variables")
	}
	for name, value := range t.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.IndexByte(value, 0) >= 0 || len(name)+len(value) > mostVariable {
			return broken("has a variable that cannot be set, %.40q", name)
		}
	}
	for _, dir := range t.Path {
		if !filepath.IsAbs(dir) || strings.ContainsAny(dir, ":\x00") || len(dir) > mostVariable {
			return broken("has a place to search that is none, %.40q", dir)
		}
	}
	return nil
}

// Path is where programs are in a sandbox, with nothing else said.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environ is what programs get of a template; nil where that is nothing.
func (t *Template) Environ() map[string]string {
	if len(t.Env) == 0 && len(t.Path) == 0 {
		return nil
	}
	env := make(map[string]string, len(t.Env)+1)
	maps.Copy(env, t.Env)
	if env["PATH"] == "" {
		env["PATH"] = Path
	}
	if len(t.Path) > 0 {
		env["PATH"] = strings.Join(t.Path, ":") + ":" + env["PATH"]
	}
	return env
}
