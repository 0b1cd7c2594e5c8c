package e2bapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// line is one line of an answer, as far as tests look at it.
type line struct {
	Type  string `json:"type"`
	Text  string `json:"text,omitempty"`
	Main  bool   `json:"is_main_result,omitempty"`
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
	Count int    `json:"execution_count,omitempty"`
}

// linesOf reads lines; all of them must be in ASCII.
func linesOf(t *testing.T, text string) []line {
	t.Helper()
	if strings.IndexFunc(text, func(r rune) bool { return r > 127 }) >= 0 {
		t.Errorf("not in ASCII: %q", text)
	}
	var all []line
	for one := range strings.Lines(text) {
		var l line
		if err := json.Unmarshal([]byte(one), &l); err != nil {
			t.Fatalf("%q: %v", one, err)
		}
		all = append(all, l)
	}
	return all
}

// TestRunesOverChunks: a character comes whole, wherever output was cut.
func TestRunesOverChunks(t *testing.T) {
	const text = "aüé€𝄞\n\"\\ \u2028z"
	for _, step := range []int{1, 2, 3, 5, len(text)} {
		w := httptest.NewRecorder()
		e2bapi.Lines(w, httptest.NewRequest(http.MethodPost, "/execute", nil), func(chunk func(cove.Chunk)) {
			for i := 0; i < len(text); i += step {
				for _, s := range []cove.Stream{cove.Stdout, cove.Stderr} {
					chunk(cove.Chunk{Stream: s, Data: []byte(text[i:min(i+step, len(text))])})
				}
			}
		})
		got := map[string]string{}
		for _, l := range linesOf(t, w.Body.String()) {
			got[l.Type] += l.Text
		}
		if diff := cmp.Diff(map[string]string{"stdout": text, "stderr": text}, got); diff != "" {
			t.Errorf("in steps of %d (-want +got):\n%s", step, diff)
		}
	}
}

func TestBytesThatAreNoText(t *testing.T) {
	for name, c := range map[string]struct {
		chunks []string
		want   []line
	}{
		"cut for good":   {[]string{"a\xe2\x82"}, []line{{Type: "stdout", Text: "a"}, {Type: "stdout", Text: "\ufffd"}}},
		"never a rune":   {[]string{"\xff\xfe", "b"}, []line{{Type: "stdout", Text: "\ufffd"}, {Type: "stdout", Text: "b"}}},
		"goes on wrong":  {[]string{"\xe2", "b"}, []line{{Type: "stdout", Text: "\ufffdb"}}},
		"nothing":        {[]string{""}, nil},
		"continuations":  {[]string{"\x80\x80\x80\x80"}, []line{{Type: "stdout", Text: "\ufffd"}}},
		"long":           {[]string{strings.Repeat("é", 20<<10)}, []line{{Type: "stdout", Text: strings.Repeat("é", 16<<10)}, {Type: "stdout", Text: strings.Repeat("é", 4<<10)}}},
		"long, cut even": {[]string{"x" + strings.Repeat("é", 16<<10)}, []line{{Type: "stdout", Text: "x" + strings.Repeat("é", 16<<10-1)}, {Type: "stdout", Text: "é"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			e2bapi.Lines(w, httptest.NewRequest(http.MethodPost, "/execute", nil), func(chunk func(cove.Chunk)) {
				for _, data := range c.chunks {
					chunk(cove.Chunk{Stream: cove.Stdout, Data: []byte(data)})
				}
			})
			if diff := cmp.Diff(c.want, linesOf(t, w.Body.String())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLinesKeepalive: a silent run says every five seconds that it lives.
func TestLinesKeepalive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		e2bapi.Lines(w, httptest.NewRequest(http.MethodPost, "/execute", nil), func(chunk func(cove.Chunk)) {
			<-time.After(12 * time.Second)
			chunk(cove.Chunk{Stream: cove.Stdout, Data: []byte("late")})
		})
		want := []line{{Type: "keepalive"}, {Type: "keepalive"}, {Type: "stdout", Text: "late"}}
		if diff := cmp.Diff(want, linesOf(t, w.Body.String())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if !w.Flushed {
			t.Error("the head was not sent at once")
		}
	})
}

func TestValues(t *testing.T) {
	for name, c := range map[string]struct {
		value cove.Rich
		main  bool
		want  string
	}{
		"text":         {cove.Rich{"text/plain": "43"}, true, `{"type":"result","is_main_result":true,"text":"43"}`},
		"quotes":       {cove.Rich{"text/plain": `'it\'s'`}, false, `{"type":"result","is_main_result":false,"text":"it\\'s"}`},
		"double":       {cove.Rich{"text/plain": `"it's"`}, false, `{"type":"result","is_main_result":false,"text":"it's"}`},
		"one quote":    {cove.Rich{"text/plain": `'`}, false, `{"type":"result","is_main_result":false,"text":"'"}`},
		"no text":      {cove.Rich{"text/plain": ""}, false, `{"type":"result","is_main_result":false,"text":""}`},
		"beyond ASCII": {cove.Rich{"text/html": "<b>ü𝄞"}, false, `{"type":"result","is_main_result":false,"html":"<b>\u00fc\ud834\udd1e"}`},
		"all": {
			cove.Rich{
				"text/markdown": "m", "image/svg+xml": "s", "image/png": "p", "image/jpeg": "j", "application/pdf": "d", "text/latex": "l",
				"application/json": `{"a":[1]}`, "application/javascript": "x", "e2b/chart": `{"type":"line"}`, "e2b/data": `{"a":[1]}`, "x/y": "z",
			},
			false,
			`{"type":"result","is_main_result":false,"markdown":"m","svg":"s","png":"p","jpeg":"j","pdf":"d","latex":"l","json":{"a":[1]},"javascript":"x","data":{"a":[1]},"chart":{"type":"line"},"extra":{"x/y":"z"}}`,
		},
		"no JSON": {cove.Rich{"application/json": "{"}, false, `{"type":"result","is_main_result":false,"extra":{"application/json":"{"}}`},
		"frame": {
			cove.Rich{"text/html": "<table>", "application/json": `{"columns": ["b", "a", 1], "rows": [[1, "x", null], [2, "ü", 3]], "row_count": 2, "truncated": false}`},
			true,
			`{"type":"result","is_main_result":true,"html":"<table>","data":{"b":[1,2],"a":["x","\u00fc"],"1":[null,3]}}`,
		},
		"empty frame": {
			cove.Rich{"application/json": `{"columns":[],"rows":[],"row_count":0,"truncated":false}`}, false, `{"type":"result","is_main_result":false,"data":{}}`,
		},
		"part of a frame": {
			cove.Rich{"application/json": `{"columns":["a"],"rows":[[1]],"row_count":2,"truncated":true}`},
			false,
			`{"type":"result","is_main_result":false,"json":{"columns":["a"],"rows":[[1]],"row_count":2,"truncated":true}}`,
		},
		"names twice": {
			cove.Rich{"application/json": `{"columns":["1",1],"rows":[],"row_count":0,"truncated":false}`},
			false,
			`{"type":"result","is_main_result":false,"json":{"columns":["1",1],"rows":[],"row_count":0,"truncated":false}}`,
		},
		"rows of other lengths": {
			cove.Rich{"application/json": `{"columns":["a"],"rows":[[]],"row_count":1,"truncated":false}`},
			false,
			`{"type":"result","is_main_result":false,"json":{"columns":["a"],"rows":[[]],"row_count":1,"truncated":false}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := e2bapi.LineText(c.value, c.main)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want+"\n", got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
