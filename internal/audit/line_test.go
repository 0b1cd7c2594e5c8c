package audit_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/audit"
)

// TestEncoderKnowsEveryField fails when a field is added to cove.Event and
// forgotten in the hand-written encoder.
func TestEncoderKnowsEveryField(t *testing.T) {
	var e cove.Event
	v := reflect.ValueOf(&e).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case time.Time:
			f.Set(reflect.ValueOf(time.Date(2026, 11, 5, 1, 2, 3, 456000, time.UTC)))
		case json.RawMessage:
			f.SetBytes([]byte(`{"a":[1,"b"]}`))
		default:
			if f.CanInt() {
				f.SetInt(int64(i + 1))
			} else {
				f.SetString("v" + string(rune('a'+i)))
			}
		}
	}
	for _, e := range []cove.Event{e, {Seq: 1}} {
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		line := audit.EncodeEvent(&e)
		got, _, found := bytes.Cut(line, []byte(`,"prev":"`))
		if got = append(got, '}'); !found || string(got) != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestLinesComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		want := cove.Event{
			Seq:  rapid.Int64Range(1, 1<<62).Draw(t, "seq"),
			Time: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
			Node: text.Draw(t, "node"), Kind: text.Draw(t, "kind"), Phase: cove.Phase(text.Draw(t, "phase")),
			Principal: text.Draw(t, "principal"), Tenant: text.Draw(t, "tenant"), Session: cove.ID(text.Draw(t, "session")),
			Wall: time.Duration(rapid.Int64().Draw(t, "wall")),
		}
		data, err := json.Marshal(rapid.MapOf(text, text).Draw(t, "data"))
		if err != nil {
			t.Fatal(err)
		}
		want.Data = data
		line := audit.EncodeEvent(&want)
		got, genuine, err := audit.DecodeEvent(line)
		if err != nil || !genuine || !cmp.Equal(want, got) || audit.SeqOf(line) != want.Seq {
			t.Fatalf("%s: genuine %t, %v, %s", line, genuine, err, cmp.Diff(want, got))
		}
	})
}

func FuzzDecodeLine(f *testing.F) {
	e := sample(1)
	e.Seq = 7
	good := audit.EncodeEvent(&e)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte(`{"seq":1,"prev":"0","sum":"0"}`))
	f.Add([]byte(`{"seq":-1`))
	f.Add(bytes.Replace(good, []byte(`"seq":7`), []byte(`"seq":0`), 1))
	f.Add(bytes.Replace(good, []byte(`"data":{`), []byte(`"data":[`), 1))
	f.Add(bytes.Replace(good, []byte(`"kind":"`), []byte("\"kind\":\"\xff"), 1))
	f.Fuzz(func(t *testing.T, line []byte) {
		audit.SeqOf(line)
		e, genuine, err := audit.DecodeEvent(line)
		if err != nil {
			return
		}
		if e.Seq < 1 {
			t.Errorf("accepted number %d", e.Seq)
		}
		// Nobody finds a sum by chance, so what passes is what the encoder wrote.
		if genuine && !bytes.Equal(audit.EncodeEvent(&e), line) {
			t.Errorf("two lines with one sum: %s and %s", line, audit.EncodeEvent(&e))
		}
	})
}
