package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// Bounds of a registry.
const (
	maxDatasets     = 256
	maxFiles        = 64 // of one dataset
	maxEntries      = 4096
	maxRegistry     = 1 << 20 // bytes of registry.json
	maxDescription  = 4096    // bytes
	maxID           = 63
	registryName    = "registry.json"
	registryExample = `{"datasets": [{"id": "shop", "path": "shop"}]}`
)

// Registry is the datasets below one directory. Its methods are safe for concurrent
// use.
type Registry struct {
	dir  string // real
	root *os.Root
}

var _ cove.DatasetSource = (*Registry)(nil)

// Open returns the registry of a directory, if all that it says can be meant. The
// caller closes it.
func Open(ctx context.Context, dir string) (*Registry, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(abs)
	}
	if err != nil {
		return nil, unreadable(dir, err)
	}
	r := &Registry{dir: abs, root: root}
	if _, err := r.Datasets(ctx); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return r, nil
}

// Dir is the directory, as it really is.
func (r *Registry) Dir() string { return r.dir }

// Close lets go of the directory.
func (r *Registry) Close() error { return r.root.Close() }

// Datasets implements [cove.DatasetSource].
func (r *Registry) Datasets(ctx context.Context) ([]cove.Dataset, error) {
	entries, err := r.entries()
	if err != nil {
		return nil, err
	}
	out := make([]cove.Dataset, 0, len(entries))
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := r.look(e)
		if err != nil {
			return nil, err
		}
		if len(d.Tables) > 0 || e.named {
			out = append(out, *d)
		}
	}
	return out, nil
}

// Dataset implements [cove.DatasetSource].
func (r *Registry) Dataset(_ context.Context, id string) (*cove.Dataset, string, error) {
	missing := cove.Errorf(cove.NotFound, "there is no dataset %.60q", id)
	if !isID(id) {
		return nil, "", missing
	}
	entries, err := r.entries()
	if err != nil {
		return nil, "", err
	}
	i := slices.IndexFunc(entries, func(e entry) bool { return e.ID == id })
	if i < 0 {
		return nil, "", missing
	}
	d, err := r.look(entries[i])
	if err != nil {
		return nil, "", err
	}
	if len(d.Tables) == 0 && !entries[i].named {
		return nil, "", missing
	}
	// Who mounts it follows no links.
	dir, err := filepath.EvalSymlinks(filepath.Join(r.dir, entries[i].Path))
	if err != nil {
		return nil, "", unreadable(entries[i].Path, err)
	}
	return d, dir, nil
}

// entry is a dataset as registry.json names it, or as a folder is one.
type entry struct {
	ID          string  `json:"id"`
	Description string  `json:"description"`
	Path        string  `json:"path"`
	Files       []named `json:"files"`

	named bool // by registry.json
}

type named struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// entries returns what registry.json says, or the folders where there is none.
func (r *Registry) entries() ([]entry, error) {
	text, err := r.registry()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.folders()
	case err != nil:
		return nil, unreadable(registryName, err)
	}
	list, err := decode(text)
	if err != nil {
		return nil, wrong("%s cannot be read: %v", registryName, err).Remedy("it is %s", registryExample)
	}
	if len(list) > maxDatasets {
		return nil, wrong("%s has %d datasets; the most is %d", registryName, len(list), maxDatasets)
	}
	return list, check(list)
}

// decode reads one list of datasets. An empty one has to be written down, too.
func decode(text []byte) ([]entry, error) {
	var list struct {
		Datasets []entry `json:"datasets"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&list)
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil, fmt.Errorf("the value at byte %d is of the wrong kind: %s", mistyped.Offset, mistyped.Value)
	}
	switch {
	case err != nil:
		return nil, err
	case list.Datasets == nil:
		return nil, errors.New("it has no list datasets")
	case len(bytes.TrimSpace(text[d.InputOffset():])) > 0:
		return nil, errors.New("there is more after its end")
	}
	return list.Datasets, nil
}

func (r *Registry) registry() ([]byte, error) {
	f, err := r.root.OpenFile(registryName, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is no file"), err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxRegistry+1))
	if err == nil && len(text) > maxRegistry {
		err = errors.New("it is longer than 1 MiB")
	}
	return text, err
}

// check completes what registry.json leaves out, and refuses what cannot be meant.
func check(list []entry) error {
	seen := map[string]bool{}
	for i := range list {
		e := &list[i]
		e.named = true
		if e.Path == "" {
			e.Path = e.ID
		}
		e.Path = filepath.Clean(e.Path)
		switch {
		case !isID(e.ID):
			return badID(e.ID)
		case seen[strings.ToLower(e.ID)]:
			return wrong("%s has the dataset %q twice", registryName, e.ID)
		case !filepath.IsLocal(e.Path) || strings.ContainsRune(e.Path, 0):
			return wrong("the path %.80q of dataset %q leads out of the directory", e.Path, e.ID)
		case len(e.Description) > maxDescription:
			return wrong("the description of dataset %q is longer than %d bytes", e.ID, maxDescription)
		case len(e.Files) > maxFiles:
			return wrong("dataset %q has %d files; the most is %d", e.ID, len(e.Files), maxFiles)
		}
		seen[strings.ToLower(e.ID)] = true
		for _, f := range e.Files {
			if !filepath.IsLocal(f.Path) || filepath.Clean(f.Path) != f.Path {
				return wrong("the file %.80q of dataset %q leads out of its folder", f.Path, e.ID)
			}
		}
	}
	return nil
}

// folders are the datasets of a directory without registry.json.
func (r *Registry) folders() ([]entry, error) {
	names, err := readNames(r.root, ".")
	if err != nil {
		return nil, unreadable(r.dir, err)
	}
	var list []entry
	for _, name := range names {
		info, err := r.root.Stat(name) // a link that leads out of it is an error
		if strings.HasPrefix(name, ".") || err != nil || !info.IsDir() {
			continue
		}
		if e := (entry{ID: name, Path: name}); isID(name) {
			list = append(list, e)
		} else if d, err := r.look(e); err != nil || len(d.Tables) > 0 {
			return nil, badID(name)
		}
		if len(list) > maxDatasets {
			return nil, wrong("%.80q has more than %d datasets", r.dir, maxDatasets)
		}
	}
	return list, nil
}

// readNames lists a directory, up to a bound.
func readNames(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// isID reports whether a dataset can have a name: it is a schema in SQL, and must not
// be one that the engine has itself.
func isID(id string) bool {
	if id == "" || len(id) > maxID || id[0] >= '0' && id[0] <= '9' {
		return false
	}
	if strings.ContainsFunc(id, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return false
	}
	switch strings.ToLower(id) {
	case "main", "information_schema", "pg_catalog", "memory", "system", "temp":
		return false
	}
	return true
}

func badID(id string) error {
	return wrong("%.80q cannot be the id of a dataset", id).Remedy("use up to %d letters, digits and _, which do not begin with a digit; main, memory, system and temp are taken", maxID)
}

func wrong(format string, args ...any) *cove.Error {
	return cove.InvalidField("COVE_DATASETS", format, args...)
}

// unreadable is the error for what is there and cannot be read, or is not there.
func unreadable(name string, err error) *cove.Error {
	return cove.InvalidField("COVE_DATASETS", "%.200q cannot be read: %v", name, bare(err)).Remedy("name a directory with registry.json or with a folder for each dataset")
}
