package datarun

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/dataset"
	"github.com/cove-sandbox/cove/internal/sqlpolicy"
)

// source is a table that a question may see.
type source struct {
	cove.Table

	set     string   // its dataset; "" for a file of a session
	dir     string   // of the dataset, on the host
	inside  string   // the path in the sandbox
	columns []string // those that the grant shows
	bounded bool     // whether it shows only those
}

// String is dataset.table.
func (s *source) String() string {
	if s.set == "" {
		return s.Name
	}
	return s.set + "." + s.Name
}

// host is where its file is on the host; "" for a file of a session.
func (s *source) host() string {
	switch {
	case s.Source != "":
		return s.Source
	case s.dir == "":
		return ""
	}
	return filepath.Join(s.dir, s.File)
}

// sources are those of one question.
type sources []*source

// find returns the sources of a question: those of its dataset or, where it names
// none, all that the grant shows; and the files of a session that the request names.
func (t *task) find(ctx context.Context) (sources, error) {
	r := t.q.Request
	switch {
	case t.ofSession():
		return ownFiles(r.Files)
	case r.Dataset == "" && len(r.Files) > 0:
		return nil, invalid("files need a dataset_id, whose files they are, or a session_id, in whose workspace they are")
	case r.Dataset == "" && r.Type == cove.QueryPython:
		return nil, nil
	case r.Dataset == "":
		return t.everything(ctx)
	}
	d, dir, err := t.dataset(ctx, r.Dataset, t.q.Grant)
	if err != nil {
		return nil, err
	}
	list := sourcesOf(d, dir, t.q.Grant)
	if len(r.Files) == 0 {
		return list, nil
	}
	return list.named(r)
}

// ofSession reports whether a question is to files of its session alone.
func (t *task) ofSession() bool {
	r := t.q.Request
	return r.Session != "" && r.Dataset == "" && (len(r.Files) > 0 || r.Type == cove.QueryPython)
}

// dataset returns what the grant shows of one, which may be nothing.
func (r *Runner) dataset(ctx context.Context, id string, g cove.DataGrant) (*cove.Dataset, string, error) {
	missing := invalid("there is no dataset %.60q", id)
	if r.cfg.Datasets == nil {
		return nil, "", missing
	}
	d, dir, err := r.cfg.Datasets.Dataset(ctx, id)
	switch {
	case cove.CodeOf(err) == cove.NotFound:
		return nil, "", missing
	case err != nil:
		return nil, "", err
	}
	if d = g.Shows(*d); d == nil {
		return nil, "", missing
	}
	return d, dir, nil
}

// everything is what there is for a question that names no dataset.
func (t *task) everything(ctx context.Context) (sources, error) {
	if t.cfg.Datasets == nil {
		return nil, nil
	}
	all, err := t.cfg.Datasets.Datasets(ctx)
	if err != nil {
		return nil, err
	}
	var list sources
	for _, d := range all {
		if shown := t.q.Grant.Shows(d); shown != nil {
			list = append(list, sourcesOf(shown, "", t.q.Grant)...)
		}
	}
	return list, nil
}

func sourcesOf(d *cove.Dataset, dir string, g cove.DataGrant) sources {
	list := make(sources, 0, len(d.Tables))
	for _, table := range d.Tables {
		s := &source{Table: table, set: d.ID, dir: dir, inside: path.Join(cove.DataPath, d.ID, filepath.ToSlash(table.File))}
		s.columns, s.bounded = columnsOf(g, s.String())
		if s.bounded && len(s.columns) == 0 {
			continue // for DuckDB, no column would be all of them
		}
		list = append(list, s)
	}
	return list
}

// columnsOf are the columns that a grant names for a table. A name in another case
// must not show more.
func columnsOf(g cove.DataGrant, table string) ([]string, bool) {
	for name, columns := range g.Columns {
		if strings.EqualFold(name, table) {
			return columns, true
		}
	}
	return nil, false
}

// named are the files that a request names, under the names that it gives them.
func (list sources) named(r cove.RunRequest) (sources, error) {
	var out sources
	for _, f := range r.Files {
		var found *source
		for _, s := range list {
			if s.File == f.Path {
				c := *s
				found = &c
			}
		}
		if found == nil {
			return nil, invalid("dataset %s has no file %.200q", r.Dataset, f.Path)
		}
		found.Problem = "" // it was about the name
		if found.Size == 0 {
			found.Problem = found.File + " is empty"
		}
		found.Name = f.Name
		if found.Name == "" {
			found.Name = dataset.Stem(f.Path)
		}
		out = append(out, found)
	}
	return out, out.unlike()
}

// ownFiles are files of a session.
func ownFiles(files []cove.RunFile) (sources, error) {
	var out sources
	for _, f := range files {
		s := &source{Table: cove.Table{Name: f.Name, File: f.Path, Format: dataset.Format(f.Path)}}
		if s.inside = path.Clean(f.Path); !path.IsAbs(f.Path) {
			s.inside = path.Join(cove.WorkspacePath, f.Path)
		}
		if s.Format == "" {
			return nil, invalid("%.200q is neither CSV nor Parquet nor JSON by its name", f.Path)
		}
		if s.Name == "" {
			s.Name = dataset.Stem(f.Path)
		}
		out = append(out, s)
	}
	return out, out.unlike()
}

// unlike refuses names that cannot be those of tables, or are there twice.
func (list sources) unlike() error {
	seen := map[string]string{}
	for _, s := range list {
		if !dataset.ValidName(s.Name) {
			return invalid("%.80q cannot be the name of a table", s.Name)
		}
		if other, twice := seen[strings.ToLower(s.Name)]; twice {
			return invalid("%.200s and %.200s would both be the table %s; give them other names", other, s.File, s.Name)
		}
		seen[strings.ToLower(s.Name)] = s.File
	}
	return nil
}

// catalog is what a statement may name, and the grant that bounds its columns.
func (list sources) catalog(set string) (sqlpolicy.Catalog, cove.DataGrant) {
	cat, g := sqlpolicy.Catalog{Dataset: set}, cove.DataGrant{Columns: map[string][]string{}}
	seen := map[string]bool{}
	for _, s := range list {
		if key := strings.ToLower(s.String()); !seen[key] { // two of one name are one that cannot be read
			seen[key] = true
			cat.Tables = append(cat.Tables, sqlpolicy.Table{Dataset: s.set, Name: s.Name})
		}
		if s.bounded {
			g.Columns[s.String()] = s.columns
		}
	}
	return cat, g
}

// use returns the sources of a table that a statement names.
func (list sources) use(u sqlpolicy.Use) *source {
	for _, s := range list {
		if strings.EqualFold(s.set, u.Dataset) && strings.EqualFold(s.Name, u.Table) {
			return s
		}
	}
	return nil
}

// stamps tells these files from others, and from themselves after a change.
func (list sources) stamps() string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%q %q %q %q %v;", s.set, s.Name, s.File, s.Stamp, s.columns)
	}
	return b.String()
}

// volumes show the files, and nothing beside them.
func (list sources) volumes() []cove.Volume {
	var out []cove.Volume
	seen := map[string]bool{}
	for _, s := range list {
		if host := s.host(); !seen[s.inside] && host != "" {
			seen[s.inside] = true
			out = append(out, cove.Volume{Source: host, Target: s.inside})
		}
	}
	return out
}
