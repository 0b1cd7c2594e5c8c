package datarun

import (
	"context"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/datarun/pyrun"
	"github.com/cove-sandbox/cove/internal/duckdb"
)

const (
	framePath   = "/tmp/.cove-table-"   // begins the names of the files in which Parquet goes to Python
	scratchPath = "/tmp/.cove-scratch-" // and those of the directories that Python may write to
)

// parquet are the sources that Python cannot read and the code may speak of.
func (list sources) parquet(code string) sources {
	var out sources
	for _, s := range list {
		if s.Problem == "" && s.Format == string(duckdb.Parquet) && pyrun.Named(code, s.Name) {
			out = append(out, s)
		}
	}
	return out
}

// frames has DuckDB read Parquet files and write them down for Python: there is no
// reader for them in the Python of a template. It returns where, by source; one that
// cannot be read gets a Problem.
func (t *task) frames(ctx context.Context, place cove.RunSandbox, list sources) (map[*source]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	duck, err := t.cfg.DuckDB()
	if err != nil {
		return nil, nil //nolint:nilerr // code that uses such a table is told so
	}
	h, err := duck.At(ctx, place)
	if err != nil {
		return nil, err
	}
	loaded, err := h.Load(ctx, list.tables(list, 0))
	if err != nil {
		return nil, err
	}
	paths := map[*source]string{}
	for i, s := range list {
		if why := loaded[i].Problem; why != "" {
			s.Problem = s.File + " cannot be read: " + why
			continue
		}
		q := duckdb.Question{SQL: "SELECT * FROM " + quoted(s.set, s.Name), MaxRows: maxSavedRows, MaxBytes: int64(usualSaved)}
		if place.Memory > 0 {
			q.MaxBytes = int64(place.Memory / savedPart)
		}
		paths[s] = framePath + string(cove.NewID())
		said, err := h.Frame(ctx, q, paths[s])
		if err != nil {
			return paths, err
		}
		if said.Truncated {
			s.Problem = s.File + " is too large for the memory that Python has here; ask it in SQL"
		}
	}
	if t.q.Request.Session == "" {
		h.Close(ctx) // its memory is for Python
	}
	return paths, nil
}

// quoted is a table's name in SQL.
func quoted(schema, name string) string {
	name = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	if schema == "" {
		return name
	}
	return `"` + strings.ReplaceAll(schema, `"`, `""`) + `".` + name
}

// forgetTime bounds the removal of files.
const forgetTime = 10 * time.Second

// forget removes files from a session, which goes on without them.
func forget(ctx context.Context, place cove.RunSandbox, paths []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTime)
	defer cancel()
	argv := append([]string{"rm", "-rf", "--"}, paths...)
	if p, err := place.Start(ctx, cove.Command{Argv: argv, Dir: "/"}); err == nil {
		_, _ = p.Wait(ctx) // what is left goes with the session
	}
}
