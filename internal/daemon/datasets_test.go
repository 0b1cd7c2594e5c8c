package daemon_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/internal/dataset/sample"
)

// TestWhatIsNamedForDataMustBeThere: a platform does not begin with settings that
// nobody could answer questions with, and says why in one sentence.
func TestWhatIsNamedForDataMustBeThere(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("file", "x")
	broken := filepath.Dir(write("broken/registry.json", "{"))
	outside := filepath.Dir(write("outside/registry.json", `{"datasets":[{"id":"a","path":"../broken"}]}`))
	home := filepath.Join(dir, "around", "home")
	for name, c := range map[string]struct {
		setting, value, want string
	}{
		"missing":     {"COVE_DATASETS", filepath.Join(dir, "nothing"), "cannot be read"},
		"a file":      {"COVE_DATASETS", file, "cannot be read"},
		"broken":      {"COVE_DATASETS", broken, "registry.json cannot be read"},
		"outside":     {"COVE_DATASETS", outside, "leads out"},
		"around":      {"COVE_DATASETS", filepath.Join(dir, "around"), "holds COVE_HOME"},
		"no DuckDB":   {"COVE_DUCKDB", filepath.Join(dir, "nothing"), "cannot be used"},
		"no program":  {"COVE_DUCKDB", file, "no executable"},
		"a directory": {"COVE_DUCKDB", dir, "no executable"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.MkdirAll(home, 0o700); err != nil {
				t.Fatal(err)
			}
			cfg := settings(t, "COVE_HOME", home, c.setting, c.value)
			e, err := daemon.Embed(t.Context(), cfg, false, slog.New(slog.DiscardHandler))
			if err == nil {
				_ = e.Close(t.Context())
			}
			if cove.CodeOf(err) != cove.Invalid || cove.ReasonOf(err) != cove.ReasonConfiguration || !strings.Contains(err.Error(), c.setting) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if strings.Count(cove.MessageOf(err), "\n") != 0 {
				t.Errorf("it is more than a sentence: %q", cove.MessageOf(err))
			}
		})
	}
}

// askSQL asks a question in SQL and waits.
func askSQL(t *testing.T, p cove.Platform, dataset, sql string) *cove.RunAnswer {
	t.Helper()
	run, err := p.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, Dataset: dataset, SQL: sql})
	if err != nil {
		t.Fatal(err)
	}
	if run, err = p.Runs().Wait(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
	return run.Answer
}

// TestQuestionsAboutFiles: a run of its own asks about files of its user, wherever
// they are, and leaves nothing.
func TestQuestionsAboutFiles(t *testing.T) {
	daemontest.NeedDuckDB(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "my orders.csv")
	if err := os.WriteFile(path, sample.Orders(100), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := settings(t, "SANDBOX_PROVIDER", "local", "COVE_DUCKDB", os.Getenv("COVE_TEST_DUCKDB"))
	p, err := daemon.OneShotData(t.Context(), cfg, "", []cove.RunFile{{Name: "orders", Path: path}, {Path: path}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	a := askSQL(t, p, daemon.FilesDataset, `SELECT count(*) FROM orders JOIN "my orders" USING (order_id)`)
	if a.Error != nil || len(a.Rows) != 1 || string(a.Rows[0]) != "[100]" || a.Provider != "local" {
		t.Errorf("got %+v, %+v", a, a.Error)
	}
	if _, err := daemon.OneShotData(t.Context(), cfg, "", []cove.RunFile{{Path: filepath.Join(dir, "none.csv")}}); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestSQLWithoutDuckDB says what the build lacks.
func TestSQLWithoutDuckDB(t *testing.T) {
	dir := t.TempDir()
	if err := sample.Write(dir); err != nil {
		t.Fatal(err)
	}
	p, err := daemon.OneShotData(t.Context(), settings(t, "SANDBOX_PROVIDER", "local", "COVE_DATASETS", dir), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	const want = "install a C compiler"
	a := askSQL(t, p, "ecommerce", "SELECT 1")
	if a.Error == nil || a.Error.Type != cove.RunUnavailable || !strings.Contains(a.Error.Message, "no DuckDB") || !strings.Contains(a.Error.Message, want) {
		t.Errorf("got %+v", a.Error)
	}
	if _, err := p.Datasets().Schema(t.Context(), "ecommerce"); cove.CodeOf(err) != cove.Unsupported || !strings.Contains(cove.RemedyOf(err), want) {
		t.Errorf("the schema: %v", err)
	}
	n := 0
	for _, err := range p.Datasets().List(t.Context(), cove.DatasetFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d datasets are listed", n)
	}
}
