package wire_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// filled returns a T in which every field has a value of its own, so that one
// that gets lost on the way, or lands in another's place, is seen. A field that
// is added to the language is filled too, and fails the round trip until the
// wire knows it.
func filled[T any]() T {
	var v T
	f := filler{}
	f.fill(reflect.ValueOf(&v).Elem())
	return v
}

type filler struct{ n int }

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, f.n, 5000, time.UTC)))
		return
	case time.Duration:
		v.SetInt(int64(time.Duration(f.n)*time.Second + 250*time.Millisecond))
		return
	case cove.Bytes:
		v.SetInt(int64(f.n)*int64(cove.MiB) + 1<<19)
		return
	case json.RawMessage:
		v.SetBytes(fmt.Appendf(nil, `{"n":%d}`, f.n))
		return
	case fs.FileMode:
		v.Set(reflect.ValueOf(fs.ModeDir | fs.ModeSetgid | 0o750))
		return
	}
	switch v.Kind() { //nolint:exhaustive // the language has no other kinds
	case reflect.String:
		v.SetString(fmt.Sprintf("%s-%d", v.Type().Name(), f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint16:
		v.SetUint(uint64(f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(fmt.Appendf(nil, "bytes %d", f.n))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(elem)
		v.SetMapIndex(key, elem)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i))
			}
		}
	}
}

func TestFilledLeavesNothingOut(t *testing.T) {
	s := reflect.ValueOf(filled[cove.Session]())
	for i := range s.NumField() {
		if s.Field(i).IsZero() {
			t.Errorf("Session.%s is not filled", s.Type().Field(i).Name)
		}
	}
}
