package dataruns

import (
	"context"
	"strings"

	"github.com/cove-sandbox/cove"
)

// sessionCases are about questions in a session of the caller's.
func sessionCases() []testCase {
	return []testCase{{"files_of_a_workspace", sessionFiles}, {"parquet", sessionParquet}, {"save_as", sessionSaveAs}, {"not_theirs", sessionNotTheirs}}
}

// worker is a caller who may have sessions, too.
func (r *rig) worker() cove.Platform {
	p := analyst("acme")
	p.Name, p.Scopes = "worker", []cove.Scope{cove.ScopeRuns, cove.ScopeRead, cove.ScopeWrite, cove.ScopeExec, cove.ScopeFileRead, cove.ScopeFileWrite}
	return r.s.shared.As(p)
}

func (r *rig) session(p cove.Platform) cove.ID {
	r.Helper()
	s, err := p.Sessions().Open(r.ctx, cove.OpenRequest{})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if _, err := p.Sessions().Close(context.WithoutCancel(r.ctx), s.ID, false); err != nil {
			r.Error(err)
		}
	})
	err = p.Files(s.ID).Write(r.ctx, "mine.csv", strings.NewReader("a,b\n1,x\n2,y\n"), 0o644)
	if err != nil {
		r.Fatal(err)
	}
	return s.ID
}

func sessionFiles(r *rig) {
	p := r.worker()
	req := sql("", "SELECT sum(a) AS n FROM mine")
	req.Session = r.session(p)
	req.Files = []cove.RunFile{{Name: "mine", Path: "mine.csv"}}
	r.wantRows(r.ask(p, req), "n", `[3]`)
	if again := r.ask(p, req); again.Answer.Loaded {
		r.Error("the tables of a session are loaded again")
	}
	if err := p.Files(req.Session).Write(r.ctx, "mine.csv", strings.NewReader("a,b\n40,x\n2,y\n"), 0o644); err != nil {
		r.Fatal(err)
	}
	r.wantRows(r.ask(p, req), "n", `[42]`)
	req.Files[0].Path = "none.csv"
	r.wantError(r.ask(p, req), cove.RunInvalidInput, "none.csv")
}

// sessionParquet has Python look at a Parquet file of a session, in which nothing of
// the way there stays.
func sessionParquet(r *rig) {
	p := r.worker()
	req := python("", "int(days.id.sum())")
	req.Session = r.session(p)
	req.Files = []cove.RunFile{{Name: "days", Path: "days.parquet"}}
	if err := p.Files(req.Session).Write(r.ctx, "days.parquet", strings.NewReader(days(r.T)), 0o644); err != nil {
		r.Fatal(err)
	}
	r.wantRows(r.ask(p, req), "result", `[3]`)
	got, err := p.Contexts(req.Session).Run(r.ctx, cove.CodeRequest{Language: "python", Code: "import glob\nprint(glob.glob('/tmp/.cove-[st]*'))"})
	if err != nil || string(got.Stdout.Data) != "[]\n" {
		r.Errorf("left in the session: %+v, %v", got, err)
	}
}

// sessionSaveAs hands rows to the Python of the session.
func sessionSaveAs(r *rig) {
	p := r.worker()
	req := sql(shop, "SELECT customer, count(*) AS n FROM orders GROUP BY 1 ORDER BY 1")
	req.Session, req.SaveAs = r.session(p), "top"
	r.wantRows(r.ask(p, req), "customer,n", `["ada",2]`, `["bob",2]`, `["eve",1]`)
	req.Dataset, req.SQL, req.SaveAs = "", "SELECT count(*) AS n FROM "+shop+".orders", "" // a full name needs no dataset
	r.wantRows(r.ask(p, req), "n", `[5]`)
	got, err := p.Contexts(req.Session).Run(r.ctx, cove.CodeRequest{Language: "python", Code: "print(int(top['n'].sum()), list(top.columns))"})
	if err != nil {
		r.Fatal(err)
	}
	if text := string(got.Stdout.Data); got.Error != nil || text != "5 ['customer', 'n']\n" {
		r.Errorf("the frame is %q, %+v", text, got.Error)
	}
}

func sessionNotTheirs(r *rig) {
	req := sql("", "SELECT 1")
	req.Session = r.session(r.worker())
	other := analyst("rival")
	other.Scopes = append(other.Scopes, cove.ScopeExec)
	p := r.s.shared.As(other)
	run, err := p.Runs().Submit(r.ctx, req)
	if err != nil {
		if code := cove.CodeOf(err); code != cove.NotFound && code != cove.Denied {
			r.Errorf("it is %v", err)
		}
		return
	}
	if run, err = p.Runs().Wait(r.ctx, run.ID); err != nil {
		r.Fatal(err)
	}
	r.wantError(run, cove.RunInvalidInput)
}
