package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

// check walks data beside the type it is meant for. The standard decoder would
// take "Command" for "command" and the second of two equal names, and cannot
// say where an unknown name was. The walk copies no text.
func check[T any](data []byte) error {
	if err := syntax(data); err != nil {
		return err
	}
	return (&walker{rest: data}).value(reflect.TypeFor[T](), "")
}

// syntax reports what is not one JSON value.
func syntax(data []byte) error {
	err := json.Unmarshal(data, new(struct{})) // which keeps nothing of it
	at, ok := errors.AsType[*json.SyntaxError](err)
	switch {
	case !ok:
		return nil
	case at.Offset >= int64(len(data)) && strings.HasPrefix(at.Error(), "unexpected end"):
		return cove.Wrap(cove.Invalid, err, "the body is not JSON: it ends too early")
	case strings.HasSuffix(at.Error(), "after top-level value"):
		return cove.Wrap(cove.Invalid, err, "there is more after the JSON value; send one value")
	}
	return cove.Wrap(cove.Invalid, err, "the body is not JSON: %s, at byte %d", at.Error(), at.Offset)
}

// walker goes through JSON whose syntax is right.
type walker struct{ rest []byte }

// next returns the first byte of the next value, or the bracket that ends a list or
// an object. Nothing is taken.
func (w *walker) next() byte {
	w.rest = bytes.TrimLeft(w.rest, " \t\r\n,:")
	return w.rest[0]
}

// take returns the next value whole.
func (w *walker) take() []byte {
	end := intake.ValueEnd(w.rest)
	value := w.rest[:end]
	w.rest = w.rest[end:]
	return value
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// whole reports whether a value of type t is read by its own method, or is
// bytes, so that nothing below it has a name to check.
func whole(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || reflect.PointerTo(t).Implements(unmarshaler) ||
		t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func (w *walker) value(t reflect.Type, at string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	first := w.next()
	switch {
	case whole(t):
		return opaque(w.take(), t, at)
	case first == 'n':
		w.take()
		return nil
	}
	switch t.Kind() { //nolint:exhaustive // the forms of this package hold no other kinds
	case reflect.Struct:
		return w.object(first, fieldsOf(t), nil, at)
	case reflect.Map:
		return w.object(first, nil, t.Elem(), at)
	case reflect.Slice:
		return w.array(first, t.Elem(), at)
	case reflect.String:
		_, err := w.scalar(first == '"', at, "text in quotes")
		return err
	case reflect.Bool:
		_, err := w.scalar(first == 't' || first == 'f', at, "true or false")
		return err
	default:
		text, err := w.scalar(first == '-' || first >= '0' && first <= '9', at, "a number")
		if err != nil {
			return err
		}
		return number(string(text), t, at)
	}
}

func opaque(raw []byte, t reflect.Type, at string) error {
	if t.Kind() == reflect.Slice && raw[0] == '[' {
		return invalid(at, "must be base64 in quotes")
	}
	if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
		if ours, ok := errors.AsType[*cove.Error](err); ok {
			return invalid(at, ours.Message)
		}
		return invalid(at, "does not fit; /openapi.json says what does")
	}
	return nil
}

// object reads an object. Either the names are fixed, or any name will do and all
// values are of one type.
func (w *walker) object(first byte, fields map[string]reflect.Type, every reflect.Type, at string) error {
	if first != '{' {
		return invalid(at, "must be an object")
	}
	w.rest = w.rest[1:]
	seen := map[string]bool{}
	for w.next() != '}' {
		var name string
		if err := json.Unmarshal(w.take(), &name); err != nil {
			return err
		}
		place := strings.TrimPrefix(at+"."+name, ".")
		if name == "" {
			place = strings.TrimPrefix(at+`.""`, ".")
		}
		if seen[name] {
			return invalid(place, "is there twice")
		}
		seen[name] = true
		t, known := fields[name]
		switch {
		case every != nil:
			t = every
		case !known:
			return invalid(place, "is unknown; use "+strings.Join(sortedNames(fields), ", "))
		}
		if err := w.value(t, place); err != nil {
			return err
		}
	}
	w.rest = w.rest[1:]
	return nil
}

func (w *walker) array(first byte, elem reflect.Type, at string) error {
	if first != '[' {
		return invalid(at, "must be a list")
	}
	w.rest = w.rest[1:]
	for i := 0; w.next() != ']'; i++ {
		if err := w.value(elem, at+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	w.rest = w.rest[1:]
	return nil
}

// scalar takes a value that must be of the kind that its first byte told.
func (w *walker) scalar(ok bool, at, want string) ([]byte, error) {
	if !ok {
		return nil, invalid(at, "must be "+want)
	}
	return w.take(), nil
}

func number(text string, t reflect.Type, at string) error {
	var err error
	switch t.Kind() { //nolint:exhaustive // the rest is whole numbers with a sign
	case reflect.Float64:
		_, err = strconv.ParseFloat(text, 64)
	case reflect.Uint16:
		_, err = strconv.ParseUint(text, 10, t.Bits())
	default:
		_, err = strconv.ParseInt(text, 10, t.Bits())
	}
	if errors.Is(err, strconv.ErrRange) || err != nil && strings.HasPrefix(text, "-") && t.Kind() == reflect.Uint16 {
		return invalid(at, cut(text)+" is out of range")
	}
	if err != nil {
		return invalid(at, cut(text)+" is not a whole number")
	}
	return nil
}

// cut keeps a hostile number from filling the message.
func cut(s string) string { return s[:min(len(s), 40)] }

func invalid(at, what string) error {
	if at == "" {
		return cove.Errorf(cove.Invalid, "the body %s", what)
	}
	return cove.InvalidField(cutPlace(at), "%s", what)
}

func cutPlace(at string) string {
	if len(at) > 200 {
		return at[:200] + "…"
	}
	return at
}

// fieldsOf returns the JSON names of a struct with their types; those of an
// embedded struct count as its own.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "-" {
			fields[name] = f.Type
		}
	}
	return fields
}

func sortedNames(fields map[string]reflect.Type) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
