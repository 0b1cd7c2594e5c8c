package client_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/client"
)

func parse(text string, limit int) (list []client.Frame, err error) {
	for f, e := range client.Frames(strings.NewReader(text), limit) {
		if e != nil {
			return list, e
		}
		list = append(list, f)
	}
	return list, nil
}

func TestFrames(t *testing.T) {
	for text, want := range map[string][]client.Frame{
		"":                                       nil,
		"\n\n\n":                                 nil,
		": a comment\n\n":                        nil,
		"event: x\n\n":                           nil, // without data it is none
		"data: a\n\n":                            {{"", "a"}},
		"event: x\ndata: a\n\n":                  {{"x", "a"}},
		"data:a\nevent:x\n\n":                    {{"x", "a"}},
		"data:  a\n\n":                           {{"", " a"}},
		"data\n\n":                               {{"", ""}},
		"data: a\ndata: b\n\n":                   {{"", "a\nb"}},
		"data: a: b\n\n":                         {{"", "a: b"}},
		"id: 7\nretry: 5\nother: x\ndata: a\n\n": {{"", "a"}},
		"event: x\r\ndata: a\r\n\r\n":            {{"x", "a"}},
		"event: x\rdata: a\r\r\n":                {{"x", "a"}},
		"data: a\n\ndata: b\n\n":                 {{"", "a"}, {"", "b"}},
		"event: x\ndata: a\n\ndata: b\n\n":       {{"x", "a"}, {"", "b"}},
		"data: a\n\ndata: half":                  {{"", "a"}},
		"data: a\n\ndata: half\n":                {{"", "a"}},
		": beat\n\ndata: a\n: beat\n\n":          {{"", "a"}},
	} {
		got, err := parse(text, 1000)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	}
}

func TestFramesAreBounded(t *testing.T) {
	if _, err := parse("data: "+strings.Repeat("x", 200_000)+"\n\n", 300_000); err != nil {
		t.Errorf("a long line: %v", err)
	}
	for name, text := range map[string]string{
		"line":  "data: " + strings.Repeat("x", 200_000) + "\n\n",
		"event": strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 200) + "\n",
		"name":  "event: " + strings.Repeat("x", 200_000),
	} {
		if _, err := parse(text, 100_000); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

func TestFramesOfABrokenReader(t *testing.T) {
	broken := errors.New("reset")
	r := io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken))
	var got []string
	var last error
	for f, err := range client.Frames(r, 1000) {
		if last = err; err == nil {
			got = append(got, f.Data)
		}
	}
	if len(got) != 1 || !errors.Is(last, broken) {
		t.Errorf("%v %v", got, last)
	}
	for range client.Frames(strings.NewReader("data: a\n\ndata: b\n\n"), 1000) {
		break
	}
}

// FuzzFrames: whatever a server sends, reading it ends within its bounds, and
// what is read does not depend on how it comes in pieces.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{"", "data: a\n\n", "event: x\r\ndata: a\r\n\r\n", "id\n:\n\ndata\rdata:\r\n\n", "data: \xff\x00\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const limit = 64
		whole, err := parse(text, limit)
		for _, f := range whole {
			if len(f.Data) > limit || len(f.Name) > limit {
				t.Fatalf("%q", f)
			}
		}
		var pieces []client.Frame
		var second error
		for f, e := range client.Frames(iotest.OneByteReader(strings.NewReader(text)), limit) {
			if second = e; e == nil {
				pieces = append(pieces, f)
			}
		}
		if diff := cmp.Diff(whole, pieces); diff != "" || (err == nil) != (second == nil) {
			t.Fatalf("%v %v\n%s", err, second, diff)
		}
	})
}
