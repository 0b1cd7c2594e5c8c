//go:build !lean

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/rootfs"
	"github.com/cove-sandbox/cove/internal/rootfs/debian"
	"github.com/cove-sandbox/cove/internal/rootfs/image"
	"github.com/cove-sandbox/cove/internal/rootfs/registry"
	"github.com/cove-sandbox/cove/internal/wire"
)

// TemplateBuild says what to make a template from: one source, or none for one
// that is builtin.
type TemplateBuild struct {
	Name       string
	Packages   []string // of Debian; those with a slash are files
	Dir        string   // a tree on this machine
	Image      string   // an archive of docker save, or an OCI layout
	Dockerfile string   // with what is beside it
	Registry   string   // the name of an image in a registry

	// Origin is what people are told it was made from; "" is said by the source.
	Origin string
	// Tell, if set, is called with how far things are.
	Tell func(TemplateProgress)
	// Log, if set, gets what Docker says.
	Log io.Writer

	docker []string // variables of the settings that Docker's program knows
}

// TemplateProgress is how far a build is.
type TemplateProgress struct {
	Step        string // a word, such as fetch
	What        string // what is worked on
	Done, Total int
	Bytes, Of   cove.Bytes // 0: nobody knows
}

// BuildTemplate makes a template in a COVE_HOME, whether somebody serves that or
// not. A template of the same name is replaced for sandboxes to come.
func BuildTemplate(ctx context.Context, cfg config.Config, b TemplateBuild) (_ wire.Template, err error) {
	if b.Tell == nil {
		b.Tell = func(TemplateProgress) {}
	}
	if b.Log == nil {
		b.Log = io.Discard
	}
	b.docker = dockerEnv(cfg.Docker)
	fill, m, err := b.source()
	if err != nil {
		return wire.Template{}, err
	}
	if _, err := OpenHome(cfg.Home); err != nil {
		return wire.Template{}, err
	}
	store := templateStore(cfg)
	defer func() { err = errors.Join(err, store.Close()) }()
	if b.none() {
		// What the host has needs no files.
		if e, err := store.Look(b.Name); err == nil && e.Ready && e.Kind == rootfs.KindHost {
			return templateOf(e), nil
		}
	}
	if err := store.Room(b.Name); err != nil {
		return wire.Template{}, err
	}
	st, err := store.Stage()
	if err != nil {
		return wire.Template{}, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if err := fill(ctx, st, &m); err != nil {
		return wire.Template{}, err
	}
	b.Tell(TemplateProgress{Step: "check"})
	m, err = store.Put(ctx, st, m)
	if err != nil {
		return wire.Template{}, err
	}
	return templateOf(rootfs.Entry{Manifest: m, Ready: true}), nil
}

// filler puts files into a stage and says what they are.
type filler func(ctx context.Context, st *rootfs.Stage, m *rootfs.Manifest) error

func (b *TemplateBuild) none() bool {
	return len(b.Packages) == 0 && b.Dir == "" && b.Image == "" && b.Dockerfile == "" && b.Registry == ""
}

// source checks the request and returns how to do it.
func (b *TemplateBuild) source() (filler, rootfs.Manifest, error) {
	m := rootfs.Manifest{Name: b.Name, Kind: rootfs.KindTree, Preload: rootfs.Preload(b.Name)}
	if err := rootfs.CheckName(b.Name); err != nil {
		return nil, m, err
	}
	if b.Name == rootfs.Base {
		return nil, m, cove.InvalidField("template", "%s is the host as it is and is not built; choose another name", b.Name)
	}
	var fill filler
	sources := 0
	for _, s := range []struct {
		given  bool
		source string
		fill   filler
	}{
		{len(b.Packages) > 0, "", b.packages},
		{b.Dir != "", "directory " + b.Dir, b.dir},
		{b.Image != "", "image " + filepath.Base(b.Image), b.archive},
		{b.Dockerfile != "", "Dockerfile " + b.Dockerfile, b.dockerfile},
		{b.Registry != "", "registry " + b.Registry, b.registry},
	} {
		if s.given {
			sources++
			fill, m.Source = s.fill, s.source
			if b.Origin != "" {
				m.Source = b.Origin
			}
		}
	}
	if sources > 1 {
		return nil, m, cove.Errorf(cove.Invalid, "a template is made from one thing").Remedy("give one of --package, --dir, --image, --dockerfile and --registry")
	}
	if sources == 1 {
		return fill, m, nil
	}
	wanted, ok := rootfs.Packages(b.Name)
	if !ok {
		return nil, m, cove.Errorf(cove.Invalid, "template %s is not one of %s, so say what to make it from", b.Name, strings.Join(rootfs.Builtin()[1:], ", ")).
			Remedy("give one of --package, --dir, --image, --dockerfile and --registry")
	}
	return func(ctx context.Context, st *rootfs.Stage, m *rootfs.Manifest) error {
		return b.debian(ctx, st, m, debian.Options{Packages: wanted})
	}, m, nil
}

// packages makes a layer from what the caller named.
func (b *TemplateBuild) packages(ctx context.Context, st *rootfs.Stage, m *rootfs.Manifest) error {
	var o debian.Options
	for _, name := range b.Packages {
		if strings.Contains(name, "/") && strings.HasSuffix(name, ".deb") {
			o.Files = append(o.Files, name)
		} else {
			o.Packages = append(o.Packages, rootfs.Wanted{Name: name})
		}
	}
	return b.debian(ctx, st, m, o)
}

func (b *TemplateBuild) debian(ctx context.Context, st *rootfs.Stage, m *rootfs.Manifest, o debian.Options) error {
	o.Tell = func(p debian.Progress) {
		b.Tell(TemplateProgress{Step: p.Step, What: p.Package, Done: p.Done, Total: p.Total, Bytes: p.Bytes, Of: p.Of})
	}
	r, err := debian.Build(ctx, st, o)
	if err != nil {
		return err
	}
	m.Kind, m.Packages, m.Notes = rootfs.KindLayer, r.Packages, r.Notes
	m.Source = fmt.Sprintf("Debian packages over the host: %d", len(r.Packages))
	b.Tell(TemplateProgress{Step: "compile"})
	if err := compilePython(ctx, st); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m.Notes = append(m.Notes, "Python modules were not compiled, and load slower: "+cove.MessageOf(err))
	}
	return nil
}

// dir copies a tree.
func (b *TemplateBuild) dir(ctx context.Context, st *rootfs.Stage, m *rootfs.Manifest) error {
	u := rootfs.NewUnpacker(st.Tree, rootfs.DefaultBounds)
	u.Tell = func(written cove.Bytes) { b.Tell(TemplateProgress{Step: "copy", Bytes: written}) }
	if err := u.Copy(ctx, b.Dir); err != nil {
		return err
	}
	m.Notes = treeNotes(st.Tree, u.LeftOut())
	return rootfs.Tidy(st.Tree)
}

// treeNotes says what a tree has not.
func treeNotes(tree *os.Root, leftOut int64) (notes []string) {
	if leftOut > 0 {
		notes = append(notes, fmt.Sprintf("%d devices and the like were left out", leftOut))
	}
	for _, name := range []string{"bin/bash", "usr/bin/bash"} {
		if _, err := tree.Lstat(name); err == nil {
			return notes
		}
	}
	return append(notes, "it has no bash, which lines for the shell need; run programs by their names, such as sh -c")
}

// archive unpacks what the caller has on disk.
func (b *TemplateBuild) archive(ctx context.Context, st *rootfs.Stage, m *rootfs.Manifest) error {
	return b.image(ctx, b.Image, st, m)
}

// image unpacks an archive or a layout.
func (b *TemplateBuild) image(ctx context.Context, file string, st *rootfs.Stage, m *rootfs.Manifest) error {
	info, err := image.Unpack(ctx, st.Tree, file, image.Options{Tell: func(layer, layers int, written cove.Bytes) {
		b.Tell(TemplateProgress{Step: "unpack", Done: layer, Total: layers, Bytes: written})
	}})
	if err != nil {
		return err
	}
	m.Env, m.Path, m.Notes = info.Env, info.Path, treeNotes(st.Tree, info.LeftOut)
	return nil
}

// dockerEnv are the settings of the engine as its own program knows them.
func dockerEnv(d config.Docker) (env []string) {
	if d.Host != "" {
		env = append(env, "DOCKER_HOST="+d.Host)
	}
	if d.TLSVerify {
		env = append(env, "DOCKER_TLS_VERIFY=1")
	}
	if d.CertPath != "" {
		env = append(env, "DOCKER_CERT_PATH="+d.CertPath)
	}
	return env
}

// dockerfile lets Docker build.
func (b *TemplateBuild) dockerfile(ctx context.Context, st *rootfs.Stage, m *rootfs.Manifest) error {
	if _, err := os.Stat(b.Dockerfile); err != nil {
		return cove.Wrap(cove.NotFound, err, "there is no %s", b.Dockerfile)
	}
	b.Tell(TemplateProgress{Step: "docker build"})
	out := filepath.Join(st.Dir, "image.tar")
	if err := (image.Docker{Env: b.docker, Log: b.Log}).BuildFile(ctx, b.Dockerfile, filepath.Dir(b.Dockerfile), out); err != nil {
		return err
	}
	return b.image(ctx, out, st, m)
}

// registry fetches an image.
func (b *TemplateBuild) registry(ctx context.Context, st *rootfs.Stage, m *rootfs.Manifest) error {
	b.Tell(TemplateProgress{Step: "fetch", What: b.Registry})
	dir := filepath.Join(st.Dir, "layout")
	if err := registry.Fetch(ctx, b.Registry, dir, rootfs.DefaultBounds.Size); err != nil {
		return err
	}
	return b.image(ctx, dir, st, m)
}

// ListTemplates tells of all templates of a COVE_HOME, ready or not.
func ListTemplates(cfg config.Config) (list []wire.Template, err error) {
	t := &templates{store: templateStore(cfg)}
	defer func() { err = errors.Join(err, t.Close()) }()
	return t.wire()
}

// RemoveTemplate takes a template away. kept says that its files stay until the
// sandboxes that have them are gone.
func RemoveTemplate(ctx context.Context, cfg config.Config, name string) (kept bool, err error) {
	store := templateStore(cfg)
	defer func() { err = errors.Join(err, store.Close()) }()
	return store.Remove(ctx, name)
}

// VerifyTemplate reads all files of a template and compares them with what was
// built.
func VerifyTemplate(ctx context.Context, cfg config.Config, name string) (_ wire.Template, err error) {
	store := templateStore(cfg)
	defer func() { err = errors.Join(err, store.Close()) }()
	e, err := store.Verify(ctx, name)
	return templateOf(e), err
}
