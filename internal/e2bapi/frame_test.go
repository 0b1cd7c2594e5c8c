package e2bapi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// framed is a message as the wire has it.
func framed(flags byte, message string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(message)))
	return append(b, message...)
}

func TestFrame(t *testing.T) {
	t.Parallel()
	const most = 64
	for name, tc := range map[string]struct {
		in   []byte
		want string
		code cove.Code // "" is none
		eof  bool
	}{
		"a message":               {in: framed(0, `{"a":1}`), want: `{"a":1}`},
		"an empty one":            {in: framed(0, "")},
		"as long as it may be":    {in: framed(0, strings.Repeat("x", most)), want: strings.Repeat("x", most)},
		"the last":                {in: framed(e2bapi.FlagEnd, `{}`), want: `{}`},
		"nothing":                 {eof: true},
		"half a head":             {in: []byte{0, 0, 0}, code: cove.Invalid},
		"a head alone":            {in: []byte{0, 0, 0, 0, 9}, code: cove.Invalid},
		"half a message":          {in: framed(0, "abcdef")[:8], code: cove.Invalid},
		"too long":                {in: framed(0, strings.Repeat("x", most+1)), code: cove.Exhausted},
		"a length that is a lie":  {in: []byte{0, 0xff, 0xff, 0xff, 0xff, 1}, code: cove.Exhausted},
		"compressed":              {in: framed(e2bapi.FlagCompressed, "x"), code: cove.Unsupported},
		"compressed and the last": {in: framed(e2bapi.FlagCompressed|e2bapi.FlagEnd, "x"), code: cove.Unsupported},
		"flags nobody knows":      {in: framed(0x80, "x"), code: cove.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []io.Reader{bytes.NewReader(tc.in), iotest.OneByteReader(bytes.NewReader(tc.in))} {
				_, got, err := e2bapi.ReadFrame(r, most)
				switch {
				case tc.eof:
					if !errors.Is(err, io.EOF) {
						t.Errorf("the error is %v", err)
					}
				case cove.CodeOf(err) != tc.code:
					t.Errorf("the error is %v", err)
				case err == nil && string(got) != tc.want:
					t.Errorf("the message is %q", got)
				}
			}
		})
	}
}

// A connection that breaks is not the client's mistake.
func TestFrameOfABrokenConnection(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, r := range []io.Reader{
		iotest.ErrReader(broken),
		io.MultiReader(bytes.NewReader([]byte{0, 0, 0, 0, 9, 'x'}), iotest.ErrReader(broken)),
	} {
		if _, _, err := e2bapi.ReadFrame(r, 64); !errors.Is(err, broken) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestFrameThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	if _, err := e2bapi.AppendFrame(nil, 0, func() {}); cove.CodeOf(err) != cove.Internal {
		t.Errorf("the error is %v", err)
	}
}

// FuzzFrame reads frames until there are none: every message is what its head
// says, within the bound, and what is written is read again as it was.
func FuzzFrame(f *testing.F) {
	f.Add([]byte{})
	f.Add(framed(0, `{"process":{"pid":9}}`))
	f.Add(append(framed(0, `{}`), framed(e2bapi.FlagEnd, `{}`)...))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{1, 0, 0, 0, 1, 'x'})
	f.Add([]byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		const most = 1 << 10
		r := bytes.NewReader(in)
		for {
			before := r.Len()
			flags, body, err := e2bapi.ReadFrame(r, most)
			if err != nil {
				if before == 0 && !errors.Is(err, io.EOF) {
					t.Fatalf("the end is %v", err)
				}
				if before > 0 && cove.CodeOf(err) == cove.Internal {
					t.Fatalf("the error is %v", err)
				}
				return
			}
			if len(body) > most || before-r.Len() != 5+len(body) || flags&^e2bapi.FlagEnd != 0 {
				t.Fatalf("flags %#x and %d bytes out of %d", flags, len(body), before-r.Len())
			}
			again, err := e2bapi.AppendFrame(nil, flags, string(body))
			if err != nil {
				t.Fatal(err)
			}
			if f2, _, err := e2bapi.ReadFrame(bytes.NewReader(again), 8*most); err != nil || f2 != flags {
				t.Fatalf("what was written is read as flags %#x, %v", f2, err)
			}
		}
	})
}
