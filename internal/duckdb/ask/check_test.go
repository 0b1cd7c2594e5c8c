package ask_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

func TestCheck(t *testing.T) {
	table := ask.Table{Schema: "shop", Name: "2024 sales", Path: "/data/shop/2024 sales.csv", Format: ask.CSV}
	with := func(change func(*ask.Table)) *ask.Request {
		changed := table
		change(&changed)
		return &ask.Request{ID: 1, Verb: ask.VerbLoad, Load: &ask.Load{Tables: []ask.Table{changed}}}
	}
	query := func(q ask.Query) *ask.Request { return &ask.Request{ID: 1, Verb: ask.VerbQuery, Query: &q} }
	frame := func(f ask.Frame) *ask.Request { return &ask.Request{ID: 1, Verb: ask.VerbFrame, Frame: &f} }
	for name, c := range map[string]struct {
		request *ask.Request
		want    string // empty: it is good
	}{
		"open":               {&ask.Request{ID: 1, Verb: ask.VerbOpen, Open: &ask.Open{Memory: 1 << 30, Threads: 1}}, ""},
		"load":               {with(func(*ask.Table) {}), ""},
		"load in main":       {with(func(t *ask.Table) { t.Schema = "" }), ""},
		"nothing to load":    {&ask.Request{ID: 1, Verb: ask.VerbLoad, Load: &ask.Load{}}, ""},
		"describe":           {&ask.Request{ID: 1, Verb: ask.VerbDescribe, Describe: &ask.Describe{Tables: []ask.Table{table}, Samples: 5}}, ""},
		"query":              {query(ask.Query{SQL: "SELECT 1", MaxRows: 1, MaxBytes: 1}), ""},
		"frame":              {frame(ask.Frame{SQL: "SELECT 1", MaxRows: 1, MaxBytes: 1, Path: "/workspace/x"}), ""},
		"parse":              {&ask.Request{ID: 1, Verb: ask.VerbParse, Parse: &ask.Parse{}}, ""},
		"functions":          {&ask.Request{ID: 1, Verb: ask.VerbFunctions}, ""},
		"stop":               {&ask.Request{ID: 2, Verb: ask.VerbStop, Stop: &ask.Stop{ID: 1}}, ""},
		"no id":              {&ask.Request{Verb: ask.VerbFunctions}, "an id"},
		"no verb":            {&ask.Request{ID: 1}, "no verb"},
		"not its own":        {&ask.Request{ID: 1, Verb: ask.VerbParse, Stop: &ask.Stop{ID: 1}}, "needs what"},
		"too much":           {&ask.Request{ID: 1, Verb: ask.VerbParse, Parse: &ask.Parse{}, Stop: &ask.Stop{ID: 1}}, "nothing else"},
		"functions and more": {&ask.Request{ID: 1, Verb: ask.VerbFunctions, Parse: &ask.Parse{}}, "nothing else"},
		"open nothing":       {&ask.Request{ID: 1, Verb: ask.VerbOpen}, "needs what"},
		"little memory":      {&ask.Request{ID: 1, Verb: ask.VerbOpen, Open: &ask.Open{Memory: 1, Threads: 1}}, "memory is 1"},
		"no threads":         {&ask.Request{ID: 1, Verb: ask.VerbOpen, Open: &ask.Open{Memory: 1 << 30}}, "threads is 0"},
		"samples":            {&ask.Request{ID: 1, Verb: ask.VerbDescribe, Describe: &ask.Describe{Samples: -1}}, "samples is -1"},
		"query no rows":      {query(ask.Query{MaxBytes: 1}), "max_rows is 0"},
		"query no bytes":     {query(ask.Query{MaxRows: 1}), "max_bytes is 0"},
		"long text":          {query(ask.Query{MaxRows: 1, MaxBytes: 1, SQL: strings.Repeat(" ", ask.MaxSQLBytes+1)}), "more than"},
		"zero byte":          {query(ask.Query{MaxRows: 1, MaxBytes: 1, SQL: "SELECT '\x00'"}), "zero byte"},
		"no UTF-8":           {query(ask.Query{MaxRows: 1, MaxBytes: 1, SQL: "SELECT '\xff'"}), "UTF-8"},
		"frame no rows":      {frame(ask.Frame{MaxBytes: 1, Path: "/x"}), "max_rows is 0"},
		"frame no bytes":     {frame(ask.Frame{MaxRows: 1, Path: "/x"}), "max_bytes is 0"},
		"frame no path":      {frame(ask.Frame{MaxRows: 1, MaxBytes: 1}), "absolute path"},
		"relative":           {with(func(t *ask.Table) { t.Path = "x.csv" }), "absolute path"},
		"not clean":          {with(func(t *ask.Table) { t.Path = "/data/../etc/passwd" }), "absolute path"},
		"format":             {with(func(t *ask.Table) { t.Format = "xls" }), "no format"},
		"no name":            {with(func(t *ask.Table) { t.Name = "" }), "name of a table"},
		"control character":  {with(func(t *ask.Table) { t.Name = "a\nb" }), "name of a table"},
		"engine's schema":    {with(func(t *ask.Table) { t.Schema = "PG_catalog" }), "name of a schema"},
		"many columns":       {with(func(t *ask.Table) { t.Columns = make([]string, ask.MaxColumns+1) }), "columns are more"},
		"many tables":        {&ask.Request{ID: 1, Verb: ask.VerbLoad, Load: &ask.Load{Tables: make([]ask.Table, ask.MaxTables+1)}}, "tables are more"},
		"two of one name": {&ask.Request{ID: 1, Verb: ask.VerbLoad, Load: &ask.Load{Tables: []ask.Table{
			{Name: "a", Path: "/a.csv", Format: ask.CSV}, {Name: "A", Path: "/b.csv", Format: ask.CSV},
		}}}, "two tables"},
	} {
		t.Run(name, func(t *testing.T) {
			fault := c.request.Check()
			switch {
			case c.want == "" && fault != nil:
				t.Errorf("refused: %v", fault)
			case c.want != "" && (fault == nil || fault.Kind != ask.BadRequest || !strings.Contains(fault.Error(), c.want)):
				t.Errorf("got %v, want %q", fault, c.want)
			}
		})
	}
	for _, verb := range []ask.Verb{ask.VerbDescribe, ask.VerbLoad, ask.VerbQuery, ask.VerbFrame, ask.VerbParse, ask.VerbStop} {
		// Something is set, so that only what is missing is wrong.
		r := ask.Request{ID: 1, Verb: verb, Open: &ask.Open{}}
		if fault := r.Check(); fault == nil {
			t.Errorf("%s is good without what it is about", verb)
		}
	}
}
