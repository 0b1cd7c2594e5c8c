package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

// check walks data beside the type it is meant for. The standard decoder would
// take "Command" for "command" and the second of two equal names, and cannot
// say where an unknown name was.
func check[T any](data []byte) error {
	w := walker{json.NewDecoder(bytes.NewReader(data))}
	w.dec.UseNumber()
	if err := w.value(reflect.TypeFor[T](), ""); err != nil {
		return notJSON(err)
	}
	if _, err := w.dec.Token(); !errors.Is(err, io.EOF) {
		return cove.Errorf(cove.Invalid, "there is more after the JSON value; send one value")
	}
	return nil
}

func notJSON(err error) error {
	if ours, ok := errors.AsType[*cove.Error](err); ok {
		return ours
	}
	if at, ok := errors.AsType[*json.SyntaxError](err); ok {
		return cove.Wrap(cove.Invalid, err, "the body is not JSON: %s, at byte %d", at.Error(), at.Offset)
	}
	return cove.Wrap(cove.Invalid, err, "the body is not JSON: it ends too early")
}

type walker struct{ dec *json.Decoder }

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// whole reports whether a value of type t is read by its own method, or is
// bytes, so that nothing below it has a name to check.
func whole(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || reflect.PointerTo(t).Implements(unmarshaler) ||
		t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func (w walker) value(t reflect.Type, at string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if whole(t) {
		return w.opaque(t, at)
	}
	token, err := w.dec.Token()
	if err != nil || token == nil {
		return err
	}
	switch t.Kind() { //nolint:exhaustive // the forms of this package hold no other kinds
	case reflect.Struct:
		return w.object(token, fieldsOf(t), nil, at)
	case reflect.Map:
		return w.object(token, nil, t.Elem(), at)
	case reflect.Slice:
		return w.array(token, t.Elem(), at)
	case reflect.String:
		return fits[string](token, at, "text in quotes")
	case reflect.Bool:
		return fits[bool](token, at, "true or false")
	default:
		return number(token, t, at)
	}
}

func (w walker) opaque(t reflect.Type, at string) error {
	var raw json.RawMessage
	if err := w.dec.Decode(&raw); err != nil {
		return err
	}
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

// object reads what follows the opening brace. Either the names are fixed, or
// any name will do and all values are of one type.
func (w walker) object(token json.Token, fields map[string]reflect.Type, every reflect.Type, at string) error {
	if token != json.Delim('{') {
		return invalid(at, "must be an object")
	}
	seen := map[string]bool{}
	for w.dec.More() {
		token, err := w.dec.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // between braces the decoder gives no other
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
	_, err := w.dec.Token()
	return err
}

func (w walker) array(token json.Token, elem reflect.Type, at string) error {
	if token != json.Delim('[') {
		return invalid(at, "must be a list")
	}
	for i := 0; w.dec.More(); i++ {
		if err := w.value(elem, at+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

func fits[T any](token json.Token, at, want string) error {
	if _, ok := token.(T); !ok {
		return invalid(at, "must be "+want)
	}
	return nil
}

func number(token json.Token, t reflect.Type, at string) error {
	n, ok := token.(json.Number)
	if !ok {
		return invalid(at, "must be a number")
	}
	var err error
	switch t.Kind() { //nolint:exhaustive // the rest is whole numbers with a sign
	case reflect.Float64:
		_, err = n.Float64()
	case reflect.Uint16:
		_, err = strconv.ParseUint(n.String(), 10, t.Bits())
	default:
		_, err = strconv.ParseInt(n.String(), 10, t.Bits())
	}
	if errors.Is(err, strconv.ErrRange) || err != nil && strings.HasPrefix(n.String(), "-") && t.Kind() == reflect.Uint16 {
		return invalid(at, cut(n.String())+" is out of range")
	}
	if err != nil {
		return invalid(at, cut(n.String())+" is not a whole number")
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
