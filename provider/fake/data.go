package fake

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Shop is the id of the one dataset of [Datasets].
const Shop = "shop"

// Datasets is a [cove.DatasetSource] of one dataset whose files are nowhere.
type Datasets struct{}

var _ cove.DatasetSource = Datasets{}

// Datasets implements [cove.DatasetSource].
func (Datasets) Datasets(context.Context) ([]cove.Dataset, error) {
	return []cove.Dataset{shop(false)}, nil
}

// Dataset implements [cove.DatasetSource].
func (Datasets) Dataset(_ context.Context, id string) (*cove.Dataset, string, error) {
	if id != Shop {
		return nil, "", noDataset(id)
	}
	return new(shop(false)), "/nowhere", nil
}

// Describe implements [cove.Runner]. It knows the dataset of [Datasets].
func (Runner) Describe(_ context.Context, _ cove.RunHost, id string, g cove.DataGrant) (*cove.Dataset, error) {
	if id != Shop {
		return nil, noDataset(id)
	}
	d := g.Shows(shop(true))
	if d == nil {
		return nil, noDataset(id)
	}
	for i := range d.Tables {
		t := &d.Tables[i]
		if granted, ok := g.Columns[id+"."+t.Name]; ok {
			t.Columns = slices.DeleteFunc(t.Columns, func(c cove.Column) bool { return !slices.Contains(granted, c.Name) })
			t.Sample = nil
		}
	}
	return d, nil
}

func noDataset(id string) error {
	return cove.Errorf(cove.NotFound, "there is no dataset %.60q", id).Remedy("list those that you may ask")
}

// shop is the dataset, with what is in its files for who looks into them.
func shop(inside bool) cove.Dataset {
	d := cove.Dataset{
		ID: Shop, Description: "orders of a shop that never was", Size: 30, ChangedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Tables: []cove.Table{{Name: "orders", File: "orders.csv", Format: "csv", Size: 30}, {Name: "torn", File: "torn.csv", Format: "csv"}},
	}
	if inside {
		d.Tables[0].Columns = []cove.Column{{Name: "id", Type: "BIGINT"}, {Name: "status", Type: "VARCHAR"}}
		d.Tables[0].Rows = 2
		d.Tables[0].Sample = []json.RawMessage{json.RawMessage(`[1,"paid"]`), json.RawMessage(`[2,null]`)}
		d.Tables[1].Problem = "it is empty"
	}
	return d
}

// Responder is a [cove.Responder] that runs what begins with SQL: or PYTHON: and
// says everything else back.
type Responder struct{}

var _ cove.Responder = Responder{}

// Respond implements [cove.Responder].
func (Responder) Respond(ctx context.Context, p cove.Platform, _ []*cove.Message, req cove.ChatRequest) (*cove.ChatAnswer, error) {
	tell := req.OnEvent
	if tell == nil {
		tell = func(cove.ChatEvent) {}
	}
	a := &cove.ChatAnswer{
		Thread: req.Thread, Rounds: 1, Model: "parrot",
		Message: cove.Message{Thread: req.Thread, Role: cove.RoleAssistant, Text: "you said " + req.Message},
	}
	run := cove.RunRequest{Dataset: req.Dataset, Provider: req.Provider, MaxRows: req.MaxRows, Thread: req.Thread}
	if sql, ok := strings.CutPrefix(req.Message, "SQL:"); ok {
		run.Type, run.SQL = cove.QuerySQL, strings.TrimSpace(sql)
	} else if code, ok := strings.CutPrefix(req.Message, "PYTHON:"); ok {
		run.Type, run.Python = cove.QueryPython, strings.TrimSpace(code)
	} else {
		tell(cove.ChatEvent{Kind: cove.ChatToken, Text: a.Message.Text})
		return a, nil
	}
	begun, err := p.Runs().Submit(ctx, run)
	if err != nil {
		return nil, err
	}
	done, err := p.Runs().Wait(ctx, begun.ID)
	if err != nil {
		return nil, err
	}
	a.Rounds, a.Model = 0, ""
	a.Query, a.Type, a.Result = run.SQL+run.Python, run.Type, done
	a.Message.Query, a.Message.Type, a.Message.Runs, a.Message.Error = a.Query, a.Type, []cove.ID{done.ID}, done.Answer.Error
	a.Message.Text = done.Answer.Status
	tell(cove.ChatEvent{Kind: cove.ChatRun, Run: done})
	return a, nil
}
