package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// field is one by which records are found.
type field struct{ name, value string }

// identify refuses a record that could not be found again: one without an id,
// or with a field that is not UTF-8. JSON replaces such bytes and a column does
// not, so that the two would differ.
func identify(id field, others ...field) error {
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

// scanJSON is strict: a field that we do not know was written by a newer
// version, and writing the record back would lose it.
func scanJSON[T any](data []byte) (*T, error) {
	record := new(T)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(record); err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "it holds a record that this version of cove cannot read; run the version that wrote it")
	}
	return record, nil
}

// get reads one record; what says in words which one is missing.
func get[T any](ctx context.Context, s *Store, what, query string, key any) (*T, error) {
	var data []byte
	err := s.reader.row(ctx, query, []any{key}, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, cove.Errorf(cove.NotFound, "there is no %s", what)
	}
	if err != nil {
		return nil, fault(s.path, err)
	}
	record, err := scanJSON[T](data)
	if err != nil {
		return nil, fault(s.path, err)
	}
	return record, nil
}

// write runs a statement whose only answer is whether it worked.
func (s *Store) write(ctx context.Context, query string, args ...any) error {
	if _, err := s.writer.exec(ctx, query, args...); err != nil {
		return fault(s.path, err)
	}
	return nil
}
