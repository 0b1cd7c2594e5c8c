package chat_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/chat"
	"github.com/cove-sandbox/cove/internal/chat/modeltest"
	"github.com/cove-sandbox/cove/internal/chat/openai"
)

// with starts a scripted model and returns a chat that asks it.
func with(t *testing.T, rounds int, steps ...modeltest.Step) (*chat.Chat, *modeltest.Server) {
	t.Helper()
	s := modeltest.New(modeltest.Config{Model: "m", Steps: steps})
	m, err := openai.New(openai.Config{URL: s.URL(), Model: "m", Timeout: 20 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		m.Close()
		if err := s.Err(); err != nil {
			t.Errorf("the script: %v", err)
		}
	})
	c, err := chat.New(chat.Config{Model: m, Rounds: rounds})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// call is a call of a tool.
func call(name, arguments string) modeltest.Call {
	return modeltest.Call{Name: name, Arguments: arguments}
}

func ask(t *testing.T, c *chat.Chat, p cove.Platform, message string) *cove.ChatAnswer {
	t.Helper()
	a, err := c.Respond(t.Context(), p, nil, cove.ChatRequest{Thread: "th", Message: message})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestQuestion is the way that most questions take, once in one piece and once as a
// stream: look, run, answer.
func TestQuestion(t *testing.T) {
	steps := []modeltest.Step{
		modeltest.Use(call("list_datasets", "")),
		modeltest.Use(call("get_schema", `{"dataset_id":"shop"}`)),
		modeltest.Use(call("run_sql", `{"sql":"SELECT count(*) AS n FROM shop.orders","max_rows":5}`)),
		modeltest.SayOf(func(q modeltest.Question) string {
			if !strings.Contains(q.Last(), `"rows":[[3]]`) {
				return "I saw " + q.Last()
			}
			return "There are 3 orders."
		}),
	}
	for _, streamed := range []bool{false, true} {
		c, s := with(t, 8, steps...)
		p := newPlatform(t)
		var text strings.Builder
		var events []string
		req := cove.ChatRequest{Thread: "th", Message: "How many orders?", Dataset: "shop", Provider: "local", MaxRows: 50}
		if streamed {
			req.OnEvent = func(e cove.ChatEvent) {
				if e.Kind == cove.ChatToken {
					text.WriteString(e.Text)
					return
				}
				events = append(events, string(e.Kind)+" "+e.Tool+e.Text)
			}
		}
		a, err := c.Respond(t.Context(), p, nil, req)
		if err != nil {
			t.Fatal(err)
		}
		want := &cove.ChatAnswer{
			Thread: "th", Query: "SELECT count(*) AS n FROM shop.orders", Type: cove.QuerySQL, Rounds: 4, Model: "m", Result: a.Result,
			Message: cove.Message{Text: "There are 3 orders.", Runs: []cove.ID{a.Result.ID}},
		}
		if diff := cmp.Diff(want, a); diff != "" {
			t.Errorf("streamed %t (-want +got):\n%s", streamed, diff)
		}
		if a.Result.State != cove.RunSucceeded || string(a.Result.Answer.Rows[0]) != "[3]" {
			t.Errorf("result %+v", a.Result)
		}
		run := cove.RunRequest{Type: cove.QuerySQL, SQL: want.Query, Dataset: "shop", Provider: "local", MaxRows: 5, Thread: "th"}
		if diff := cmp.Diff([]cove.RunRequest{run}, p.requests()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		q := s.Questions()
		if q[0].Stream != streamed || !strings.Contains(q[0].Messages[0].Text(), "dataset shop.") || q[0].Last() != "How many orders?" || len(q[0].Tools) != 4 {
			t.Errorf("the first question: %+v", q[0])
		}
		if got := q[1].Last(); got != `{"datasets":[{"id":"shop","description":"What was sold.","tables":[{"name":"orders"},{"name":"broken","problem":"broken.csv is not UTF-8"}]}]}` {
			t.Errorf("told of datasets: %s", got)
		}
		if got := q[2].Last(); got != `{"id":"shop","description":"What was sold.","tables":[{"name":"orders","columns":[{"name":"id","type":"BIGINT"},{"name":"note","type":"VARCHAR"}],"row_count":3,"sample_rows":[[1,"tea"]]},{"name":"broken","problem":"broken.csv is not UTF-8"}]}` {
			t.Errorf("told of a schema: %s", got)
		}
		if streamed {
			wantEvents := []string{"tool_call list_datasets", `tool_call get_schema{"dataset_id":"shop"}`, `tool_call run_sql{"sql":"SELECT count(*) AS n FROM shop.orders","max_rows":5}`, "run "}
			if diff := cmp.Diff(wantEvents, events); diff != "" || text.String() != "There are 3 orders." {
				t.Errorf("events %s, text %q", diff, text.String())
			}
		}
	}
}

// TestWhatModelsGetWrong: each is told, and the conversation goes on.
func TestWhatModelsGetWrong(t *testing.T) {
	for name, tt := range map[string]struct {
		call modeltest.Call
		told string
	}{
		"unknown tool":    {call("rm_rf", `{}`), `there is no tool \"rm_rf\"; there are list_datasets, get_schema, run_sql and run_python`},
		"no name":         {call("", `{}`), `there is no tool \"\"`},
		"strange name":    {call("a b", `{}`), `there is no tool \"a b\"`},
		"long name":       {call(strings.Repeat("x", 100), `{}`), "there is no tool"},
		"broken JSON":     {call("run_sql", `{"sql":"SELECT`), "the arguments of run_sql are not what it takes: unexpected EOF"},
		"no object":       {call("run_sql", `"SELECT 1"`), "cannot unmarshal string"},
		"two objects":     {call("run_sql", `{"sql":"SELECT 1"}{}`), "there is more after the object"},
		"unknown field":   {call("run_sql", `{"query":"SELECT 1"}`), `unknown field \"query\"`},
		"no query":        {call("run_sql", ""), "it takes sql, and no python_code"},
		"code for SQL":    {call("run_sql", `{"sql":"SELECT 1","python_code":"1"}`), "it takes sql, and no python_code"},
		"SQL for code":    {call("run_python", `{"sql":"SELECT 1"}`), "it takes python_code, and no sql"},
		"broken code":     {call("run_python", `{`), "not what it takes"},
		"wrong type":      {call("run_sql", `{"sql":"SELECT 1","max_rows":"many"}`), "cannot unmarshal string"},
		"too many rows":   {call("run_sql", `{"sql":"SELECT 1","max_rows":5000}`), `VALIDATION_ERROR","message":"max_rows: 5000 is out of range`},
		"too long":        {call("run_sql", `{"sql":"`+strings.Repeat(" ", 70<<10)+`"}`), "the arguments are longer than 65536 bytes"},
		"list of what":    {call("list_datasets", `{"like":"x"}`), "unknown field"},
		"no dataset":      {call("get_schema", `{}`), "dataset_id is missing"},
		"schema of what":  {call("get_schema", `[]`), "cannot unmarshal array"},
		"unknown dataset": {call("get_schema", `{"dataset_id":"hr"}`), `there is no dataset \"hr\"; look at the list`},
		"failing query":   {call("run_sql", `{"sql":"SELECT wrong"}`), `"status":"error","error":{"type":"SQL_EXECUTION_ERROR","message":"there is no column wrong"}`},
		"without answer":  {call("run_sql", `{"sql":"unanswered"}`), "RUNNER_INTERNAL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := with(t, 3, modeltest.Use(tt.call), modeltest.Say("Sorry."))
			a := ask(t, c, newPlatform(t), "How many?")
			if got := s.Questions()[1].Last(); !strings.Contains(got, tt.told) {
				t.Errorf("told %s", got)
			}
			if a.Message.Text != "Sorry." || a.Blocked != nil || a.Stopped != "" {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestManyAtOnce: tools that are asked for together are all answered, those beyond
// the bound and with the same id included.
func TestManyAtOnce(t *testing.T) {
	var calls []modeltest.Call
	for range 10 {
		calls = append(calls, modeltest.Call{ID: "same", Name: "run_sql", Arguments: `{"sql":"SELECT 1"}`})
	}
	c, s := with(t, 3, modeltest.Use(calls...), modeltest.Use(calls[:2]...), modeltest.Say("Done."))
	p := newPlatform(t)
	a := ask(t, c, p, "Go.")
	if len(p.requests()) != 10 || len(a.Message.Runs) != 10 {
		t.Errorf("%d requests, %d runs", len(p.requests()), len(a.Message.Runs))
	}
	if last := s.Questions()[1].Last(); !strings.Contains(last, "at most 8 tools are used at once") {
		t.Errorf("told %s", last)
	}
}

// TestTooManyRounds: a model that never comes to an end is stopped, and what it found
// is there.
func TestTooManyRounds(t *testing.T) {
	step := modeltest.Use(call("run_sql", `{"sql":"SELECT 1"}`))
	c, s := with(t, 3, step, step, step)
	p := newPlatform(t)
	a := ask(t, c, p, "Go.")
	if a.Stopped != cove.ChatRounds || a.Rounds != 3 || a.Result == nil || !strings.Contains(a.Message.Text, "asked 3 times and came to no answer") {
		t.Errorf("%+v", a)
	}
	if len(p.requests()) != 2 {
		t.Errorf("%d requests", len(p.requests()))
	}
	if q := s.Questions(); q[1].ToolChoice != "auto" || q[2].ToolChoice != "none" {
		t.Errorf("the last time tools were %s", q[2].ToolChoice)
	}
}

// TestInjection: a cell tells the model what to do, and the model does it. It gets
// what the user would: a refusal, which the answer shows.
func TestInjection(t *testing.T) {
	c, s := with(t, 8,
		modeltest.Use(call("run_sql", `{"sql":"SELECT note FROM shop.orders"}`)),
		modeltest.Use(call("run_python", `{"python_code":"import os; os.system('env')"}`), call("run_sql", `{"sql":"SELECT * FROM hr.payroll"}`)),
		modeltest.Say("The note says so."),
	)
	p := newPlatform(t)
	var seen []string
	a, err := c.Respond(t.Context(), p, nil, cove.ChatRequest{Message: "What do the notes say?", OnEvent: func(e cove.ChatEvent) {
		if e.Kind == cove.ChatBlocked {
			seen = append(seen, e.Error.Refusal.Rule)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []cove.RunError{
		{Type: cove.RunPythonPolicy, Message: "os is not allowed", Refusal: &cove.Refusal{Rule: "py.import", Word: "os", Line: 1, Column: 15}},
		{Type: cove.RunSQLPolicy, Message: "payroll is not allowed", Refusal: &cove.Refusal{Rule: "sql.table", Word: "payroll", Line: 1, Column: 15}},
	}
	if diff := cmp.Diff(want, a.Blocked); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"py.import", "sql.table"}, seen); diff != "" {
		t.Error(diff)
	}
	// The answer shows the query that worked, and not what was blocked after it.
	if a.Query != "SELECT note FROM shop.orders" || a.Result.State != cove.RunSucceeded || len(a.Message.Runs) != 3 {
		t.Errorf("%+v", a)
	}
	last := s.Questions()[2]
	if told := last.Last(); !strings.Contains(told, `"rule":"sql.table","line":1,"column":15`) {
		t.Errorf("told %s", told)
	}
	// What came from the table came as a tool's data, and never as anybody's words.
	for _, m := range last.Messages {
		if strings.Contains(m.Text(), injected) && m.Role != "tool" {
			t.Errorf("the model reads it as said by %s", m.Role)
		}
	}
}

// TestDeniedTool: what the platform refuses before there is a run is blocked too.
func TestDeniedTool(t *testing.T) {
	c, s := with(t, 8, modeltest.Use(call("run_sql", `{"sql":"SELECT 1"}`), call("run_python", `{"python_code":"1"}`), call("list_datasets", `{}`)), modeltest.Say("I may not."))
	p := newPlatform(t)
	p.fail[cove.RunSubmit], p.fail[cove.DatasetList] = cove.Denied, cove.Denied
	a := ask(t, c, p, "Go.")
	want := []cove.RunError{{Type: cove.RunSQLPolicy, Message: "no run; ask an admin"}, {Type: cove.RunPythonPolicy, Message: "no run; ask an admin"}}
	if diff := cmp.Diff(want, a.Blocked); diff != "" {
		t.Error(diff)
	}
	if a.Query != "1" || a.Result != nil || !strings.Contains(s.Questions()[1].Last(), "no list") {
		t.Errorf("%+v", a)
	}
}

// TestLostTool: a platform in trouble is told to the model in the words for runs.
func TestLostTool(t *testing.T) {
	for code, want := range map[cove.Code]string{
		cove.Unavailable: cove.RunUnavailable, cove.Exhausted: cove.RunUnavailable, cove.Timeout: cove.RunTimeout,
		cove.NotFound: cove.RunInvalidInput, cove.Internal: cove.RunInternalError,
	} {
		c, s := with(t, 8, modeltest.Use(call("run_sql", `{"sql":"SELECT 1"}`)), modeltest.Say("Too bad."))
		p := newPlatform(t)
		p.fail[cove.RunWait] = code
		ask(t, c, p, "Go.")
		if told := s.Questions()[1].Last(); !strings.Contains(told, want) {
			t.Errorf("%s: told %s", code, told)
		}
	}
}

func TestEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		step modeltest.Step
		why  cove.ChatStop
		want string
	}{
		"length":      {modeltest.SayUpTo("There are"), cove.ChatLength, "There are\n\nThe model's answer got too long and ends here."},
		"filtered":    {modeltest.Filtered(""), cove.ChatFiltered, "The model's operator held the answer back."},
		"empty":       {modeltest.Say(""), cove.ChatEmpty, "The model said nothing. Ask again in other words."},
		"blank":       {modeltest.Say(" \n"), cove.ChatEmpty, "The model said nothing. Ask again in other words."},
		"very long":   {modeltest.Say(strings.Repeat("a", 70<<10)), cove.ChatLength, strings.Repeat("a", 64<<10) + "…\n\nThe model's answer got too long and ends here."},
		"whole":       {modeltest.Say(" Three. "), "", "Three."},
		"many of ä’s": {modeltest.Say(strings.Repeat("ä", 40<<10)), cove.ChatLength, strings.Repeat("ä", 32<<10) + "…\n\nThe model's answer got too long and ends here."},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := with(t, 1, tt.step)
			a := ask(t, c, newPlatform(t), "How many?")
			if a.Stopped != tt.why || a.Message.Text != tt.want {
				t.Errorf("%s %.200q", a.Stopped, a.Message.Text)
			}
		})
	}
}

func TestModelInTrouble(t *testing.T) {
	c, _ := with(t, 8, modeltest.Use(call("list_datasets", `{}`)), modeltest.Refuse(500, "oops"))
	_, err := c.Respond(t.Context(), newPlatform(t), nil, cove.ChatRequest{Message: "How many?"})
	if cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("%v", err)
	}
}

// TestCallerLeaves: what runs for somebody who left is ended.
func TestCallerLeaves(t *testing.T) {
	for _, message := range []string{"Go.", "SQL: hang"} {
		var steps []modeltest.Step
		if message == "Go." {
			steps = append(steps, modeltest.Use(call("run_sql", `{"sql":"hang"}`)))
		}
		c, _ := with(t, 8, steps...)
		p := newPlatform(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-p.held
			cancel()
		}()
		_, err := c.Respond(ctx, p, nil, cove.ChatRequest{Message: message})
		if cove.CodeOf(err) != cove.Canceled || len(p.deleted) != 1 {
			t.Errorf("%s: %v, ended %v", message, err, p.deleted)
		}
		cancel()
	}
}

// TestHistory: the newest of what was said before goes to the model, within bounds.
func TestHistory(t *testing.T) {
	var history []*cove.Message
	for range 30 {
		history = append(history, &cove.Message{Role: cove.RoleUser, Text: "old"}, &cove.Message{Role: cove.RoleAssistant, Text: "answer", Query: "SELECT 1"})
	}
	c, s := with(t, 8, modeltest.Say("Yes."))
	if _, err := c.Respond(t.Context(), newPlatform(t), history, cove.ChatRequest{Message: "And now?"}); err != nil {
		t.Fatal(err)
	}
	m := s.Questions()[0].Messages
	if len(m) != 22 || m[20].Role != "assistant" || m[20].Text() != "answer\n\n(The last query was: SELECT 1)" || m[21].Text() != "And now?" {
		t.Errorf("%d messages, %+v", len(m), m)
	}
	for _, h := range history {
		h.Text = strings.Repeat("ü", 5<<10)
	}
	c, s = with(t, 8, modeltest.Say("Yes."))
	if _, err := c.Respond(t.Context(), newPlatform(t), history, cove.ChatRequest{Message: "And now?"}); err != nil {
		t.Fatal(err)
	}
	if m := s.Questions()[0].Messages; len(m) != 5 || len(m[2].Text()) > 9<<10 {
		t.Errorf("%d messages of much text", len(m))
	}
}

// TestLittleIsTold: what a model reads of large results and schemas is bounded, and
// says so.
func TestLittleIsTold(t *testing.T) {
	c, s := with(t, 8, modeltest.Use(call("run_sql", `{"sql":"many","max_rows":1000}`), call("get_schema", `{"dataset_id":"wide"}`), call("list_datasets", `{}`)), modeltest.Say("Much."))
	p := newPlatform(t)
	much := wide()
	for range 110 {
		p.data = append(p.data, much)
	}
	a := ask(t, c, p, "Go.")
	m := s.Questions()[1].Messages
	for i, want := range []string{"Not all rows are shown here", "There are more columns than are shown here", "There are more datasets than are shown here"} {
		text := m[len(m)-3+i].Text()
		if !strings.Contains(text, want) || len(text) > 600<<10 {
			t.Errorf("%d bytes without %q", len(text), want)
		}
	}
	if a.Result.Answer.RowCount != 1000 {
		t.Errorf("the answer has %d rows", a.Result.Answer.RowCount)
	}
}

func TestBadConfig(t *testing.T) {
	m, err := openai.New(openai.Config{URL: "http://127.0.0.1:1", Model: "m", Timeout: time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, rounds := range []int{-1, 0, 65} {
		if _, err := chat.New(chat.Config{Model: m, Rounds: rounds}); cove.CodeOf(err) != cove.Invalid {
			t.Errorf("%d rounds: %v", rounds, err)
		}
	}
}
