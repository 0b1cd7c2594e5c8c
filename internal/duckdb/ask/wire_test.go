package ask_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

func TestFramesFollowEachOther(t *testing.T) {
	sent := []ask.Request{
		{ID: 1, Verb: ask.VerbOpen, Open: &ask.Open{Memory: 1 << 30, Threads: 2}},
		{ID: 2, Verb: ask.VerbQuery, Query: &ask.Query{SQL: "SELECT 'ü'", Schema: "shop", MaxRows: 1, MaxBytes: 10}},
	}
	var b bytes.Buffer
	for _, r := range sent {
		if err := ask.Write(&b, r); err != nil {
			t.Fatal(err)
		}
	}
	r := iotest.OneByteReader(&b)
	for _, want := range sent {
		var got ask.Request
		if err := ask.Read(r, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if err := ask.Read(r, &ask.Request{}); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
}

func TestBadFrames(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no length":     {"{\"id\": 1}", "not its length"},
		"a sign":        {"-0000002{}", "not its length"},
		"too large":     {"99999999{}", "larger than"},
		"cut in head":   {"000", "unexpected EOF"},
		"cut in body":   {"00000004{}", "unexpected EOF"},
		"no JSON":       {"00000002}{", "not the message"},
		"another shape": {"00000002[]", "not the message"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ask.Read(strings.NewReader(c.text), &ask.Answer{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if err := ask.Read(iotest.ErrReader(io.ErrClosedPipe), &ask.Answer{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a broken stream is %v", err)
	}
	if err := ask.Read(io.MultiReader(strings.NewReader("00000004{"), iotest.ErrReader(io.ErrClosedPipe)), &ask.Answer{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a stream that breaks within a frame is %v", err)
	}
}

func TestWriteIsOneCallOrNone(t *testing.T) {
	var w calls
	if err := ask.Write(&w, ask.Answer{ID: 1}); err != nil || w != 1 {
		t.Errorf("%d calls, %v", w, err)
	}
	w = 0
	if err := ask.Write(&w, strings.Repeat("x", ask.MaxFrame)); !errors.Is(err, ask.ErrTooLarge) || w != 0 {
		t.Errorf("%d calls, %v", w, err)
	}
	if err := ask.Write(&w, func() {}); err == nil || w != 0 {
		t.Errorf("%d calls, %v", w, err)
	}
}

type calls int

func (c *calls) Write(p []byte) (int, error) {
	*c++
	return len(p), nil
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("00000002{}"))
	f.Add([]byte(`00000053{"id":1,"verb":"query","query":{"sql":"SELECT 1"}}`))
	f.Add([]byte("99999999"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var r ask.Request
		if ask.Read(bytes.NewReader(b), &r) == nil {
			_ = r.Check()
		}
	})
}
