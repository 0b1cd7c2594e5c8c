package sqlpolicy_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
	"github.com/cove-sandbox/cove/internal/sqlpolicy"
)

var update = flag.Bool("update", false, "rewrite the golden files and the trees, with the executable that COVE_TEST_DUCKDB names")

// treesFile has the trees of all statements of the tests, so that they run where
// there is no C compiler.
const treesFile = "testdata/trees.json.gz"

// parsed is what the engine's parser said about a text.
type parsed struct {
	Fault      ask.Kind          `json:"fault,omitempty"`
	Statements []json.RawMessage `json:"statements"`
}

// engine is the executable behind its pipes.
type engine struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
	id  uint64
}

var (
	helperOnce = sync.OnceValues(startHelper)
	treesOnce  = sync.OnceValues(readTrees)
	seen       = map[string]parsed{} // what was asked in this run
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if h, err := helperOnce(); err == nil && h != nil {
		if *update && code == 0 {
			code = writeTrees()
		}
		_ = h.in.Close()
		_ = h.cmd.Wait()
	}
	os.Exit(code)
}

// startHelper starts the executable, or returns nil where there is none.
func startHelper() (*engine, error) {
	exe := os.Getenv("COVE_TEST_DUCKDB")
	if exe == "" {
		return nil, nil
	}
	return startEngine(exe)
}

func startEngine(exe string) (*engine, error) {
	cmd := exec.Command(exe)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h := &engine{cmd: cmd, in: in, out: out}
	_, err = h.ask(ask.Request{Verb: ask.VerbOpen, Open: &ask.Open{Memory: 512 << 20, Threads: 1}})
	return h, err
}

func (h *engine) ask(req ask.Request) (*ask.Answer, error) {
	h.id++
	req.ID = h.id
	if err := ask.Write(h.in, req); err != nil {
		return nil, err
	}
	var answer ask.Answer
	if err := ask.Read(h.out, &answer); err != nil {
		return nil, err
	}
	if answer.Fault != nil {
		return nil, answer.Fault
	}
	return &answer, nil
}

func (h *engine) parse(sql string) (parsed, error) {
	answer, err := h.ask(ask.Request{Verb: ask.VerbParse, Parse: &ask.Parse{SQL: sql}})
	var fault *ask.Fault
	switch {
	case errors.As(err, &fault):
		return parsed{Fault: fault.Kind}, nil
	case err != nil:
		return parsed{}, err
	}
	return parsed{Statements: answer.Tree.Statements}, nil
}

func readTrees() (map[string]parsed, error) {
	data, err := os.ReadFile(treesFile)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out := map[string]parsed{}
	return out, json.NewDecoder(r).Decode(&out)
}

func writeTrees() int {
	var buf bytes.Buffer
	w, _ := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := errors.Join(enc.Encode(seen), w.Close()); err != nil {
		return 1
	}
	if err := os.WriteFile(treesFile, buf.Bytes(), 0o600); err != nil {
		return 1
	}
	return 0
}

// parse returns what the engine's parser says: the real one where there is one,
// which must not have changed its mind, and else what it said once.
func parse(t *testing.T, sql string) parsed {
	t.Helper()
	trees, err := treesOnce()
	if err != nil && !*update {
		t.Fatal(err)
	}
	h, err := helperOnce()
	if err != nil {
		t.Fatalf("the DuckDB executable: %v", err)
	}
	if h == nil {
		kept, ok := trees[sql]
		if !ok {
			t.Fatalf("there is no tree of %.100q: run the test with -update where there is the DuckDB executable", sql)
		}
		return kept
	}
	got, err := h.parse(sql)
	if err != nil {
		t.Fatalf("parse %.100q: %v", sql, err)
	}
	if !*update {
		if diff := cmp.Diff(trees[sql], got); diff != "" {
			t.Errorf("the parser now reads %.100q in another way: see what changed, then run the test with -update\n%.2000s", sql, diff)
		}
	}
	seen[sql] = got
	return got
}

// judge is what a run does with a text: the parser first, then the policy.
func judge(t *testing.T, sql string, cat sqlpolicy.Catalog, g cove.DataGrant) (v sqlpolicy.Verdict, syntax bool) {
	t.Helper()
	return verdict(parse(t, sql), sql, cat, g)
}

func verdict(p parsed, sql string, cat sqlpolicy.Catalog, g cove.DataGrant) (v sqlpolicy.Verdict, syntax bool) {
	switch p.Fault {
	case "":
		return sqlpolicy.Judge(p.Statements, sql, cat, g), false
	case ask.NotSelect:
		return sqlpolicy.Verdict{Refusal: sqlpolicy.NotSelect(sql)}, false
	case ask.Large:
		return sqlpolicy.Verdict{Refusal: sqlpolicy.TooLarge()}, false
	case ask.BadRequest, ask.Syntax, ask.NotOne, ask.Failed, ask.Memory, ask.Stopped, ask.File, ask.Internal:
		return sqlpolicy.Verdict{}, true
	}
	return sqlpolicy.Verdict{}, true
}
