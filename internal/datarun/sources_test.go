package datarun_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/datarun"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/pypolicy/fact"
)

// shelf is two datasets without files.
type shelf struct{ broken error }

func (s shelf) Datasets(context.Context) ([]cove.Dataset, error) {
	return []cove.Dataset{
		{ID: "shop", Tables: []cove.Table{{Name: "orders", File: "orders.csv", Format: "csv", Size: 1}, {Name: "items", File: "items.json", Format: "json", Size: 1}, {Name: "none", File: "none.csv", Format: "csv", Problem: "none.csv is empty"}}},
		{ID: "vault", Tables: []cove.Table{{Name: "secrets", File: "secrets.csv", Format: "csv", Size: 1}}},
	}, s.broken
}

func (s shelf) Dataset(ctx context.Context, id string) (*cove.Dataset, string, error) {
	all, err := s.Datasets(ctx)
	for _, d := range all {
		if d.ID == id && err == nil {
			return &d, "/host/" + id, nil
		}
	}
	if err == nil {
		err = cove.Errorf(cove.NotFound, "there is no dataset")
	}
	return nil, "", err
}

// host lends nothing, and says so.
type host struct{ asked []string }

var errNoRoom = cove.Errorf(cove.Unavailable, "there is no room").Remedy("come back")

func (h *host) Room(context.Context, string, ...cove.Tool) (cove.RunSandbox, func(bool), error) {
	h.asked = append(h.asked, "room")
	return cove.RunSandbox{}, nil, errNoRoom
}

func (h *host) Place(context.Context, cove.RunPlace) (cove.RunSandbox, func(bool), error) {
	h.asked = append(h.asked, "place")
	return cove.RunSandbox{}, nil, errNoRoom
}

func (h *host) Kernels(string) cove.Kernels { return nil }

// blind looks into nothing.
type blind struct{}

func (blind) Facts(context.Context, cove.Starter, string) (*fact.Report, error) {
	return nil, errors.New("nobody looks")
}

func runner(source cove.DatasetSource) *datarun.Runner {
	return datarun.New(datarun.Config{
		Datasets: source, Python: blind{},
		DuckDB: func() (*duckdb.Driver, error) { return duckdb.New(cove.Tool{}, duckdb.Limits{}), nil },
	})
}

// TestQuestionsThatNobodyNeedAnswer end before any sandbox is asked for.
func TestQuestionsThatNobodyNeedAnswer(t *testing.T) {
	file := func(name, path string) cove.RunFile { return cove.RunFile{Name: name, Path: path} }
	for name, c := range map[string]struct {
		req   cove.RunRequest
		grant cove.DataGrant
		kind  string
		words string
	}{
		"unknown":             {req: cove.RunRequest{Dataset: "nope", SQL: "SELECT 1"}, kind: cove.RunInvalidInput, words: `there is no dataset "nope"`},
		"not granted":         {req: cove.RunRequest{Dataset: "vault", SQL: "SELECT 1"}, grant: cove.DataGrant{Datasets: []string{"shop"}}, kind: cove.RunInvalidInput, words: `there is no dataset "vault"`},
		"no column":           {req: cove.RunRequest{Dataset: "vault", SQL: "SELECT 1", Files: []cove.RunFile{file("x", "secrets.csv")}}, grant: cove.DataGrant{Columns: map[string][]string{"VAULT.secrets": {}}}, kind: cove.RunInvalidInput, words: "has no file"},
		"files of nothing":    {req: cove.RunRequest{SQL: "SELECT 1", Files: []cove.RunFile{file("x", "x.csv")}}, kind: cove.RunInvalidInput, words: "dataset_id"},
		"no such file":        {req: cove.RunRequest{Dataset: "shop", SQL: "SELECT 1", Files: []cove.RunFile{file("x", "../vault/secrets.csv")}}, kind: cove.RunInvalidInput, words: "../vault/secrets.csv"},
		"two of one name":     {req: cove.RunRequest{Dataset: "shop", SQL: "SELECT 1", Files: []cove.RunFile{file("x", "orders.csv"), file("X", "items.json")}}, kind: cove.RunInvalidInput, words: "both be the table"},
		"a bad name":          {req: cove.RunRequest{Dataset: "shop", SQL: "SELECT 1", Files: []cove.RunFile{file("a\x01", "orders.csv")}}, kind: cove.RunInvalidInput, words: "name of a table"},
		"session, no data":    {req: cove.RunRequest{Session: "s", SQL: "SELECT 1", Files: []cove.RunFile{file("", "notes.txt")}}, kind: cove.RunInvalidInput, words: "neither CSV"},
		"session, one name":   {req: cove.RunRequest{Session: "s", SQL: "SELECT 1", Files: []cove.RunFile{file("", "/data/a.csv"), file("", "a.json")}}, kind: cove.RunInvalidInput, words: "both be the table a"},
		"SQL only":            {req: cove.RunRequest{Dataset: "shop", Python: "1"}, grant: cove.DataGrant{SQLOnly: true}, kind: cove.RunPythonPolicy, words: "SQL only"},
		"columns in Python":   {req: cove.RunRequest{Dataset: "shop", Python: "1"}, grant: cove.DataGrant{Columns: map[string][]string{"shop.orders": {"id"}}}, kind: cove.RunPythonPolicy, words: "some columns"},
		"unknown, for Python": {req: cove.RunRequest{Dataset: "nope", Python: "1"}, kind: cove.RunInvalidInput, words: "no dataset"},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.Type = cove.QuerySQL
			if c.req.Python != "" {
				c.req.Type = cove.QueryPython
			}
			h := &host{}
			a, d, err := runner(shelf{}).Run(t.Context(), h, cove.RunQuestion{Request: c.req.WithDefaults(), Grant: c.grant})
			if err != nil || a.Status != "error" || a.Error.Type != c.kind || !strings.Contains(a.Error.Message, c.words) {
				t.Errorf("got %+v, %v", a, err)
			}
			if len(h.asked) != 0 || a.Rows == nil || a.Columns == nil {
				t.Errorf("asked for %v; %+v", h.asked, a)
			}
			if (d != nil) != (c.kind == cove.RunPythonPolicy) || d != nil && (d.Allowed || d.Refusal == nil) {
				t.Errorf("the decision is %+v", d)
			}
			_, err = runner(shelf{}).Judge(t.Context(), h, cove.RunQuestion{Request: c.req.WithDefaults(), Grant: c.grant})
			if c.kind == cove.RunInvalidInput && cove.CodeOf(err) != cove.Invalid || c.kind != cove.RunInvalidInput && err != nil {
				t.Errorf("judged: %v", err)
			}
		})
	}
}

// TestWithoutASandbox: what is below fails, and the answer says so in words of ours.
func TestWithoutASandbox(t *testing.T) {
	for _, req := range []cove.RunRequest{{Type: cove.QuerySQL, SQL: "SELECT 1"}, {Type: cove.QueryPython, Python: "1"}, {Type: cove.QuerySQL, SQL: "SELECT 1", Dataset: "shop"}} {
		h := &host{}
		a, d, err := runner(shelf{}).Run(t.Context(), h, cove.RunQuestion{Request: req.WithDefaults()})
		if err != nil || d != nil || a.Error == nil || a.Error.Type != cove.RunUnavailable || a.Error.Message != "there is no room; come back" || len(h.asked) != 1 {
			t.Errorf("%+v: %+v, %v", req, a, err)
		}
		if _, err := runner(shelf{}).Judge(t.Context(), h, cove.RunQuestion{Request: req.WithDefaults()}); !errors.Is(err, errNoRoom) {
			t.Errorf("judged: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := runner(shelf{}).Run(ctx, h, cove.RunQuestion{Request: req.WithDefaults()}); err == nil {
			t.Error("a run that was ended has an answer of ours")
		}
	}
	a, _, err := runner(shelf{cove.Errorf(cove.Internal, "the disk is on fire")}).Run(t.Context(), &host{}, cove.RunQuestion{Request: cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1"}.WithDefaults()})
	if err != nil || a.Error == nil || a.Error.Type != cove.RunInternalError {
		t.Errorf("datasets that cannot be read: %+v, %v", a, err)
	}
	a, _, err = runner(nil).Run(t.Context(), &host{}, cove.RunQuestion{Request: cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1", Dataset: "shop"}.WithDefaults()})
	if err != nil || a.Error == nil || a.Error.Type != cove.RunInvalidInput {
		t.Errorf("without datasets: %+v, %v", a, err)
	}
}

func TestDescribe(t *testing.T) {
	h := &host{}
	if _, err := runner(shelf{}).Describe(t.Context(), h, "vault", cove.DataGrant{Tables: []string{"shop.orders"}}); cove.CodeOf(err) != cove.NotFound {
		t.Errorf("what is not granted: %v", err)
	}
	if _, err := runner(shelf{}).Describe(t.Context(), h, "shop", cove.DataGrant{}); !errors.Is(err, errNoRoom) {
		t.Errorf("without a sandbox: %v", err)
	}
	d, err := runner(shelf{}).Describe(t.Context(), &host{}, "shop", cove.DataGrant{Tables: []string{"shop.none"}})
	if err != nil || len(d.Tables) != 1 || d.Tables[0].Problem == "" {
		t.Errorf("with nothing to look into: %+v, %v", d, err)
	}
}
