package wire

import (
	"encoding/json"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// Encode writes a request. The standard encoder would put another character
// into the place of bytes that are not UTF-8, and so ask for something else:
// here such a text is Invalid with the name of its field. So is a number that
// JSON has not, such as infinity.
func Encode(v any) ([]byte, error) {
	if at := notUTF8(reflect.ValueOf(v), ""); at != "" {
		return nil, cove.InvalidField(at, "is not UTF-8, which a remote platform needs; write the bytes to a file first")
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, cove.Wrap(cove.Invalid, err, "the request has a value that JSON cannot hold")
	}
	return data, nil
}

// notUTF8 returns the place of the first text in v that is not UTF-8.
func notUTF8(v reflect.Value, at string) string {
	switch v.Kind() { //nolint:exhaustive // nothing else holds texts
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return at
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return notUTF8(v.Elem(), at)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return "" // travels in base64
		}
		for _, elem := range v.Seq2() {
			if found := notUTF8(elem, at); found != "" {
				return found
			}
		}
	case reflect.Map:
		for key, elem := range v.Seq2() {
			if notUTF8(key, at) != "" || notUTF8(elem, at) != "" {
				return at
			}
		}
	case reflect.Struct:
		return notUTF8InStruct(v, at)
	}
	return ""
}

func notUTF8InStruct(v reflect.Value, at string) string {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		place := at
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			place = strings.TrimPrefix(at+"."+name, ".")
		}
		if found := notUTF8(v.Field(i), place); found != "" {
			return found
		}
	}
	return ""
}
