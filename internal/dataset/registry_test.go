package dataset_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/dataset"
	"github.com/cove-sandbox/cove/internal/dataset/sample"
)

// tree writes files; one whose content begins with -> is a link, and one that ends
// in / a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		switch to, link := strings.CutPrefix(text, "->"); {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o700)
		case link:
			err = os.Symlink(to, path)
		default:
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, dir string) *dataset.Registry {
	t.Helper()
	r, err := dataset.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// listed is what a registry has, in short: dataset.table file format, and a mark for
// a problem.
func listed(t *testing.T, r *dataset.Registry) []string {
	t.Helper()
	sets, err := r.Datasets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range sets {
		if len(d.Tables) == 0 {
			out = append(out, d.ID)
		}
		for _, table := range d.Tables {
			line := d.ID + "." + table.Name + " " + table.File + " " + table.Format
			if table.Problem != "" {
				line += "!"
			}
			out = append(out, line)
		}
	}
	return out
}

func TestRegistry(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"folders": {
			map[string]string{
				"shop/orders.csv": "a\n1\n", "shop/Stock.TSV": "a\n", "shop/log.jsonl": "{}", "shop/all.parquet": "PAR1",
				"shop/notes.txt": "x", "shop/.hidden.csv": "a", "shop/deep/more.csv": "a", "iot/x.json": "[]",
				"empty/": "", "text/readme.md": "x", ".git/x.csv": "a", "loose.csv": "a", "not an id/": "",
			},
			[]string{"iot.x x.json json", "shop.Stock Stock.TSV csv", "shop.all all.parquet parquet", "shop.log log.jsonl json", "shop.orders orders.csv csv"},
		},
		"registry": {
			map[string]string{
				"registry.json": `{"datasets":[{"id":"b","description":"d","path":"x/y"},{"id":"a"},{"id":"c","path":"a","files":[{"name":"two words","path":"o.csv"},{"path":"sub/p.csv"}]}]}`,
				"x/y/t.csv":     "a\n", "a/o.csv": "a\n", "a/sub/p.csv": "a\n", "other/secret.csv": "a\n",
			},
			[]string{"b.t t.csv csv", "a.o o.csv csv", "c.p sub/p.csv csv", "c.two words o.csv csv"},
		},
		"named and without files": {map[string]string{"registry.json": `{"datasets":[{"id":"a"}]}`, "a/": ""}, []string{"a"}},
		"nothing":                 {nil, nil},
		"links are no files":      {map[string]string{"a/p.csv": "->/etc/passwd", "a/q.csv": "->r.csv", "a/r.csv": "x\n", "b": "->a", "c": "->/etc"}, []string{"a.r r.csv csv", "b.r r.csv csv"}},
		"two of one stem":         {map[string]string{"a/o.csv": "x", "a/o.parquet": "x", "a/O.json": "x", "a/p.csv": "x"}, []string{"a.O O.json json!", "a.o o.csv csv!", "a.o o.parquet parquet!", "a.p p.csv csv"}},
		"told apart": {
			map[string]string{"registry.json": `{"datasets":[{"id":"a","files":[{"name":"c","path":"o.csv"},{"path":"o.parquet"}]}]}`, "a/o.csv": "x", "a/o.parquet": "x"},
			[]string{"a.c o.csv csv", "a.o o.parquet parquet"},
		},
		"an empty file":      {map[string]string{"a/o.csv": ""}, []string{"a.o o.csv csv!"}},
		"no identifier":      {map[string]string{"a/2024 sales.csv": "x"}, []string{"a.2024 sales 2024 sales.csv csv"}},
		"cannot be shown":    {map[string]string{"a/x\ny.csv": "x", "a/\xff.csv": "x", "a/z.csv": "x"}, []string{"a.z z.csv csv"}},
		"a name of its own":  {map[string]string{"registry.json": `{"datasets":[{"id":"a","files":[{"name":"h","path":".h.csv"}]}]}`, "a/.h.csv": "x"}, []string{"a.h .h.csv csv"}},
		"a folder with link": {map[string]string{"registry.json": `{"datasets":[{"id":"a","path":"l"}]}`, "l": "->real", "real/x.csv": "x"}, []string{"a.x x.csv csv"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, listed(t, open(t, tree(t, c.files)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRegistryThatCannotBeMeant(t *testing.T) {
	long := strings.Repeat("x", 5000)
	many := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no JSON":              {map[string]string{"registry.json": "{"}, "registry.json cannot be read"},
		"another form":         {map[string]string{"registry.json": `{"sets":[]}`}, "unknown field"},
		"a list":               {map[string]string{"registry.json": `[]`}, "the value at byte 1 is of the wrong kind: array"},
		"a number for an id":   {map[string]string{"registry.json": `{"datasets":[{"id":5}]}`}, "is of the wrong kind: number"},
		"no list":              {map[string]string{"registry.json": `{}`}, "it has no list datasets"},
		"nothing":              {map[string]string{"registry.json": `null`}, "it has no list datasets"},
		"two":                  {map[string]string{"registry.json": `{"datasets":[]} {"datasets":[]}`}, "more after its end"},
		"a folder":             {map[string]string{"registry.json/": ""}, "it is no file"},
		"a link out":           {map[string]string{"registry.json": "->/etc/passwd"}, "registry.json"},
		"long":                 {map[string]string{"registry.json": strings.Repeat(" ", 1<<20) + "{}"}, "longer than"},
		"path outside":         {map[string]string{"registry.json": `{"datasets":[{"id":"a","path":"../x"}]}`}, "leads out"},
		"absolute":             {map[string]string{"registry.json": `{"datasets":[{"id":"a","path":"/etc"}]}`}, "leads out"},
		"a link that leaves":   {map[string]string{"registry.json": `{"datasets":[{"id":"a"}]}`, "a": "->/etc"}, "escapes"},
		"no folder":            {map[string]string{"registry.json": `{"datasets":[{"id":"a"}]}`}, "cannot be read"},
		"twice":                {map[string]string{"registry.json": `{"datasets":[{"id":"a"},{"id":"A"}]}`, "a/": ""}, "twice"},
		"no id":                {map[string]string{"registry.json": `{"datasets":[{"path":"a"}]}`, "a/": ""}, "cannot be the id"},
		"the engine's id":      {map[string]string{"registry.json": `{"datasets":[{"id":"Main"}]}`, "Main/": ""}, "cannot be the id"},
		"no identifier":        {map[string]string{"my-data/x.csv": "x"}, `"my-data" cannot be the id`},
		"a digit":              {map[string]string{"2024/x.csv": "x"}, "cannot be the id"},
		"description":          {map[string]string{"registry.json": `{"datasets":[{"id":"a","description":"` + long + `"}]}`, "a/": ""}, "description"},
		"many datasets":        {map[string]string{"registry.json": `{"datasets":[` + many(257, `{"id":"a"}`) + `]}`}, "257 datasets"},
		"many files":           {map[string]string{"registry.json": `{"datasets":[{"id":"a","files":[` + many(65, `{"path":"x.csv"}`) + `]}]}`, "a/x.csv": "x"}, "65 files"},
		"file outside":         {map[string]string{"registry.json": `{"datasets":[{"id":"a","files":[{"path":"../x.csv"}]}]}`, "a/": ""}, "leads out"},
		"file that is missing": {map[string]string{"registry.json": `{"datasets":[{"id":"a","files":[{"path":"x.csv"}]}]}`, "a/": ""}, "no such file"},
		"file by a link":       {map[string]string{"registry.json": `{"datasets":[{"id":"a","files":[{"path":"l/passwd.csv"}]}]}`, "a/l": "->/etc"}, "escapes"},
		"named link":           {map[string]string{"registry.json": `{"datasets":[{"id":"a","files":[{"name":"p","path":"p.csv"}]}]}`, "a/p.csv": "->/etc/passwd"}, "a link"},
		"named text":           {map[string]string{"registry.json": `{"datasets":[{"id":"a","files":[{"name":"p","path":"p.txt"}]}]}`, "a/p.txt": "x"}, "neither CSV"},
		"a bad name":           {map[string]string{"registry.json": `{"datasets":[{"id":"a","files":[{"name":"p\nq","path":"p.csv"}]}]}`, "a/p.csv": "x"}, "name of a table"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := dataset.Open(t.Context(), tree(t, c.files))
			if err == nil {
				_ = r.Close()
			}
			if cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "COVE_DATASETS") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	file := filepath.Join(tree(t, map[string]string{"f": ""}), "f")
	for _, dir := range []string{file, file + "/x", "/nowhere/at/all"} {
		if _, err := dataset.Open(t.Context(), dir); cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestManyFilesInAFolder(t *testing.T) {
	files := map[string]string{}
	for i := range 65 {
		files["a/"+strings.Repeat("x", i+1)+".csv"] = "x"
	}
	if _, err := dataset.Open(t.Context(), tree(t, files)); err == nil || !strings.Contains(err.Error(), "more than 64 files") {
		t.Errorf("got %v", err)
	}
}

func TestDataset(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "samples")
	if err := sample.Write(dir); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	d, where, err := r.Dataset(t.Context(), "ecommerce")
	if err != nil {
		t.Fatal(err)
	}
	if real, err := filepath.EvalSymlinks(filepath.Join(dir, "ecommerce")); err != nil || where != real || r.Dir() != filepath.Dir(real) {
		t.Errorf("it is in %s, %v", where, err)
	}
	if len(d.Tables) != 3 || d.Description == "" || d.Size < 100*cove.KiB || time.Since(d.ChangedAt) > time.Hour {
		t.Errorf("got %+v", d)
	}
	for _, id := range []string{"nope", "", "../samples", "ECOMMERCE", "registry.json"} {
		if _, _, err := r.Dataset(t.Context(), id); cove.CodeOf(err) != cove.NotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, _, err := open(t, tree(t, map[string]string{"none/": ""})).Dataset(t.Context(), "none"); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("a folder without data: %v", err)
	}
}

// TestStampsFollowFiles: who loaded a file must learn that it is another one.
func TestStampsFollowFiles(t *testing.T) {
	dir := tree(t, map[string]string{"a/x.csv": "one"})
	r := open(t, dir)
	stamp := func() string {
		d, _, err := r.Dataset(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return d.Tables[0].Stamp
	}
	path := filepath.Join(dir, "a", "x.csv")
	seen := map[string]bool{stamp(): true}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"longer": func() error { return os.WriteFile(path, []byte("longer"), 0o600) },
		"later":  func() error { return os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Second)) },
		"another of the same size and time": func() error {
			other := path + ".new"
			now, err := os.Stat(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(other, make([]byte, now.Size()), 0o600); err != nil {
				return err
			}
			if err := os.Chtimes(other, time.Time{}, now.ModTime()); err != nil {
				return err
			}
			return os.Rename(other, path)
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if s := stamp(); seen[s] {
			t.Errorf("%s: the stamp is still %s", name, s)
		} else {
			seen[s] = true
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Dataset(t.Context(), "a"); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("a folder that went away: %v", err)
	}
}
