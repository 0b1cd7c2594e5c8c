package platformtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func dataCases() []testCase {
	return []testCase{
		{"datasets", listDatasets},
		{"schema", datasetSchema},
		{"grant", datasetGrant},
		{"chat", chatAnswer},
		{"chat_bad_requests", chatBadRequests},
		{"threads", chatThreads},
		{"threads_of_others", chatThreadsOfOthers},
	}
}

func (s *suite) data(t *testing.T) (*rig, cove.Platform, *Data) {
	t.Helper()
	r := s.start(t, Options{})
	d := r.h.Extras().Data
	if d == nil {
		t.Skip("this platform has no data")
	}
	return r, r.user("acme"), d
}

func listDatasets(t *testing.T, s *suite) {
	r, p, d := s.data(t)
	sets := all(r, p.Datasets().List(r.ctx, cove.DatasetFilter{}))
	i := slices.IndexFunc(sets, func(set *cove.Dataset) bool { return set.ID == d.Dataset })
	if i < 0 {
		t.Fatalf("%q is not among the datasets %+v", d.Dataset, sets)
	}
	if len(sets[i].Tables) == 0 || sets[i].Tables[0].Name == "" || sets[i].Tables[0].File == "" || sets[i].Tables[0].Format == "" {
		t.Errorf("the dataset is %+v", sets[i])
	}
	if !slices.IsSortedFunc(sets, func(a, b *cove.Dataset) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("the datasets come out of order: %+v", sets)
	}
	last := sets[len(sets)-1].ID
	if rest := all(r, p.Datasets().List(r.ctx, cove.DatasetFilter{After: last})); len(rest) != 0 {
		t.Errorf("after the last dataset come %+v", rest)
	}
	if one := all(r, p.Datasets().List(r.ctx, cove.DatasetFilter{Limit: 1})); len(one) != 1 || one[0].ID != sets[0].ID {
		t.Errorf("of at most one dataset come %+v", one)
	}
}

func datasetSchema(t *testing.T, s *suite) {
	r, p, d := s.data(t)
	set, err := p.Datasets().Schema(r.ctx, d.Dataset)
	r.must(err, "schema")
	if set.ID != d.Dataset || len(set.Tables) == 0 {
		t.Fatalf("the schema is %+v", set)
	}
	i := slices.IndexFunc(set.Tables, func(table cove.Table) bool { return table.Problem == "" })
	if i < 0 || len(set.Tables[i].Columns) == 0 || set.Tables[i].Rows == 0 || len(set.Tables[i].Sample) == 0 {
		t.Errorf("no table is whole: %+v", set.Tables)
	}
	for _, id := range []string{"no-such-dataset", "../" + d.Dataset, "a\x01b"} {
		_, err = p.Datasets().Schema(r.ctx, id)
		wantCode(t, err, cove.NotFound, cove.Invalid)
	}
}

// datasetGrant: what a key may not ask looks as what is not there.
func datasetGrant(t *testing.T, s *suite) {
	r, p, d := s.data(t)
	set, err := p.Datasets().Schema(r.ctx, d.Dataset)
	r.must(err, "schema")
	table := set.Tables[0].Name
	bound := func(g cove.DataGrant) cove.Datasets {
		return r.as(cove.Principal{Name: "bound", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeRuns}, Limits: cove.KeyLimit{Data: g}}).Datasets()
	}
	other := bound(cove.DataGrant{Datasets: []string{"another"}})
	if sets := all(r, other.List(r.ctx, cove.DatasetFilter{})); len(sets) != 0 {
		t.Errorf("a key for another dataset sees %+v", sets)
	}
	_, hidden := other.Schema(r.ctx, d.Dataset)
	wantCode(t, hidden, cove.NotFound)
	one := bound(cove.DataGrant{Tables: []string{d.Dataset + "." + table}})
	sets := all(r, one.List(r.ctx, cove.DatasetFilter{}))
	if len(sets) != 1 || len(sets[0].Tables) != 1 || sets[0].Tables[0].Name != table {
		t.Errorf("a key for the table %s sees %+v", table, sets)
	}
	shown, err := one.Schema(r.ctx, d.Dataset)
	r.must(err, "schema of one table")
	if len(shown.Tables) != 1 || shown.Tables[0].Name != table {
		t.Errorf("a key for the table %s is shown %+v", table, shown)
	}
}

func chatAnswer(t *testing.T, s *suite) {
	r, p, d := s.data(t)
	var kinds []cove.ChatEventKind
	a, err := p.Chats().Send(r.ctx, cove.ChatRequest{
		Thread: "t", Message: d.Message, OnEvent: func(e cove.ChatEvent) { kinds = append(kinds, e.Kind) },
	})
	r.must(err, "send")
	if a.Thread != "t" || a.Query == "" || a.Result == nil || a.Result.Answer == nil || a.Result.Answer.Status != "success" || a.Message.Role != cove.RoleAssistant {
		t.Fatalf("the answer is %+v", a)
	}
	if !slices.Contains(kinds, cove.ChatRun) {
		t.Errorf("on the way were told %v", kinds)
	}
	again, err := p.Chats().Send(r.ctx, cove.ChatRequest{Thread: "t", Message: d.Message})
	r.must(err, "send with nobody looking on")
	if again.Result == nil || again.Result.ID == a.Result.ID {
		t.Errorf("the second message led to the run %+v", again.Result)
	}
	all(r, p.Chats().Messages(r.ctx, cove.MessageFilter{Thread: "t"}))
	r.must(p.Chats().Delete(r.ctx, "t"), "delete")
}

func chatBadRequests(t *testing.T, s *suite) {
	r, p, d := s.data(t)
	for field, req := range map[string]cove.ChatRequest{
		"message":    {},
		"max_rows":   {Message: d.Message, MaxRows: cove.MaxRunRows + 1},
		"thread_id":  {Message: d.Message, Thread: strings.Repeat("x", 1000)},
		"dataset_id": {Message: d.Message, Dataset: strings.Repeat("x", 1000)},
	} {
		_, err := p.Chats().Send(r.ctx, req)
		wantField(t, err, cove.Invalid, field)
	}
}
