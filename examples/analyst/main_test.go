package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/inprocess"
	"github.com/cove-sandbox/cove/internal/chat/modeltest"
	"github.com/cove-sandbox/cove/internal/daemon/daemontest"
	"github.com/cove-sandbox/cove/internal/dataset/sample"
	"github.com/cove-sandbox/cove/provider/local"
	"github.com/cove-sandbox/cove/provider/providertest"
)

func TestMain(m *testing.M) {
	inprocess.Main()
	os.Exit(m.Run())
}

// pretend sets a platform up that answers questions without looking at data, and a
// model that follows a script.
func pretend(t *testing.T, steps ...modeltest.Step) {
	t.Helper()
	m := modeltest.New(modeltest.Config{Steps: steps})
	t.Cleanup(func() {
		m.Close()
		if err := m.Err(); err != nil {
			t.Error(err)
		}
	})
	for name, value := range map[string]string{
		"COVE_HOME": filepath.Join(t.TempDir(), "home"), "SANDBOX_PROVIDER": "fake", "POOL_SIZE": "0",
		"COVE_MODEL_URL": m.URL(), "COVE_MODEL": "script",
	} {
		t.Setenv(name, value)
	}
}

func TestConversation(t *testing.T) {
	pretend(t,
		modeltest.Use(modeltest.Call{Name: "run_sql", Arguments: `{"sql":"rows 2"}`}),
		modeltest.Say("There are 2."),
		modeltest.SayOf(func(q modeltest.Question) string {
			return "I remember: " + q.Messages[len(q.Messages)-2].Text() + "\x1b[31m"
		}),
	)
	var out strings.Builder
	if err := run(t.Context(), []string{"SQL: rows 3", "How many?", "Sure?"}, &out); err != nil {
		t.Fatal(err)
	}
	const want = `> SQL: rows 3
3 rows.
  sql: rows 3
  n
  1
  2
  3
> How many?
  run_sql {"sql":"rows 2"}
There are 2.
  sql: rows 2
  n
  1
  2
> Sure?
I remember: There are 2.

(The last query was: rows 2)` + "\uFFFD" + `[31m
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOnData asks the sample datasets, in sandboxes of this machine. The numbers are
// those of the files, and what a model asks for beside that is blocked.
func TestOnData(t *testing.T) {
	daemontest.NeedDuckDB(t)
	l, err := local.New(local.Config{Dir: providertest.Dir(t)})
	if err != nil {
		t.Fatal(err)
	}
	providertest.Ready(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	pretend(t,
		modeltest.Use(modeltest.Call{Name: "get_schema", Arguments: `{"dataset_id":"support"}`}),
		modeltest.Use(
			modeltest.Call{Name: "run_sql", Arguments: `{"sql":"SELECT count(*) AS n FROM support.tickets"}`},
			modeltest.Call{Name: "run_sql", Arguments: `{"sql":"SELECT * FROM read_csv('/etc/passwd')"}`},
		),
		modeltest.Say("Many."),
	)
	sets := filepath.Join(t.TempDir(), "sets")
	if err := sample.Write(sets); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SANDBOX_PROVIDER", "local")
	t.Setenv("COVE_DATASETS", sets)
	t.Setenv("COVE_DUCKDB", os.Getenv("COVE_TEST_DUCKDB"))
	var out strings.Builder
	if err := run(t.Context(), []string{"-dataset", "support", "SQL: SELECT count(*) AS n FROM tickets", "How many tickets are there?"}, &out); err != nil {
		t.Fatal(explained(err))
	}
	for _, want := range []string{"1 row.\n  sql: SELECT count(*) AS n FROM tickets\n  n\n  800\n", "  blocked: ", "read_csv", "Many.\n  sql: SELECT count(*) AS n FROM support.tickets\n  n\n  800\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestWithoutAModel(t *testing.T) {
	pretend(t)
	t.Setenv("COVE_MODEL_URL", "")
	t.Setenv("COVE_MODEL", "")
	var out strings.Builder
	err := run(t.Context(), []string{"-dataset", "shop", "SQL: fail", "How many?"}, &out)
	if got := explained(err); got != "natural language needs a model, and COVE_MODEL_URL and COVE_MODEL are not set; set them, or begin the message with SQL: or PYTHON:" {
		t.Errorf("%s", got)
	}
	if want := "> SQL: fail\nthe question asked to fail\n> How many?\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}

func TestModes(t *testing.T) {
	t.Setenv("SANDBOX_MODE", "remote")
	t.Setenv("SANDBOX_URL", "nowhere")
	var out strings.Builder
	if err := run(t.Context(), nil, &out); cove.CodeOf(err) != cove.Invalid {
		t.Errorf("a server that is none: %v", err)
	}
	if err := run(t.Context(), []string{"-no-such-flag"}, &out); err == nil || explained(err) == "" {
		t.Error("a flag that is none was taken")
	}
}

// chatty is a platform that answers each message with the same.
type chatty struct {
	cove.Platform

	answer cove.ChatAnswer
}

func (c chatty) Chats() cove.Chats { return answers{answer: c.answer} }

type answers struct {
	cove.Chats

	answer cove.ChatAnswer
}

func (c answers) Send(_ context.Context, req cove.ChatRequest) (*cove.ChatAnswer, error) {
	for _, b := range c.answer.Blocked {
		req.OnEvent(cove.ChatEvent{Kind: cove.ChatBlocked, Error: &b})
	}
	return &c.answer, nil
}

func TestWhatIsShown(t *testing.T) {
	var out strings.Builder
	a := &Analyst{Out: &out, Platform: chatty{answer: cove.ChatAnswer{
		Thread: "t", Query: "SELECT 1", Type: cove.QuerySQL, Blocked: []cove.RunError{{Message: "os is not allowed\x07"}},
		Result: &cove.Run{State: cove.RunSucceeded, Answer: &cove.RunAnswer{
			Columns: []string{"name", "value"},
			Rows:    []json.RawMessage{json.RawMessage(`["a\u001b]0;x\nb",12.50]`), json.RawMessage(`[null,{"k":[1,"x"]}]`)},
		}},
	}}}
	if err := a.Ask(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	want := "> go\n  blocked: os is not allowed\uFFFD\n\n  sql: SELECT 1\n  name      value\n  a\uFFFD]0;x b  12.50\n  null      {\"k\":[1,\"x\"]}\n"
	if diff := cmp.Diff(want, out.String()); diff != "" || a.thread != "t" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := table(&out, &cove.RunAnswer{Rows: []json.RawMessage{json.RawMessage(`{`)}}); err == nil {
		t.Error("a row that is none was written")
	}
}
