package datarun

import (
	"context"
	"errors"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
	"github.com/cove-sandbox/cove/internal/pypolicy"
	"github.com/cove-sandbox/cove/internal/sqlpolicy"
)

// Judge implements [cove.Runner]. A question that cannot be read is not refused: it
// would fail.
func (r *Runner) Judge(ctx context.Context, host cove.RunHost, q cove.RunQuestion) (*cove.RunDecision, error) {
	if q.Timings == nil {
		q.Timings = &cove.RunTimings{}
	}
	t := &task{Runner: r, host: host, q: q}
	list, err := t.find(ctx)
	if err == nil && q.Request.Type == cove.QueryPython {
		err = t.judgePython(ctx, list)
	} else if err == nil {
		_, err = t.judgeSQL(ctx, list)
	}
	p, told := errors.AsType[*problem](err)
	switch {
	case t.decision != nil:
		return t.decision, nil
	case told && p.Type == cove.RunInvalidInput:
		return nil, cove.Errorf(cove.Invalid, "%s", p.Message)
	case told:
		return nil, cove.Errorf(cove.Invalid, "%s", p.Message).With("type", p.Type)
	}
	return nil, err
}

// judgeSQL has a statement read by the engine's parser in a room of ours, and decides
// about what it made of it.
func (t *task) judgeSQL(ctx context.Context, list sources) (sqlpolicy.Verdict, error) {
	defer since(&t.q.Timings.Judge, time.Now())
	sql := t.q.Request.SQL
	tree, err := t.parse(ctx, sql)
	var v sqlpolicy.Verdict
	switch f, ok := errors.AsType[*duckdb.Fault](err); {
	case err == nil:
		cat, g := list.catalog(t.q.Request.Dataset)
		v = sqlpolicy.Judge(tree.Statements, sql, cat, g)
	case ok && f.Kind == ask.NotSelect:
		v.Refusal = sqlpolicy.NotSelect(sql)
	case ok && f.Kind == ask.Large:
		v.Refusal = sqlpolicy.TooLarge()
	default:
		return v, err
	}
	t.decision = v.Decision()
	if v.Refusal != nil {
		return v, refused(cove.RunSQLPolicy, v.Refusal)
	}
	return v, nil
}

func (t *task) parse(ctx context.Context, sql string) (*duckdb.Tree, error) {
	duck, err := t.cfg.DuckDB()
	if err != nil {
		return nil, err
	}
	room, done, err := t.host.Room(ctx, t.q.Request.Provider, duck.Tool())
	if err != nil {
		return nil, err
	}
	t.served(room)
	h, err := duck.At(ctx, room)
	var tree *duckdb.Tree
	if err == nil {
		tree, err = h.Parse(ctx, sql)
	}
	done(lost(ctx, err))
	return tree, err
}

// lost reports whether an error says that a sandbox is of no use any more.
func lost(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && duckdb.TypeOf(err) == cove.RunUnavailable
}

// The rules of a grant, beside those of the policies.
const (
	ruleSQLOnly = "data.sql_only" // no Python
	ruleColumns = "data.columns"  // only some columns, which Python could not be held to
)

// judgePython has code looked into in a room of ours, and decides about what stands
// in it.
func (t *task) judgePython(ctx context.Context, list sources) error {
	defer since(&t.q.Timings.Judge, time.Now())
	if why := t.ungranted(list); why != nil {
		t.decision = &cove.RunDecision{Refusal: why}
		return refused(cove.RunPythonPolicy, why)
	}
	room, done, err := t.host.Room(ctx, t.q.Request.Provider)
	if err != nil {
		return err
	}
	t.served(room)
	report, err := t.cfg.Python.Facts(ctx, room.Sandbox, t.q.Request.Python)
	done(err != nil && ctx.Err() == nil && cove.CodeOf(err) != cove.Exhausted)
	if err != nil {
		return err
	}
	t.decision = pypolicy.Judge(report)
	if e := pypolicy.Problem(report, t.decision); e != nil {
		return &problem{*e}
	}
	for _, s := range list {
		t.decision.Tables = append(t.decision.Tables, s.String())
	}
	return nil
}

// ungranted is why a key may not ask this in Python.
func (t *task) ungranted(list sources) *cove.Refusal {
	if t.q.Grant.SQLOnly {
		return &cove.Refusal{Rule: ruleSQLOnly, Reason: "this key may ask in SQL only"}
	}
	for _, s := range list {
		if s.bounded {
			return &cove.Refusal{Rule: ruleColumns, Word: s.String(), Reason: "this key sees some columns of " + s.String() + " only, and may ask that in SQL only"}
		}
	}
	return nil
}
