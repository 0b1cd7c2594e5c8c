package redis

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/cove-sandbox/cove"
)

// text is a field by which records are found.
type text struct{ name, value string }

// identify refuses a record that could not be found again: one without an id,
// or with a field that is not UTF-8.
func identify(id text, others ...text) error {
	if id.value == "" {
		return cove.InvalidField(id.name, "is empty")
	}
	for _, f := range append(others, id) {
		if !utf8.ValidString(f.value) {
			return cove.InvalidField(f.name, "is not UTF-8")
		}
	}
	return nil
}

func encode(record any) (string, error) {
	data, err := json.Marshal(record)
	if err != nil {
		return "", cove.Wrap(cove.Invalid, err, "the record holds a value that cannot be kept, such as a year above 9999")
	}
	return string(data), nil
}

// decode ignores fields that it does not know: nodes of two versions may share
// a Redis for a while, and each writes only what is its own.
func decode[T any](data string) (*T, error) {
	record := new(T)
	if err := json.Unmarshal([]byte(data), record); err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the directory holds a record that cannot be read; the log has the cause")
	}
	return record, nil
}

// stamp is a form of time in which text sorts as time does, from year 0 to 9999.
const stamp = "2006-01-02T15:04:05.000000000Z"

func stamped(t time.Time) string { return t.UTC().Format(stamp) }

// record is one of any kind but a session.
type record struct {
	kind, id, data string
	hash           string   // of a key: nobody else has it
	notice         string   // to be told to all nodes
	fields         []string // names and values that scripts look at
	sets           []string // names of sets and members of them
}

func (s *Store) put(ctx context.Context, r record) (answer, error) {
	args := []any{r.kind, r.id, r.data, r.hash, r.notice, len(r.fields) / 2}
	for _, v := range append(r.fields, r.sets...) {
		args = append(args, v)
	}
	return s.run(ctx, scripts.putRecord, args...)
}

func (s *Store) remove(ctx context.Context, kind string, id cove.ID) error {
	_, err := s.run(ctx, scripts.deleteRecord, kind, string(id))
	return err
}

// fetch reads one record; what says in words which one is missing.
func fetch[T any](ctx context.Context, s *Store, kind, id, what string) (*T, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	data, err := s.client.HGet(ctx, s.prefix+kind+":"+id, "data").Result()
	for n := 1; refused(err) && n <= maxRefusals; n++ {
		if err := s.pause(ctx, time.Duration(n)*refusalPause); err != nil {
			return nil, err
		}
		data, err = s.client.HGet(ctx, s.prefix+kind+":"+id, "data").Result()
	}
	if errors.Is(err, redis.Nil) {
		return nil, cove.Errorf(cove.NotFound, "there is no %s", what)
	}
	if err != nil {
		return nil, s.fault(ctx, err)
	}
	return decode[T](data)
}

// A list is read in pages, each by a script of its own that starts after the
// last id of the one before. Records that are there all along are yielded once;
// those that come or go may be missed.
const (
	pageRows  = 64
	pageBytes = 1 << 20 // then the page is full, however few its rows
)

// selection is a list of records: those of a set that match.
type selection[T any] struct {
	kind, set string
	after     cove.ID
	back      bool // from the greatest id to the smallest
	limit     int  // 0 means no bound
	match     func(*T) bool
}

func list[T any](ctx context.Context, s *Store, q selection[T]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		left := q.limit
		for rec, err := range rows(ctx, s, q) {
			if err != nil {
				yield(nil, err)
				return
			}
			if q.match != nil && !q.match(rec) {
				continue
			}
			if left--; !yield(rec, nil) || left == 0 {
				return
			}
		}
	}
}

// rows yields all records of a set, page by page.
func rows[T any](ctx context.Context, s *Store, q selection[T]) iter.Seq2[*T, error] {
	want := pageRows
	if q.limit > 0 && q.match == nil {
		want = min(want, q.limit)
	}
	back := ""
	if q.back {
		back = "back"
	}
	return func(yield func(*T, error) bool) {
		for after, more := string(q.after), true; more; {
			page, err := s.run(ctx, scripts.page, q.kind, q.set, after, back, want, pageBytes)
			if err == nil && !page.is("ok", 2) {
				err = strange(page)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			more, after = page[1] == "more", page[2]
			for _, data := range page[3:] {
				rec, err := decode[T](data)
				if e := ctx.Err(); e != nil {
					rec, err = nil, ended(e)
				}
				if !yield(rec, err) || err != nil {
					return
				}
			}
		}
	}
}
