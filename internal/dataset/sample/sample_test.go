package sample_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cove-sandbox/cove/internal/dataset/sample"
)

// digests are those of the files as they have always been.
var digests = map[string]string{
	"ecommerce/inventory.csv":   "f2ba9504b6eb43e4",
	"ecommerce/order_items.csv": "2793cdfef1281509",
	"ecommerce/orders.csv":      "e5a3d39f936143d7",
	"iot/sensors.csv":           "75a83632fc45ba93",
	"registry.json":             "b86b35afc714822c",
	"support/tickets.csv":       "10918b4aa0c92ca6",
}

func TestFilesNeverChange(t *testing.T) {
	files := sample.Files()
	if len(files) != len(digests) {
		t.Errorf("%d files, want %d", len(files), len(digests))
	}
	for _, f := range files {
		sum := sha256.Sum256(f.Data)
		if got := hex.EncodeToString(sum[:8]); got != digests[f.Path] {
			t.Errorf("%s has digest %s, want %s", f.Path, got, digests[f.Path])
		}
	}
}

// column reads one column of a table.
func column(t *testing.T, name, column string) []string {
	t.Helper()
	for _, f := range sample.Files() {
		if f.Path != name {
			continue
		}
		rows, err := csv.NewReader(bytes.NewReader(f.Data)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range rows[0] {
			if c != column {
				continue
			}
			var out []string
			for _, row := range rows[1:] {
				out = append(out, row[i])
			}
			return out
		}
	}
	t.Fatalf("%s has no column %s", name, column)
	return nil
}

func TestKeysJoinWithoutLoss(t *testing.T) {
	set := func(list []string) map[string]bool {
		m := map[string]bool{}
		for _, k := range list {
			m[k] = true
		}
		return m
	}
	orders, products := set(column(t, "ecommerce/orders.csv", "order_id")), set(column(t, "ecommerce/inventory.csv", "product_id"))
	if len(orders) != 2000 || len(products) != 120 {
		t.Errorf("%d orders and %d products", len(orders), len(products))
	}
	used := set(column(t, "ecommerce/order_items.csv", "order_id"))
	for id := range used {
		if !orders[id] {
			t.Errorf("order %s of an item is not there", id)
		}
	}
	if len(used) != len(orders) {
		t.Errorf("%d of %d orders have items", len(used), len(orders))
	}
	for _, id := range column(t, "ecommerce/order_items.csv", "product_id") {
		if !products[id] {
			t.Errorf("product %s of an item is not there", id)
		}
	}
	customers := set(column(t, "ecommerce/orders.csv", "customer_id"))
	known := 0
	for _, id := range column(t, "support/tickets.csv", "customer_id") {
		if customers[id] {
			known++
		}
	}
	if known < 700 {
		t.Errorf("only %d tickets are of customers with an order", known)
	}
}

func TestOrdersOfAnySize(t *testing.T) {
	if n := bytes.Count(sample.Orders(10), []byte{'\n'}); n != 11 {
		t.Errorf("%d lines", n)
	}
	if !bytes.HasPrefix(sample.Files()[2].Data, sample.Orders(10)) {
		t.Error("a few orders are not the first of many")
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	for range 2 { // the second time all is there
		if err := sample.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range sample.Files() {
		data, err := os.ReadFile(filepath.Join(dir, f.Path))
		if err != nil || !bytes.Equal(data, f.Data) {
			t.Errorf("%s: %v", f.Path, err)
		}
	}
	mine := filepath.Join(dir, "registry.json")
	if err := os.WriteFile(mine, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "iot")); err != nil {
		t.Fatal(err)
	}
	if err := sample.Write(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file of somebody's: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "iot")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written all the same: %v", err)
	}
	if data, err := os.ReadFile(mine); err != nil || string(data) != "{}" {
		t.Errorf("registry.json is %q, %v", data, err)
	}
}

func TestWriteWhereItCannot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sample.Write(file); err == nil {
		t.Error("a file became a directory")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "registry.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := sample.Write(dir); err == nil {
		t.Error("a folder was taken for a file")
	}
	dir = t.TempDir()
	if err := os.Symlink("/nowhere", filepath.Join(dir, "iot")); err != nil {
		t.Fatal(err)
	}
	if err := sample.Write(dir); err == nil {
		t.Error("a link was followed out of the directory")
	}
}
