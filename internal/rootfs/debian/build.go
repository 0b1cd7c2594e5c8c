package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/rootfs"
)

// Options says what to put into a layer.
type Options struct {
	// Packages are what to add; what they need comes along.
	Packages []rootfs.Wanted
	// Files are packages on disk to add.
	Files  []string
	Bounds rootfs.Bounds // the zero value is the default
	// Tell, if set, is called with how far things are.
	Tell func(Progress)
}

// Progress is how far a build is.
type Progress struct {
	Step        string // fetch or unpack
	Package     string
	Done, Total int // packages
	Bytes       cove.Bytes
	Of          cove.Bytes // all bytes to fetch
}

// Result is what a layer holds.
type Result struct {
	Packages []rootfs.Package
	Notes    []string
}

// mostPackages bounds what one layer is made from.
const mostPackages = 2000

var goodPackage = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+(:[a-z0-9-]+)?(=[A-Za-z0-9.+:~-]+)?$`)

// Build fills the tree of a stage with what the host lacks of some packages. On
// error the tree is not to be used.
func Build(ctx context.Context, st *rootfs.Stage, o Options) (r Result, err error) {
	if o.Bounds == (rootfs.Bounds{}) {
		o.Bounds = rootfs.DefaultBounds
	}
	if o.Tell == nil {
		o.Tell = func(Progress) {}
	}
	if err := check(o); err != nil {
		return r, err
	}
	given, err := readFiles(ctx, o.Files)
	if err != nil {
		return r, err
	}
	list, err := resolve(ctx, o.Packages, given)
	if err != nil {
		return r, err
	}
	if err := recent(ctx, o.Packages, list); err != nil {
		return r, err
	}
	debs := filepath.Join(st.Dir, "debs")
	if err := os.Mkdir(debs, 0o700); err != nil {
		return r, cove.Wrap(cove.Unavailable, err, "there is no room to fetch packages to")
	}
	if err := fetch(ctx, debs, list, o.Tell); err != nil {
		return r, err
	}
	l := newLayer(st.Tree, o.Bounds)
	for i, d := range list {
		o.Tell(Progress{Step: "unpack", Package: d.name, Done: i, Total: len(list)})
		if err := l.add(ctx, d); err != nil {
			return r, err
		}
		r.Packages = append(r.Packages, rootfs.Package{Name: d.name, Version: d.version})
	}
	if err := l.choose(ctx); err != nil {
		return r, err
	}
	if err := l.solid(); err != nil {
		return r, err
	}
	slices.SortFunc(r.Packages, func(a, b rootfs.Package) int { return strings.Compare(a.Name, b.Name) })
	r.Notes = l.notes()
	if len(list) == 0 {
		r.Notes = append(r.Notes, "the host has all of it: nothing was added")
	}
	return r, os.RemoveAll(debs)
}

func check(o Options) error {
	if len(o.Packages)+len(o.Files) == 0 {
		return cove.InvalidField("package", "is missing; name at least one")
	}
	for _, p := range o.Packages {
		if !goodPackage.MatchString(p.Name) {
			return cove.InvalidField("package", "%.80q is not the name of a package; a file needs a slash in its path and .deb at its end", p.Name)
		}
	}
	for _, name := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(name); err != nil {
			return cove.Wrap(cove.Unsupported, err, "layers are made from Debian packages, and this host has no %s", name).Remedy("build on Debian or Ubuntu, or use --image or --dir")
		}
	}
	return nil
}

// deb is one package to add.
type deb struct {
	name, version, arch string
	size                cove.Bytes
	file                string // once it is there
}

// readFiles finds out what packages on disk are.
func readFiles(ctx context.Context, files []string) (list []deb, err error) {
	for _, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, cove.Wrap(cove.Unavailable, err, "the package %s cannot be found", file)
		}
		out, err := run(ctx, "", "dpkg-deb", "--show", "--showformat=${Package} ${Version} ${Architecture}", path)
		if err != nil {
			return nil, invalid(err, "%s is not a package that can be read", file)
		}
		fields := strings.Fields(string(out))
		if len(fields) != 3 || !goodPackage.MatchString(fields[0]) {
			return nil, cove.InvalidField("package", "%s does not say what it is", file)
		}
		list = append(list, deb{name: fields[0], version: fields[1], arch: fields[2], file: path})
	}
	return list, nil
}

// invalid is the error for what the caller named, unless the caller left.
func invalid(err error, format string, args ...any) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return cove.Wrap(cove.Invalid, err, "%s: %s", fmt.Sprintf(format, args...), err)
}
