package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// row is a record as it is kept. Neither part is ever changed or handed out.
type row[T any] struct {
	id    string
	value *T // for matching
	data  []byte
}

// table is a set of rows in the order of their ids.
type table[T any] struct {
	rows []row[T]
}

// find returns where id is or would be.
func (t *table[T]) find(id string) (at int, ok bool) {
	return slices.BinarySearchFunc(t.rows, id, func(r row[T], id string) int {
		return cmp.Compare(r.id, id)
	})
}

// get returns the row with an id, or nil.
func (t *table[T]) get(id string) *row[T] {
	if at, ok := t.find(id); ok {
		return &t.rows[at]
	}
	return nil
}

func (t *table[T]) put(r row[T]) {
	at, ok := t.find(r.id)
	if ok {
		t.rows[at] = r
		return
	}
	t.rows = slices.Insert(t.rows, at, r)
}

func (t *table[T]) remove(id string) {
	if at, ok := t.find(id); ok {
		t.rows = slices.Delete(t.rows, at, at+1)
	}
}

// drop removes the rows that match, and returns how many.
func (t *table[T]) drop(match func(*T) bool) int64 {
	before := len(t.rows)
	t.rows = slices.DeleteFunc(t.rows, func(r row[T]) bool { return match(r.value) })
	return int64(before - len(t.rows))
}

// field is one by which records are found.
type field struct{ name, value string }

// newRow makes the form in which a record is kept. It refuses one without an
// id, or with a field that is not UTF-8: such a record could not be found again.
func newRow[T any](record *T, id field, others ...field) (row[T], error) {
	if id.value == "" {
		return row[T]{}, cove.InvalidField(id.name, "is empty")
	}
	for _, f := range append(others, id) {
		if !utf8.ValidString(f.value) {
			return row[T]{}, cove.InvalidField(f.name, "is not UTF-8")
		}
	}
	data, err := json.Marshal(record)
	if err != nil {
		return row[T]{}, cove.Wrap(cove.Invalid, err, "the record holds a value that cannot be kept, such as a year above 9999")
	}
	value, err := decode[T](data)
	return row[T]{id: id.value, value: value, data: data}, err
}

func decode[T any](data []byte) (*T, error) {
	record := new(T)
	if err := json.Unmarshal(data, record); err != nil {
		return nil, cove.Wrap(cove.Invalid, err, "the record holds a value that cannot be read back")
	}
	return record, nil
}

// fetch returns a copy of one record; what says in words which one is missing.
func fetch[T any](ctx context.Context, s *Store, t *table[T], id, what string) (*T, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	r := t.get(id)
	if r == nil {
		return nil, cove.Errorf(cove.NotFound, "there is no %s", what)
	}
	return decode[T](r.data)
}

const pageRows = 64

// list yields copies of the records that match, by id. It reads them in pages,
// and holds no lock while the caller works.
func list[T any](ctx context.Context, s *Store, t *table[T], after cove.ID, limit int, match func(*T) bool) iter.Seq2[*T, error] {
	return walk(ctx, after, limit, func(last string) ([]row[T], error) { return page(ctx, s, t, last, match) })
}

// listBack is list from the greatest id to the smallest.
func listBack[T any](ctx context.Context, s *Store, t *table[T], after cove.ID, limit int, match func(*T) bool) iter.Seq2[*T, error] {
	return walk(ctx, after, limit, func(last string) ([]row[T], error) { return pageBack(ctx, s, t, last, match) })
}

// walk yields pages until one is not full.
func walk[T any](ctx context.Context, after cove.ID, limit int, page func(last string) ([]row[T], error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		last, left := string(after), limit
		for {
			rows, err := page(last)
			for _, r := range rows {
				last = r.id
				var record *T
				if err = ctx.Err(); err == nil {
					record, err = decode[T](r.data)
				}
				if err != nil {
					break
				}
				if left--; !yield(record, nil) || left == 0 {
					return
				}
			}
			if err != nil {
				yield(nil, cove.Wrap(cove.CodeOf(err), err, "%s", cove.MessageOf(err)))
			}
			if err != nil || len(rows) < pageRows {
				return
			}
		}
	}
}

func page[T any](ctx context.Context, s *Store, t *table[T], after string, match func(*T) bool) ([]row[T], error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	at, ok := t.find(after)
	if ok {
		at++
	}
	var rows []row[T]
	for ; at < len(t.rows) && len(rows) < pageRows; at++ {
		if match(t.rows[at].value) {
			rows = append(rows, t.rows[at])
		}
	}
	return rows, nil
}

func pageBack[T any](ctx context.Context, s *Store, t *table[T], after string, match func(*T) bool) ([]row[T], error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	at := len(t.rows)
	if after != "" {
		at, _ = t.find(after)
	}
	var rows []row[T]
	for at--; at >= 0 && len(rows) < pageRows; at-- {
		if match(t.rows[at].value) {
			rows = append(rows, t.rows[at])
		}
	}
	return rows, nil
}
