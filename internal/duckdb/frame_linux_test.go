//go:build linux

package duckdb_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/kernel"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/alltest"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// everyType is a SELECT with a column of every type, and a row of NULL.
const everyType = `SELECT * FROM (SELECT unnest([false, true]) AS empty) CROSS JOIN (SELECT
	true AS boolean, 1::TINYINT AS tinyint, 2::SMALLINT AS smallint, 3::INTEGER AS integer, 9007199254740993 AS bigint,
	4::UTINYINT AS utinyint, 5::USMALLINT AS usmallint, 6::UINTEGER AS uinteger, 18446744073709551615::UBIGINT AS ubigint,
	170141183460469231731687303715884105727::HUGEINT AS hugeint, 7::HUGEINT AS small_hugeint,
	1.5::FLOAT AS float, 2.5::DOUBLE AS double, 'nan'::DOUBLE AS nan, 'inf'::DOUBLE AS inf,
	1.25::DECIMAL(9,2) AS decimal, 12345678901234567890123456789.12345::DECIMAL(38,5) AS large_decimal,
	DATE '2020-01-02' AS date, DATE '9999-12-31' AS far_date, TIME '01:02:03.5' AS time,
	TIMESTAMP '2020-01-02 03:04:05.678901' AS timestamp, TIMESTAMP_S '2020-01-02 03:04:05' AS timestamp_s,
	TIMESTAMP_MS '2020-01-02 03:04:05.678' AS timestamp_ms, TIMESTAMP_NS '2020-01-02 03:04:05.678901234' AS timestamp_ns,
	TIMESTAMPTZ '2020-01-02 03:04:05+02' AS timestamptz, INTERVAL '1 month 3 days' AS interval,
	'é "x"' AS varchar, 'b'::ENUM('a', 'b') AS enum, '00000000-0000-0000-0000-000000000001'::UUID AS uuid,
	'\x00\xff'::BLOB AS blob, '0101'::BIT AS bit, '{"a": [1, 2]}'::JSON AS json,
	[1, 2] AS list, {'k': 1, 'v': 'x'} AS struct, MAP {'k': 1} AS map)`

// withNull has NULL in the second row of every column.
const withNull = "SELECT CASE WHEN NOT empty THEN COLUMNS(* EXCLUDE empty) END FROM (" + everyType + ") ORDER BY empty"

const noNull = "SELECT COLUMNS(* EXCLUDE empty) FROM (" + everyType + ") ORDER BY empty"

// showFrame prints a frame so that versions of pandas and NumPy print the same.
const showFrame = `
for frame in (full, half):
    for i, name in enumerate(frame.columns):
        print(name, frame.dtypes.iloc[i], [str(v) for v in frame.iloc[:, i]])
print(sorted(n for n in globals() if not n.startswith("_")), __import__("glob").glob("/tmp/.cove-frame*"))
`

// TestProvidersFrames: rows become frames of the same types in every sandbox whose
// Python has pandas, whatever its version.
func TestProvidersFrames(t *testing.T) {
	tier.Full(t, "TestProviders covers the same calls without frames")
	want, err := os.ReadFile("testdata/every.golden")
	if err != nil {
		t.Fatal(err)
	}
	tool := realTool(t)
	shown(t, tool.Dir)
	alltest.Each(t, func(t *testing.T, p cove.Provider) {
		in := place(t, p, 768*cove.MiB, cove.Volume{Source: tool.Dir, Target: cove.ToolPath})
		version := strings.TrimSpace(run(t, in, "python3 -c 'import pandas; print(pandas.__version__)'"))
		if version == "" {
			providertest.Lacks(t, "duckdb", "its Python has no pandas")
		}
		h, err := duckdb.New(tool, duckdb.Limits{}).At(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		k, err := kernel.New().Open(t.Context(), in, cove.KernelSpec{Language: "python", Dir: "/tmp"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = k.Close(context.WithoutCancel(t.Context())) }()
		var out strings.Builder
		python := func(ctx context.Context, code string) (*cove.CodeResult, error) {
			return k.Run(ctx, cove.KernelRun{Code: code, OnOutput: func(c cove.Chunk) { out.Write(c.Data) }})
		}
		for frame, sql := range map[string]string{"full": noNull, "half": withNull} {
			said, err := h.Save(t.Context(), duckdb.Question{SQL: sql, MaxRows: 1000, MaxBytes: 1 << 20}, frame, python)
			if err != nil || said.Count != 2 || said.Truncated {
				t.Fatalf("%s: %+v, %v", frame, said, err)
			}
		}
		if r, err := python(t.Context(), showFrame); err != nil || r.Error != nil {
			t.Fatalf("got %+v, %v", r, err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); diff != "" {
			t.Errorf("pandas %s: %s", version, diff)
		}
	})
}
