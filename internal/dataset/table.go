package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// look returns the dataset of an entry, with its tables by name.
func (r *Registry) look(e entry) (*cove.Dataset, error) {
	root, err := r.root.OpenRoot(e.Path)
	if err != nil {
		return nil, wrong("the folder %.80q of dataset %q cannot be read: %v", e.Path, e.ID, bare(err)).
			Remedy("it must be a folder of this directory, and no link that leads out of it")
	}
	defer func() { _ = root.Close() }()
	files, err := e.files(root)
	if err != nil {
		return nil, err
	}
	d := &cove.Dataset{ID: e.ID, Description: e.Description, Tables: []cove.Table{}}
	for _, f := range files {
		t, info, err := tableOf(root, f)
		if err != nil {
			return nil, wrong("the file %.80q of dataset %q: %v", f.Path, e.ID, bare(err))
		}
		if t == nil {
			continue
		}
		if len(d.Tables) == maxFiles {
			return nil, wrong("dataset %q has more than %d files", e.ID, maxFiles).Remedy("name those that matter in %s", registryName)
		}
		d.Tables = append(d.Tables, *t)
		d.Size += t.Size
		if info.ModTime().After(d.ChangedAt) {
			d.ChangedAt = info.ModTime()
		}
	}
	slices.SortFunc(d.Tables, func(a, b cove.Table) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.File, b.File)
	})
	tellApart(d.Tables)
	return d, nil
}

// files are those that an entry names, or those that are there.
func (e entry) files(root *os.Root) ([]named, error) {
	if len(e.Files) > 0 {
		return e.Files, nil
	}
	names, err := readNames(root, ".")
	if err != nil {
		return nil, wrong("the folder %.80q of dataset %q cannot be read: %v", e.Path, e.ID, bare(err))
	}
	list := make([]named, len(names))
	for i, name := range names {
		list[i] = named{Path: name}
	}
	return list, nil
}

// tableOf is the table of a file, or nil for one that is no data: of another kind,
// hidden, or of a name that cannot be shown. A file with a name of its own must be
// good.
func tableOf(root *os.Root, f named) (*cove.Table, fs.FileInfo, error) {
	format := Format(f.Path)
	info, err := root.Lstat(f.Path)
	switch {
	case err == nil && f.Name != "" && !ValidName(f.Name):
		err = fmt.Errorf("%.80q cannot be the name of a table", f.Name)
	case err == nil && f.Name != "" && format == "":
		err = errors.New("it is neither CSV nor Parquet nor JSON")
	case err == nil && f.Name != "" && !info.Mode().IsRegular():
		err = errors.New("it is no file, or a link")
	case format == "" || err == nil && !info.Mode().IsRegular() || f.Name == "" && strings.HasPrefix(f.Path, "."):
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	t := &cove.Table{Name: f.Name, File: f.Path, Format: format, Size: cove.Bytes(info.Size()), Stamp: stamp(info)}
	if t.Name == "" {
		t.Name = Stem(f.Path)
	}
	if !ValidName(t.Name) || !ValidName(t.File) {
		return nil, nil, nil
	}
	if info.Size() == 0 {
		t.Problem = t.File + " is empty"
	}
	return t, info, nil
}

// tellApart gives tables that share a name the problem that they do. SQL knows no
// upper and lower case.
func tellApart(tables []cove.Table) {
	first := map[string]int{}
	for i := range tables {
		t := &tables[i]
		j, twice := first[strings.ToLower(t.Name)]
		if !twice {
			first[strings.ToLower(t.Name)] = i
			continue
		}
		problem := fmt.Sprintf("%s and %s would both be the table %s; give them names in %s, or in the files of the request", tables[j].File, t.File, tables[j].Name, registryName)
		t.Problem, tables[j].Problem = problem, problem
	}
}

// Format returns how the file of a name is written: csv, parquet or json, or "" for
// none of them.
func Format(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv", ".tsv":
		return "csv"
	case ".parquet":
		return "parquet"
	case ".json", ".jsonl", ".ndjson":
		return "json"
	}
	return ""
}

// Stem is the name of the table of a file that has no other.
func Stem(name string) string {
	base := filepath.Base(name)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// maxName bounds the name of a table.
const maxName = 255

// ValidName reports whether a table can have a name: text that can be seen.
func ValidName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// stamp changes with a file.
func stamp(info fs.FileInfo) string {
	return fmt.Sprintf("%d.%d.%d", info.Size(), info.ModTime().UnixNano(), inode(info))
}

// bare is an error without the path, which the sentence around it has.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
