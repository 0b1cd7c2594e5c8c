package wire_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
	"github.com/cove-sandbox/cove/internal/wire"
)

// form has a field of every kind that the forms of the API have.
type form struct {
	inner

	Text  string             `json:"text,omitempty"`
	Flag  bool               `json:"flag,omitempty"`
	Whole int                `json:"whole,omitempty"`
	Large *int64             `json:"large,omitempty"`
	Small uint16             `json:"small,omitempty"`
	Real  *float64           `json:"real,omitempty"`
	Raw   []byte             `json:"raw,omitempty"`
	List  []inner            `json:"list,omitempty"`
	Names []string           `json:"names,omitempty"`
	Map   map[string]int     `json:"map,omitempty"`
	Deep  *deep              `json:"deep,omitempty"`
	Much  *wire.Quantity     `json:"much,omitempty"`
	When  time.Time          `json:"when,omitzero"`
	Any   any                `json:"any,omitempty"`
	Maps  map[string][]inner `json:"maps,omitempty"`
	No    string             `json:"-"`
}

type inner struct {
	Own string `json:"own,omitempty"`
}

type deep struct {
	Deeper struct {
		Deepest bool `json:"deepest"`
	} `json:"deeper"`
}

func TestDecode(t *testing.T) {
	var want form
	want.Text, want.Flag, want.Whole, want.Large, want.Small, want.Real = "a\u2028", true, -3, new(int64(1<<62)), 65535, new(1.5e3)
	want.Raw, want.List, want.Names, want.Map = []byte{0, 255}, []inner{{"x"}, {}}, []string{}, map[string]int{"A": 1, "a": 2}
	want.Deep, want.Much, want.When = &deep{}, new(wire.Quantity("1g")), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want.Deep.Deeper.Deepest = true
	want.Any, want.Own, want.Maps = map[string]any{"b": []any{1.0}}, "mine", map[string][]inner{"k": {{"y"}}}
	got, err := wire.Decode[form]([]byte(` {"text":"a\u2028","flag":true,"whole":-3,"large":4611686018427387904,"small":65535,"real":1.5e3,
		"raw":"AP8=","list":[{"own":"x"},{}],"names":[],"map":{"A":1,"a":2},"deep":{"deeper":{"deepest":true}},"much":"1g",
		"when":"2026-01-02T03:04:05Z","any":{"b":[1]},"own":"mine","maps":{"k":[{"own":"y"}]}} `))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(form{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDecodeNulls(t *testing.T) {
	got, err := wire.Decode[form]([]byte(`{"text":null,"flag":null,"whole":null,"large":null,"real":null,"raw":null,"list":null,"map":null,"deep":null,"much":null,"when":null,"any":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(form{}, got, cmp.AllowUnexported(form{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDecodeOfEscapes(t *testing.T) {
	got, err := wire.Decode[form]([]byte(`{"text":"\ud83d\ude00 \\ud800 \\\u0041 \ufffd"}`))
	if want := "\U0001F600 \\ud800 \\A \uFFFD"; err != nil || got.Text != want {
		t.Errorf("got %q, %v; want %q", got.Text, err, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{`:                                      "the body is not JSON: it ends too early",
		`{"text":"x"`:                            "the body is not JSON: it ends too early",
		`{"text" "x"}`:                           "the body is not JSON: ",
		`{"text":"x",}`:                          "the body is not JSON: ",
		`{"text":x}`:                             "the body is not JSON: ",
		`{"list":[{]}`:                           "the body is not JSON: ",
		`{"list":[1`:                             "the body is not JSON: it ends too early",
		`{"list":[1]}`:                           "list[0]: must be an object",
		`{"any":}`:                               "the body is not JSON: ",
		`{} x`:                                   "there is more after the JSON value",
		`{}{}`:                                   "there is more after the JSON value",
		`[]`:                                     "the body must be an object",
		` null `:                                 "the body is null",
		`{"text":"\ud800"}`:                      `the body holds \ud800, half of a character`,
		`{"text":"\uDC00x"}`:                     `the body holds \uDC00, half of a character`,
		`{"text":"\ud800\ud800\udc00"}`:          `the body holds \ud800, half of a character`,
		`{"text":"\ud83d\n"}`:                    `the body holds \ud83d, half of a character`,
		`{"any":{"\udfff":1}}`:                   `the body holds \udfff, half of a character`,
		`7`:                                      "the body must be an object",
		"{\"text\":\"\xff\"}":                    "the body is not UTF-8",
		`{"texts":1}`:                            "texts: is unknown; use any, deep, flag, large, list, map, maps, much, names, own, raw, real, small, text, when, whole",
		`{"No":1}`:                               "No: is unknown",
		`{"-":1}`:                                "-: is unknown",
		`{"Text":"x"}`:                           "Text: is unknown",
		`{"":"x"}`:                               "",
		`{"text":"x","text":"x"}`:                "text: is there twice",
		`{"map":{"a":1,"a":2}}`:                  "map.a: is there twice",
		`{"text":1}`:                             "text: must be text in quotes",
		`{"text":{}}`:                            "text: must be text in quotes",
		`{"flag":1}`:                             "flag: must be true or false",
		`{"whole":"1"}`:                          "whole: must be a number",
		`{"whole":1.0}`:                          "whole: 1.0 is not a whole number",
		`{"whole":1e2}`:                          "whole: 1e2 is not a whole number",
		`{"whole":9223372036854775808}`:          "whole: 9223372036854775808 is out of range",
		`{"small":65536}`:                        "small: 65536 is out of range",
		`{"small":-1}`:                           "small: -1 is out of range",
		`{"small":0.5}`:                          "small: 0.5 is not a whole number",
		`{"real":1e999}`:                         "real: 1e999 is out of range",
		`{"real":"1"}`:                           "real: must be a number",
		`{"raw":"%"}`:                            "raw: does not fit",
		`{"raw":[1,2]}`:                          "raw: must be base64 in quotes",
		`{"when":"yesterday"}`:                   "when: does not fit",
		`{"much":{}}`:                            `much: must be text such as "1g" or a number`,
		`{"list":{}}`:                            "list: must be a list",
		`{"list":[{},{"own":2}]}`:                "list[1].own: must be text in quotes",
		`{"names":["a",2]}`:                      "names[1]: must be text in quotes",
		`{"map":[]}`:                             "map: must be an object",
		`{"map":{"a":"b"}}`:                      "map.a: must be a number",
		`{"maps":{"k":[{"other":1}]}}`:           "maps.k[0].other: is unknown",
		`{"deep":{"deeper":{"deepest":1}}}`:      "deep.deeper.deepest: must be true or false",
		`{"deep":{"deeper":{"x":1}}}`:            "deep.deeper.x: is unknown; use deepest",
		`{"` + strings.Repeat("x", 500) + `":1}`: strings.Repeat("x", 200) + "…: is unknown",
		`{"whole":` + strings.Repeat("9", 500) + `}`: "whole: " + strings.Repeat("9", 40) + " is out of range",
	} {
		_, err := wire.Decode[form]([]byte(body))
		if !errors.Is(err, cove.Invalid) || !strings.HasPrefix(cove.MessageOf(err), want) {
			t.Errorf("%.80s: %v\nwant %s", body, err, want)
		}
	}
}

func TestDecodeBounds(t *testing.T) {
	for _, empty := range []string{"", " \n\t "} {
		if got, err := wire.Decode[form]([]byte(empty)); err != nil || got.Text != "" {
			t.Errorf("%q: %v %v", empty, got, err)
		}
	}
	for name, body := range map[string]string{
		"deep":        `{"any":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}",
		"many":        `{"names":[` + strings.Repeat(`"",`, 100_000) + `""]}`,
		"many of any": `{"any":[` + strings.Repeat(`0,`, 100_000) + `0]}`,
	} {
		if _, err := wire.Decode[form]([]byte(body)); !errors.Is(err, cove.Invalid) || cove.ReasonOf(err) != intake.ReasonTooLarge || cove.RemedyOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	longest := `{"names":[` + strings.Repeat(`"",`, 32<<10) + `""]}`
	if got, err := wire.Decode[form]([]byte(longest)); err != nil || len(got.Names) != 32<<10+1 {
		t.Errorf("as many as the longest command has: %d %v", len(got.Names), err)
	}
}

// TestDecodeCopiesTextOnce: beside the text itself a decoded body costs next to
// nothing.
func TestDecodeCopiesTextOnce(t *testing.T) {
	const size = 4 << 20
	body := []byte(`{"text":"` + strings.Repeat("x", size) + `"}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := wire.Decode[form](body); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > size+size/2 {
		t.Errorf("%d bytes were allocated for a text of %d", took, size)
	}
}

// FuzzDecode: whatever comes, it is refused with words or means what the
// encoder writes again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"command":"x"}`, `{"command":["a","b"],"timeout":1.5,"env":{"A":"b"},"tty":{"cols":1,"rows":2}}`, `{"stdin_base64":"AA=="}`,
		`{"max_output":"1g"}`, `{"max_output":7}`, `null`, `[]`, `{"command":{}}`, `{"timeout":1e400}`, "{\"command\":\"\xff\"}", `{"x":`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := wire.Decode[wire.ExecRequest](data)
		if err != nil {
			if !errors.Is(err, cove.Invalid) || len(cove.MessageOf(err)) > 2000 {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := wire.Encode(w)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := wire.Decode[wire.ExecRequest](again); err != nil {
			t.Fatalf("%s: %v", again, err)
		} else if diff := cmp.Diff(w.Command, second.Command); diff != "" && len(w.Command.Argv)+len(w.Command.Line) > 0 {
			t.Fatal(diff)
		}
		_, _ = w.Cove()
	})
}
