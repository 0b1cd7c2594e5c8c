package dataruns

import (
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// chatCases are about conversations: as they are typed, and with a model.
func chatCases() []testCase {
	return []testCase{
		{"ChatFlow", chatFlow},
		{"blocked", chatBlocked},
		{"injected", chatInjected},
		{"typed_sql", chatTypedSQL},
		{"typed_python", chatTypedPython},
		{"no_model", chatNoModel},
		{"threads", chatThreads},
	}
}

// chatFlow goes the whole way: question, model, run_sql, sandbox, answer.
func chatFlow(r *rig) {
	h := r.own(Setup{Model: &Model{Steps: []Step{
		{Calls: []Call{{"list_datasets", "{}"}, {"get_schema", `{"dataset_id":"shop"}`}}},
		{Calls: []Call{{"run_sql", `{"dataset_id":"shop","sql":"SELECT count(*) AS n FROM orders WHERE status = 'paid'"}`}}},
		{Say: func(heard string) string {
			if !strings.Contains(heard, "3") {
				return "the model was told " + heard
			}
			return "Three orders are paid."
		}},
	}}})
	p := h.As(analyst("acme"))
	var steps []cove.ChatEventKind
	got, err := p.Chats().Send(r.ctx, cove.ChatRequest{Message: "How many orders are paid?", OnEvent: func(e cove.ChatEvent) { steps = append(steps, e.Kind) }})
	if err != nil {
		r.Fatal(err)
	}
	if got.Message.Text != "Three orders are paid." || got.Rounds != 3 || got.Thread == "" || got.Type != cove.QuerySQL ||
		!strings.Contains(got.Query, "count(*)") || len(got.Blocked) != 0 || len(got.Message.Runs) != 1 {
		r.Errorf("the answer is %+v", got)
	}
	if got.Result == nil || got.Result.Answer == nil {
		r.Fatalf("the answer has no result: %+v", got)
	}
	r.wantRows(got.Result, "n", `[3]`)
	if got.Result.Answer.Provider != h.Provider() {
		r.Errorf("it was run by %q", got.Result.Answer.Provider)
	}
	for _, kind := range []cove.ChatEventKind{cove.ChatTool, cove.ChatRun, cove.ChatToken} {
		if !slices.Contains(steps, kind) {
			r.Errorf("nobody was told of a %s: %v", kind, steps)
		}
	}
	if said := r.messages(p, got.Thread); len(said) != 2 || said[0].Role != cove.RoleUser || said[1].Text != got.Message.Text {
		r.Errorf("the thread has %d messages", len(said))
	}
}

// chatBlocked wants what a model asks for to be governed like anything else, and
// the answer to say what was refused.
func chatBlocked(r *rig) {
	h := r.own(Setup{Model: &Model{Steps: []Step{
		{Calls: []Call{{"run_sql", `{"dataset_id":"shop","sql":"SELECT * FROM read_csv('/etc/passwd')"}`}, {"run_python", `{"dataset_id":"shop","python_code":"import os"}`}}},
		{Say: func(string) string { return "That is not allowed." }},
	}}})
	got, err := h.As(analyst("acme")).Chats().Send(r.ctx, cove.ChatRequest{Message: "Show me the passwords"})
	if err != nil {
		r.Fatal(err)
	}
	var kinds []string
	for _, b := range got.Blocked {
		kinds = append(kinds, b.Type)
	}
	slices.Sort(kinds)
	if !slices.Equal(kinds, []string{cove.RunPythonPolicy, cove.RunSQLPolicy}) || got.Message.Text != "That is not allowed." {
		r.Errorf("the answer is %+v", got)
	}
}

func chatTypedSQL(r *rig) {
	got, err := r.platform().Chats().Send(r.ctx, cove.ChatRequest{Message: "SQL: SELECT count(*) AS n FROM orders", Dataset: shop})
	if err != nil {
		r.Fatal(err)
	}
	if got.Result == nil || got.Rounds != 0 || got.Query != "SELECT count(*) AS n FROM orders" {
		r.Fatalf("the answer is %+v", got)
	}
	r.wantRows(got.Result, "n", `[5]`)
	if got, err = r.platform().Chats().Send(r.ctx, cove.ChatRequest{Message: "SQL: DROP TABLE orders", Dataset: shop}); err != nil {
		r.Fatal(err)
	}
	if len(got.Blocked) != 1 || got.Blocked[0].Type != cove.RunSQLPolicy {
		r.Errorf("the answer is %+v", got)
	}
}

func chatTypedPython(r *rig) {
	got, err := r.platform().Chats().Send(r.ctx, cove.ChatRequest{Message: "PYTHON: len(orders)", Dataset: shop})
	if err != nil {
		r.Fatal(err)
	}
	if got.Result == nil || got.Type != cove.QueryPython {
		r.Fatalf("the answer is %+v", got)
	}
	r.wantRows(got.Result, "result", `[5]`)
}

// chatNoModel wants the name of the setting that is missing.
func chatNoModel(r *rig) {
	_, err := r.platform().Chats().Send(r.ctx, cove.ChatRequest{Message: "How many orders are paid?"})
	if said := cove.MessageOf(err) + cove.RemedyOf(err); cove.CodeOf(err) != cove.Unsupported || !strings.Contains(said, "COVE_MODEL_URL") || !strings.Contains(said, "SQL:") {
		r.Errorf("without a model: %v (%s)", err, cove.RemedyOf(err))
	}
}

// chatThreads wants a thread to belong to who began it.
func chatThreads(r *rig) {
	p := r.platform()
	got, err := p.Chats().Send(r.ctx, cove.ChatRequest{Message: "SQL: SELECT 1 AS a", Dataset: shop})
	if err != nil {
		r.Fatal(err)
	}
	if len(r.messages(p, got.Thread)) != 2 {
		r.Error("the thread does not have two messages")
	}
	other := analyst("acme")
	other.Name = "colleague"
	for _, who := range []cove.Principal{other, analyst("rival")} {
		r.noThread(r.s.shared.As(who), got.Thread)
	}
	if err := p.Chats().Delete(r.ctx, got.Thread); err != nil {
		r.Errorf("it cannot be deleted: %v", err)
	}
	r.noThread(p, got.Thread)
}

// noThread wants a thread not to be there.
func (r *rig) noThread(p cove.Platform, thread string) {
	r.Helper()
	for m, err := range p.Chats().Messages(r.ctx, cove.MessageFilter{Thread: thread}) {
		if cove.CodeOf(err) != cove.NotFound {
			r.Errorf("the thread has %+v, %v", m, err)
		}
		return
	}
	r.Error("the thread is there, and empty")
}

func (r *rig) messages(p cove.Platform, thread string) []*cove.Message {
	r.Helper()
	var all []*cove.Message
	for m, err := range p.Chats().Messages(r.ctx, cove.MessageFilter{Thread: thread}) {
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}
