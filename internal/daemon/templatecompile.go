//go:build !lean

package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
	"github.com/cove-sandbox/cove/provider/all"
)

// Bounds of compiling the Python modules of a layer.
const (
	compileTime  = 10 * time.Minute
	compileRoom  = 2 * cove.GiB
	compileFiles = 200_000
)

// compiled is where compiled modules come out of the sandbox.
const compiled = cove.WorkspacePath + "/compiled"

// compilePython adds compiled Python modules to a layer that is being built.
// Compiling runs in a sandbox of that layer: reading a module is work for the very
// interpreter that came with it.
func compilePython(ctx context.Context, st *rootfs.Stage) (err error) {
	sources, err := pythonSources(st.Tree)
	if err != nil || len(sources) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	// In the stage, which the next build clears if this one is killed.
	dir := filepath.Join(st.Dir, "compile")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return cove.Wrap(cove.Unavailable, err, "there is no room for temporary files")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := all.Providers(all.Config{Home: dir, Once: true, Templates: staged(filepath.Join(st.Dir, "tree"))})["local"]()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	sb, err := p.Create(ctx, cove.NewID(), cove.Spec{
		Template: stagedName, Network: cove.Network{Mode: cove.NetworkNone},
		Workspace: cove.Workspace{Kind: cove.WorkspaceMemory, Size: compileRoom, Files: compileFiles},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sb.Destroy(context.WithoutCancel(ctx))) }()
	if err := runCompiler(ctx, sb, sources); err != nil {
		return err
	}
	return takeCompiled(ctx, sb, st.Tree)
}

// pythonSources lists the modules in a layer, as a sandbox sees them.
func pythonSources(tree *os.Root) (sources []string, err error) {
	err = fs.WalkDir(tree.FS(), "usr/lib", func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.IsDir() && path.Dir(name) == "usr/lib" && !strings.HasPrefix(d.Name(), "python3") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && strings.HasSuffix(name, ".py") && !strings.ContainsRune(name, '\n') {
			sources = append(sources, "/"+name)
		}
		return nil
	})
	return sources, err
}

// runCompiler compiles what can be compiled; packages also hold examples of what
// cannot.
func runCompiler(ctx context.Context, sb cove.Sandbox, sources []string) error {
	proc, err := sb.Start(ctx, cove.Command{
		Argv: []string{"python3", "-m", "compileall", "-q", "-j", "0", "-i", "-"}, Env: map[string]string{"PYTHONPYCACHEPREFIX": compiled},
		Stdin: strings.NewReader(strings.Join(sources, "\n") + "\n"),
	})
	if err != nil {
		return err
	}
	_, err = proc.Wait(ctx)
	return err
}

// goodCompiled is the name of a compiled module below where they come out.
var goodCompiled = regexp.MustCompile(`^(usr/lib/python3[^/]*/.+)/([^/]+)\.(cpython-[0-9]+(?:\.opt-[12])?)\.pyc$`)

// takeCompiled puts compiled modules beside their sources. The sandbox is not
// believed: what is no module of the layer stays outside.
func takeCompiled(ctx context.Context, sb cove.Sandbox, tree *os.Root) error {
	out, err := sb.Files().Archive(ctx, compiled)
	if errors.Is(err, cove.NotFound) {
		return cove.Errorf(cove.Unavailable, "the template's Python compiled nothing")
	}
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	u := rootfs.NewUnpacker(tree, rootfs.Bounds{Entries: compileFiles, Size: compileRoom})
	u.Map = func(name string) string {
		m := goodCompiled.FindStringSubmatch(name)
		if m == nil {
			return ""
		}
		if info, err := tree.Lstat(path.Join(m[1], m[2]+".py")); err != nil || !info.Mode().IsRegular() {
			return ""
		}
		return path.Join(m[1], "__pycache__", m[2]+"."+m[3]+".pyc")
	}
	return u.Layer(ctx, out)
}

// stagedName is what a layer is called while it is built.
const stagedName = "staged"

// staged shows a layer that is being built to a provider.
type staged string

// Names implements [all.Templates].
func (s staged) Names() []string { return []string{stagedName} }

// Lacking implements [all.Templates].
func (staged) Lacking() []string { return nil }

// Get implements [all.Templates].
func (s staged) Get(name string) (all.Template, error) {
	if name != stagedName {
		return all.Template{}, cove.Errorf(cove.NotFound, "there is no template %.60q", name)
	}
	return all.Template{Name: stagedName, Digest: string(s), Kind: all.TemplateKind(rootfs.KindLayer), Tree: string(s)}, nil
}
