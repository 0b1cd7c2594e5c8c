package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/cli"
)

func TestChat(t *testing.T) {
	b := served(t)
	first := b.run("chat", "SQL: SELECT 1")
	if first.code != 0 || first.out != "query\n--------\nSELECT 1\n(1 row)\n" || !strings.HasPrefix(first.err, "cove: thread ") {
		t.Fatalf("%+v", first)
	}
	thread := strings.TrimSpace(strings.TrimPrefix(first.err, "cove: thread "))
	if got := b.input("SQL: rows 2").ok("chat", "--thread", thread, "-"); got != "n\n-\n1\n2\n(2 rows)\n" {
		t.Errorf("%q", got)
	}
	var a struct {
		Thread string `json:"thread_id"`
		Result struct {
			Status string `json:"status"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(b.ok("--json", "chat", "--thread", thread, "PYTHON: 1")), &a); err != nil || a.Thread != thread || a.Result.Status != "success" {
		t.Errorf("%+v, %v", a, err)
	}
	b.fails(1, "[SQL_EXECUTION_ERROR]", "chat", "SQL: fail")
	b.fails(125, "COVE_MODEL_URL", "chat", "how many?")
	b.fails(125, "message: is empty", "chat", "")
	b.fails(125, "max_rows", "chat", "--max-rows", "5000", "SQL: SELECT 1")
	b.fails(125, "unknown flag", "chat", "--threads", "x", "SQL: SELECT 1")
}

func TestAnswersOfAModel(t *testing.T) {
	var out, notes bytes.Buffer
	err := cli.ShowChat(&out, &notes, &cove.ChatAnswer{
		Thread: "t", Message: cove.Message{Text: "two\n\x1b[2J lines\n"}, Query: "SELECT 1", Type: cove.QuerySQL, Model: "m", Stopped: cove.ChatRounds,
		Blocked: []cove.RunError{{Type: cove.RunSQLPolicy, Message: "no"}},
	}, true)
	if err != nil || out.String() != "two\n\\x1b[2J lines\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	want := "cove: no [SQL_POLICY_VIOLATION]\ncove: it asked, in sql: SELECT 1\ncove: the answer is not whole: rounds\ncove: thread t\n"
	if notes.String() != want {
		t.Errorf("%q", notes.String())
	}
}
