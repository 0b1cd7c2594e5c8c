package dataset

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
)

// FilesID is the dataset that [OfFiles] makes.
const FilesID = "files"

// Files is one dataset, [FilesID], of files from anywhere: those of a user who asks
// about them on their own machine. Its methods are safe for concurrent use.
type Files struct{ list []cove.RunFile }

var _ cove.DatasetSource = Files{}

// OfFiles returns the dataset of some files. A name that is empty is the file's own,
// without what follows the last dot.
func OfFiles(list []cove.RunFile) (Files, error) {
	f := Files{}
	seen := map[string]string{}
	for _, one := range list {
		real, err := filepath.Abs(one.Path)
		if err == nil {
			real, err = filepath.EvalSymlinks(real)
		}
		if err != nil {
			return f, cove.InvalidField("files", "%.200q cannot be read: %v", one.Path, bare(err))
		}
		if one.Name == "" {
			one.Name = Stem(one.Path)
		}
		switch other, twice := seen[strings.ToLower(one.Name)]; {
		case !ValidName(one.Name):
			return f, cove.InvalidField("files", "%.80q cannot be the name of a table; give %.200q another one", one.Name, one.Path)
		case twice:
			return f, cove.InvalidField("files", "%.200q and %.200q would both be the table %s; give one of them another name", other, one.Path, one.Name)
		case Format(real) == "":
			return f, cove.InvalidField("files", "%.200q is neither CSV nor Parquet nor JSON by its name", one.Path)
		}
		seen[strings.ToLower(one.Name)] = one.Path
		f.list = append(f.list, cove.RunFile{Name: one.Name, Path: real})
	}
	_, err := f.look()
	return f, err
}

func (f Files) look() (*cove.Dataset, error) {
	d := &cove.Dataset{ID: FilesID, Tables: []cove.Table{}}
	seen := map[string]bool{}
	for _, one := range f.list {
		info, err := os.Stat(one.Path)
		if err != nil {
			return nil, cove.InvalidField("files", "%.200q cannot be read: %v", one.Path, bare(err))
		}
		if !info.Mode().IsRegular() {
			return nil, cove.InvalidField("files", "%.200q is no file", one.Path)
		}
		t := cove.Table{Name: one.Name, File: filepath.Base(one.Path), Format: Format(one.Path), Size: cove.Bytes(info.Size()), Stamp: stamp(info), Source: one.Path}
		if seen[t.File] { // in another folder
			t.File = one.Name + filepath.Ext(one.Path)
		}
		seen[t.File] = true
		if info.Size() == 0 {
			t.Problem = t.File + " is empty"
		}
		d.Tables = append(d.Tables, t)
		d.Size += t.Size
		if info.ModTime().After(d.ChangedAt) {
			d.ChangedAt = info.ModTime()
		}
	}
	return d, nil
}

// Datasets implements [cove.DatasetSource].
func (f Files) Datasets(context.Context) ([]cove.Dataset, error) {
	d, err := f.look()
	if err != nil {
		return nil, err
	}
	return []cove.Dataset{*d}, nil
}

// Dataset implements [cove.DatasetSource].
func (f Files) Dataset(_ context.Context, id string) (*cove.Dataset, string, error) {
	if id != FilesID {
		return nil, "", cove.Errorf(cove.NotFound, "there is no dataset %.60q", id)
	}
	d, err := f.look()
	return d, "", err
}
