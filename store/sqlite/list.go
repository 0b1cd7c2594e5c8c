package sqlite

import (
	"context"
	"database/sql"
	"iter"
	"strings"

	"github.com/cove-sandbox/cove"
)

// A list is read in pages, each by a query of its own that starts after the
// last id of the one before. While the caller works, no transaction is open:
// the caller may write, and the log can be folded into the file. Records that
// are there all along are yielded once; those that come or go may be missed.
const (
	pageRows  = 64
	pageBytes = 1 << 20 // then the page is full, however few its rows
)

// selection is a list of records: a table, conditions on columns, bounds.
type selection struct {
	table string
	conds []string // joined by AND
	args  []any
	after cove.ID
	back  bool // from the greatest id to the smallest
	limit int  // 0 means no bound
}

// where adds a condition unless value is empty, which selects all.
func (q *selection) where(cond, value string) {
	if value != "" {
		q.conds = append(q.conds, cond)
		q.args = append(q.args, value)
	}
}

type row struct {
	id   cove.ID
	data []byte
}

// list yields what is selected by id. Where keep is not nil, it has the last
// word on each record.
func list[T any](ctx context.Context, s *Store, q selection, keep func(*T) bool) iter.Seq2[*T, error] {
	want := pageRows
	if q.limit > 0 && keep == nil {
		want = min(want, q.limit)
	}
	return func(yield func(*T, error) bool) {
		left := q.limit
		for r, err := range s.rows(ctx, q, want) {
			if err == nil {
				err = ctx.Err()
			}
			var record *T
			if err == nil {
				record, err = scanJSON[T](r.data)
			}
			if err != nil {
				yield(nil, fault(s.path, err))
				return
			}
			if keep != nil && !keep(record) {
				continue
			}
			if left--; !yield(record, nil) || left == 0 {
				return
			}
		}
	}
}

// rows yields what is selected, page by page.
func (s *Store) rows(ctx context.Context, q selection, want int) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for after, more := q.after, true; more; {
			var page []row
			var err error
			page, more, err = s.page(ctx, q, after, want)
			for _, r := range page {
				if after = r.id; !yield(r, nil) {
					return
				}
			}
			if err != nil {
				yield(row{}, err)
				return
			}
		}
	}
}

// page reads up to want rows whose ids come after one, and whether there may be
// more.
func (s *Store) page(ctx context.Context, q selection, after cove.ID, want int) (rows []row, more bool, err error) {
	next, order := "id > ?", "id"
	if q.back {
		next, order = "(?1 = '' OR id < ?1)", "id DESC"
	}
	conds := append([]string{next}, q.conds...)
	query := "SELECT id, data FROM " + q.table + " WHERE " + strings.Join(conds, " AND ") + " ORDER BY " + order + " LIMIT ?"
	args := append(append([]any{string(after)}, q.args...), want)
	size := 0
	err = s.reader.query(ctx, query, args, func(r *sql.Rows) (bool, error) {
		var next row
		if err := r.Scan(&next.id, &next.data); err != nil {
			return false, err
		}
		rows = append(rows, next)
		size += len(next.data)
		return size < pageBytes, nil
	})
	return rows, size >= pageBytes || len(rows) == want, err
}
