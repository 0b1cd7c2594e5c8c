package chat_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/chat"
)

func withoutModel(t *testing.T, missing ...string) *chat.Chat {
	t.Helper()
	c, err := chat.New(chat.Config{Missing: missing})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAsItIs: a query that somebody wrote runs without a model.
func TestAsItIs(t *testing.T) {
	for _, tt := range []struct {
		message string
		kind    cove.QueryType
		query   string
		text    string
		fault   string
	}{
		{"SQL: SELECT 1", cove.QuerySQL, "SELECT 1", "1 row.", ""},
		{"  sql:SELECT 1;  ", cove.QuerySQL, "SELECT 1;", "1 row.", ""},
		{"Sql:\n  SELECT 1\n", cove.QuerySQL, "  SELECT 1", "1 row.", ""},
		{"SQL: nothing", cove.QuerySQL, "nothing", "0 rows.", ""},
		{"SQL: many", cove.QuerySQL, "many", "The first 7 rows; there is more.", ""},
		{"SQL: print", cove.QuerySQL, "print", "printed", ""},
		{"SQL: SELECT * FROM payroll", cove.QuerySQL, "SELECT * FROM payroll", "payroll is not allowed", cove.RunSQLPolicy},
		{"SQL: SELECT wrong", cove.QuerySQL, "SELECT wrong", "there is no column wrong", cove.RunSQLFailed},
		{"PYTHON: import os", cove.QueryPython, "import os", "os is not allowed", cove.RunPythonPolicy},
		{"python: \npass", cove.QueryPython, "pass", "Done, without a result.", ""},
	} {
		p := newPlatform(t)
		var events []cove.ChatEventKind
		a, err := withoutModel(t).Respond(t.Context(), p, nil, cove.ChatRequest{
			Thread: "th", Message: tt.message, Dataset: "shop", MaxRows: 7, OnEvent: func(e cove.ChatEvent) { events = append(events, e.Kind) },
		})
		if err != nil {
			t.Errorf("%q: %v", tt.message, err)
			continue
		}
		fault := ""
		if a.Message.Error != nil {
			fault = a.Message.Error.Type
		}
		if a.Query != tt.query || a.Type != tt.kind || a.Message.Text != tt.text || fault != tt.fault || a.Rounds != 0 || a.Model != "" || len(a.Message.Runs) != 1 {
			t.Errorf("%q: %+v", tt.message, a)
		}
		blocked := tt.fault == cove.RunSQLPolicy || tt.fault == cove.RunPythonPolicy
		if (len(a.Blocked) == 1) != blocked {
			t.Errorf("%q: blocked %v", tt.message, a.Blocked)
		}
		want := []cove.ChatEventKind{cove.ChatRun, cove.ChatToken}
		if blocked {
			want = []cove.ChatEventKind{cove.ChatRun, cove.ChatBlocked, cove.ChatToken}
		}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("%q: %s", tt.message, diff)
		}
		if r := p.requests()[0]; r.Dataset != "shop" || r.MaxRows != 7 || r.Thread != "th" {
			t.Errorf("%q: asked %+v", tt.message, r)
		}
	}
}

func TestNoQuery(t *testing.T) {
	for message, want := range map[string]string{
		"SQL:":       "message: has no query after SQL:",
		"python: \n": "message: has no query after PYTHON:",
	} {
		if _, err := withoutModel(t).Respond(t.Context(), newPlatform(t), nil, cove.ChatRequest{Message: message}); cove.CodeOf(err) != cove.Invalid || cove.MessageOf(err) != want {
			t.Errorf("%q: %v", message, err)
		}
	}
}

// TestRefusedAsItIs: what makes no run because it cannot be one is an answer; what the
// platform refuses or cannot do is an error, as it is for a run.
func TestRefusedAsItIs(t *testing.T) {
	p := newPlatform(t)
	p.fail[cove.RunSubmit] = cove.Invalid
	a, err := withoutModel(t).Respond(t.Context(), p, nil, cove.ChatRequest{Message: "SQL: SELECT 1"})
	if err != nil || a.Message.Error.Type != cove.RunValidation || a.Message.Text != "no run; ask an admin" || a.Result != nil {
		t.Errorf("%+v, %v", a, err)
	}
	for _, code := range []cove.Code{cove.Denied, cove.Exhausted, cove.Unavailable, cove.Unsupported} {
		p.fail[cove.RunSubmit] = code
		if _, err := withoutModel(t).Respond(t.Context(), p, nil, cove.ChatRequest{Message: "SQL: SELECT 1"}); cove.CodeOf(err) != code {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// TestNoModel: the sentence names what is missing, and nothing else.
func TestNoModel(t *testing.T) {
	for _, tt := range []struct {
		missing       []string
		want, because string
	}{
		{[]string{"COVE_MODEL_URL", "COVE_MODEL"}, "natural language needs a model, and COVE_MODEL_URL and COVE_MODEL are not set", "set them, or begin the message with SQL: or PYTHON:"},
		{[]string{"COVE_MODEL"}, "natural language needs a model, and COVE_MODEL is not set", "set it, or begin the message with SQL: or PYTHON:"},
		{nil, "natural language needs a model, and this build has none", "begin the message with SQL: or PYTHON:"},
	} {
		for _, message := range []string{"How many?", "SQL is what?", "SQLite: x", "sq: x", "PYTHON"} {
			_, err := withoutModel(t, tt.missing...).Respond(t.Context(), newPlatform(t), nil, cove.ChatRequest{Message: message})
			if cove.CodeOf(err) != cove.Unsupported || cove.MessageOf(err) != tt.want || cove.RemedyOf(err) != tt.because {
				t.Errorf("%q: %v, %s", message, err, cove.RemedyOf(err))
			}
			if strings.Contains(err.Error(), "KEY") {
				t.Errorf("a key is no must: %v", err)
			}
		}
	}
}
