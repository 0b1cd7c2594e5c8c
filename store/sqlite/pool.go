package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	_ "modernc.org/sqlite" // the driver
)

var errClosed = errors.New("the store is closed")

// pool is a set of connections and the statements prepared on them.
//
// Callers wait for a connection at the gate, where they can give up. Once a
// statement has begun it is finished: after an interrupt nobody could say
// whether it took effect. Statements are short, so that nothing waits for long.
type pool struct {
	db     *sql.DB
	gate   chan struct{}
	closed chan struct{}

	reserve *reserve // of what writes; nil for readers

	mu    sync.RWMutex
	stmts map[string]*sql.Stmt // by text, of which there is a small fixed set
}

func newPool(dsn string, size int) (*pool, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return &pool{
		db: db, gate: make(chan struct{}, size), closed: make(chan struct{}),
		stmts: map[string]*sql.Stmt{},
	}, nil
}

func (p *pool) enter(ctx context.Context) (context.Context, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case p.gate <- struct{}{}:
		return context.WithoutCancel(ctx), nil
	case <-p.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pool) leave() { <-p.gate }

// close takes every place at the gate for good.
func (p *pool) close() error {
	for range cap(p.gate) {
		p.gate <- struct{}{}
	}
	close(p.closed)
	var errs []error
	for _, st := range p.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, p.db.Close())...)
}

func (p *pool) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.RLock()
	st := p.stmts[query]
	p.mu.RUnlock()
	if st != nil {
		return st, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if st := p.stmts[query]; st != nil {
		return st, nil
	}
	st, err := p.db.PrepareContext(ctx, query) //nolint:sqlclosecheck // kept until close
	if err == nil {
		p.stmts[query] = st
	}
	return st, err
}

// exec runs one statement and returns how many rows it changed.
func (p *pool) exec(ctx context.Context, query string, args ...any) (int64, error) {
	ctx, err := p.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer p.leave()
	st, err := p.stmt(ctx, query) //nolint:sqlclosecheck // it is the pool's
	if err != nil {
		return 0, err
	}
	var changed int64
	err = p.onFull(ctx, func() error {
		res, err := st.ExecContext(ctx, args...)
		if err == nil {
			changed, err = res.RowsAffected()
		}
		return err
	})
	return changed, err
}

// query hands rows to each until there are no more or it returns false.
func (p *pool) query(ctx context.Context, query string, args []any, each func(*sql.Rows) (bool, error)) (err error) {
	ctx, err = p.enter(ctx)
	if err != nil {
		return err
	}
	defer p.leave()
	st, err := p.stmt(ctx, query)
	if err != nil {
		return err
	}
	return p.onFull(ctx, func() (err error) {
		rows, err := st.QueryContext(ctx, args...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		more := true
		for more && err == nil && rows.Next() {
			more, err = each(rows)
		}
		return errors.Join(err, rows.Err())
	})
}

// row scans the only row of a query. It reads on to the end, since a statement
// that writes and returns something is not committed before. No row at all is
// sql.ErrNoRows.
func (p *pool) row(ctx context.Context, query string, args []any, into any) error {
	found := false
	err := p.query(ctx, query, args, func(rows *sql.Rows) (bool, error) {
		found = true
		return true, rows.Scan(into)
	})
	if err == nil && !found {
		return sql.ErrNoRows
	}
	return err
}

// within runs do in a transaction, which is committed unless do fails.
func (p *pool) within(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	ctx, err := p.enter(ctx)
	if err != nil {
		return err
	}
	defer p.leave()
	return p.onFull(ctx, func() error {
		tx, err := p.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := do(ctx, tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	})
}
