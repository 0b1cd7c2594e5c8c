//go:build linux

package microsandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// TestDuckDB: DuckDB comes into a machine in which nothing can be mounted, and stays.
func TestDuckDB(t *testing.T) {
	tier.Full(t, "internal/duckdb uploads DuckDB to sandboxes of other providers")
	exe := os.Getenv("COVE_TEST_DUCKDB")
	if exe == "" {
		t.Skip("COVE_TEST_DUCKDB names no executable; scripts/duckdb.sh builds one")
	}
	d := duckdb.New(cove.Tool{Name: "cove-duckdb", Dir: filepath.Dir(exe)}, duckdb.Limits{})
	p := closed(t, opened(t, rpcConfig(t, stage(t))))
	providertest.Ready(t, p)
	want := spec()
	want.Resources = cove.Resources{Memory: 512 * cove.MiB, CPUs: 1}
	s, err := p.Create(t.Context(), cove.NewID(), want)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Destroy(context.Background()) })
	place := cove.RunSandbox{Sandbox: s, Memory: 512 * cove.MiB, Keep: &sync.Map{}}
	for range 2 { // the first brings it, the second finds it
		h, err := d.At(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		rows, err := h.Query(t.Context(), duckdb.Question{SQL: "SELECT 42", MaxRows: 1, MaxBytes: 100})
		if err != nil || string(rows.Rows[0]) != "[42]" {
			t.Fatalf("got %+v, %v", rows, err)
		}
	}
	before := time.Now()
	path, err := d.Put(t.Context(), s)
	t.Logf("found again at %s in %s", path, time.Since(before))
	if err != nil || !strings.HasPrefix(path, duckdb.PutPath) {
		t.Errorf("got %q, %v", path, err)
	}
}
