package dataruns

import (
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

func datasetCases() []testCase {
	return []testCase{{"list", datasetList}, {"schema", datasetSchema}, {"problems", datasetProblems}, {"unknown", datasetUnknown}}
}

func datasetList(r *rig) {
	var ids []string
	for d, err := range r.platform().Datasets().List(r.ctx, cove.DatasetFilter{}) {
		if err != nil {
			r.Fatal(err)
		}
		ids = append(ids, d.ID)
		if d.ID == shop && (len(d.Tables) != 2 || d.Size == 0) {
			r.Errorf("it lists %+v", d)
		}
	}
	if want := []string{bad, mail, odd, shop, twins, vault}; !slices.Equal(ids, want) {
		r.Errorf("it lists %q, want %q", ids, want)
	}
}

func datasetSchema(r *rig) {
	d, err := r.platform().Datasets().Schema(r.ctx, shop)
	if err != nil {
		r.Fatal(err)
	}
	i := slices.IndexFunc(d.Tables, func(t cove.Table) bool { return t.Name == "orders" })
	if i < 0 || len(d.Tables) != 2 {
		r.Fatalf("the tables are %+v", d.Tables)
	}
	t := d.Tables[i]
	var columns []string
	for _, c := range t.Columns {
		columns = append(columns, c.Name+" "+c.Type)
	}
	if got, want := strings.Join(columns, ", "), "id BIGINT, customer VARCHAR, status VARCHAR, amount DOUBLE, placed DATE"; got != want {
		r.Errorf("the columns are %s, want %s", got, want)
	}
	if t.Rows != 5 || t.File != "orders.csv" || t.Format != "csv" || len(t.Sample) == 0 || t.Problem != "" {
		r.Errorf("the table is %+v", t)
	}
	if got := texts(t.Sample)[0]; got != `[1,"ada","paid",10.5,"2024-01-02"]` {
		r.Errorf("the first row is %s", got)
	}
}

// datasetProblems wants a file that nobody can ask to say why, and the others to be
// described all the same.
func datasetProblems(r *rig) {
	d, err := r.platform().Datasets().Schema(r.ctx, bad)
	if err != nil {
		r.Fatal(err)
	}
	for _, t := range d.Tables {
		if (t.Problem == "") != (t.Name == "good") {
			r.Errorf("%s: %q", t.Name, t.Problem)
		}
	}
}

func datasetUnknown(r *rig) {
	for _, id := range []string{"nowhere", "../vault", "shop/..", "/etc", "."} {
		if _, err := r.platform().Datasets().Schema(r.ctx, id); cove.CodeOf(err) != cove.NotFound && cove.CodeOf(err) != cove.Invalid {
			r.Errorf("%q: %v", id, err)
		}
	}
}
