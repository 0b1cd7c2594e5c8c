package dataset_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/dataset"
)

func TestFilesOfAUser(t *testing.T) {
	dir := tree(t, map[string]string{"orders.csv": "a\n", "other/orders.csv": "b\n", "log.txt": "x", "empty.json": "", "link.csv": "->orders.csv", "deep/": ""})
	at := func(name string) string { return filepath.Join(dir, name) }
	f, err := dataset.OfFiles([]cove.RunFile{{Path: at("link.csv")}, {Name: "two", Path: at("other/orders.csv")}, {Path: at("empty.json")}})
	if err != nil {
		t.Fatal(err)
	}
	d, _, err := f.Dataset(t.Context(), dataset.FilesID)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, table := range d.Tables {
		rel, err := filepath.Rel(dir, table.Source)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(table.Name+" "+table.File+" "+table.Format+" "+rel+" "+table.Problem))
	}
	if diff := cmp.Diff([]string{"link orders.csv csv orders.csv", "two two.csv csv other/orders.csv", "empty empty.json json empty.json empty.json is empty"}, got); diff != "" {
		t.Error(diff)
	}
	if all, err := f.Datasets(t.Context()); err != nil || len(all) != 1 || all[0].ID != dataset.FilesID {
		t.Errorf("got %+v, %v", all, err)
	}
	if _, _, err := f.Dataset(t.Context(), "other"); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("another dataset: %v", err)
	}
	if err := os.Remove(at("orders.csv")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Datasets(t.Context()); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a file that went away: %v", err)
	}
	for name, list := range map[string][]cove.RunFile{
		"cannot be read": {{Path: at("nothing.csv")}},
		"neither CSV":    {{Path: at("log.txt")}},
		"is no file":     {{Name: "x", Path: at("deep/../deep.csv")}},
		"both be":        {{Path: at("empty.json")}, {Name: "EMPTY", Path: at("other/orders.csv")}},
		"name of a":      {{Name: "a\tb", Path: at("empty.json")}},
	} {
		if name == "is no file" {
			if err := os.Mkdir(at("deep.csv"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := dataset.OfFiles(list); cove.CodeOf(err) != cove.Invalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
