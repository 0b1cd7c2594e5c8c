//go:build linux

package duckdb_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/provider/alltest"
)

// place makes a sandbox with DuckDB and data in it, as the engine does.
func place(t *testing.T, p cove.Provider, memory cove.Bytes, volumes ...cove.Volume) cove.RunSandbox {
	t.Helper()
	return cove.RunSandbox{Sandbox: alltest.Sandbox(t, p, memory, volumes...), Memory: memory, CPUs: 1, Mounted: len(volumes) > 0, Keep: &sync.Map{}}
}

// shown makes a directory one that a sandbox may read.
func shown(t *testing.T, dir string) string {
	t.Helper()
	for d := dir; d != "/" && d != "/tmp"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestProviders: DuckDB works, ends and comes back the same in every sandbox.
func TestProviders(t *testing.T) {
	tool := realTool(t)
	shown(t, tool.Dir)
	data := shown(t, t.TempDir())
	if err := os.WriteFile(filepath.Join(data, "orders.csv"), []byte(fewOrders), 0o644); err != nil {
		t.Fatal(err)
	}
	tables := []duckdb.Table{{Schema: "shop", Name: "orders", Path: "/data/shop/orders.csv", Format: duckdb.CSV}}
	alltest.Each(t, func(t *testing.T, p cove.Provider) {
		in := place(t, p, 512*cove.MiB, cove.Volume{Source: tool.Dir, Target: cove.ToolPath}, cove.Volume{Source: data, Target: "/data/shop"})
		d := duckdb.New(tool, duckdb.Limits{})
		h, err := d.At(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := h.Load(t.Context(), tables); err != nil || got[0].Rows != 3 {
			t.Fatalf("the tables: %+v, %v", got, err)
		}
		fine := func(loaded bool) {
			t.Helper()
			rows, err := h.Query(t.Context(), ask1("SELECT count(*), max(status) FROM orders"))
			if err != nil || string(rows.Rows[0]) != `[3,"paid"]` || rows.Loaded != loaded {
				t.Errorf("got %+v, %v", rows, err)
			}
		}
		fine(true)
		fine(false)
		for _, much := range []string{"SELECT list(range || 'abcdefghijklmnopqrstuvwxyz') AS a FROM range(100000000)", "SELECT length(repeat('x', 900000000))"} {
			_, err = h.Query(t.Context(), ask1(much))
			wantType(t, err, cove.RunSQLFailed, "the query needs more than the 512 MB that this session has")
			t.Logf("%.20s: the helper lives on: %v", much, h.Alive())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err = h.Query(ctx, ask1(endless))
		wantType(t, err, cove.RunTimeout)
		kill(t, in, "cove-duckdb")
		for h.Alive() {
			runtime.Gosched() // who hears of the end needs a turn
		}
		fine(true)
		if out := run(t, in, "touch /data/shop/x /opt/cove/x; ls /data/shop /opt/cove"); strings.Contains(out, "x\n") {
			t.Errorf("what is mounted can be written to: %s", out)
		}
	})
}

// kill ends a program inside by its name.
func kill(t *testing.T, in cove.Starter, name string) {
	t.Helper()
	run(t, in, `for p in /proc/[0-9]*; do if [ "$(cat $p/comm)" = `+name+` ]; then kill -9 "${p#/proc/}"; fi; done`)
}

// run runs a line inside, and returns what it says.
func run(t *testing.T, in cove.Starter, line string) string {
	t.Helper()
	var out strings.Builder
	p, err := in.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", line}, Dir: "/", Stdout: &out})
	if err == nil {
		_, err = p.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
