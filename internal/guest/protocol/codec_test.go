//go:build linux

package protocol_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// codec is one type with both of its functions.
type codec struct {
	encode func() []byte
	decode func([]byte) (any, error)
	value  any
}

func of[T interface{ Encode() []byte }](v T, decode func([]byte) (T, error)) codec {
	return codec{v.Encode, func(b []byte) (any, error) { return decode(b) }, v}
}

func codecs() map[string]codec {
	return map[string]codec{
		"reply":    of(protocol.Reply{Errno: 2, Reason: protocol.ReasonExec, Text: "x", Body: []byte("b")}, protocol.DecodeReply),
		"greeting": of(protocol.Greeting{Version: 1, PID: 7, Proc: true}, protocol.DecodeGreeting),
		"start":    of(protocol.Start{Argv: []string{"a", ""}, Env: []string{"B=c"}, Dir: "/d", Stdio: protocol.Stdin | protocol.Stderr, Cols: 80, Rows: 24}, protocol.DecodeStart),
		"listed":   of(protocol.Start{Argv: []string{"a"}, Env: []string{}, Stdio: protocol.Stdin, Programs: &protocol.Programs{Names: []string{"cat"}, Helpers: []string{"/usr/lib/git-core"}, Offline: true}}, protocol.DecodeStart),
		"hold":     of(protocol.Hold{Start: protocol.Start{Argv: []string{"a"}, Env: []string{}, Keep: "k"}, Note: []byte("\x00n"), Most: 1 << 24}, protocol.DecodeHold),
		"listen":   of(protocol.Listen{Ports: []uint16{80, 65535}, Names: true}, protocol.DecodeListen),
		"accepted": of(protocol.Accepted{Address: [4]byte{127, 64, 0, 255}, Port: 443, Names: true}, protocol.DecodeAccepted),
		"query":    of(protocol.Query{Address: [4]byte{127, 0, 0, 1}, Port: 40000, Packet: "\x00q"}, protocol.DecodeQuery),
		"bound":    of(protocol.Bound{Memory: 1 << 40}, protocol.DecodeBound),
		"excess":   of(protocol.Excess{Kind: protocol.Sockets, Count: 1 << 40, Most: 8192}, protocol.DecodeExcess),
		"starved":  of(protocol.Exited{Status: 9, Starved: true}, protocol.DecodeExited),
		"exited":   of(protocol.Exited{Status: 0x8b, CPU: 1 << 40, MaxRSS: 12}, protocol.DecodeExited),
		"poke":     of(protocol.Poke{Program: 1 << 60, Signal: 64, Cols: 1, Rows: 65535}, protocol.DecodePoke),
		"file":     of(protocol.File{Name: "/a\xff", To: "b", Offset: 1 << 62, Length: 3, Mode: 0o777, Depth: 32, Port: 8080}, protocol.DecodeFile),
		"usage":    of(protocol.Usage{CPU: -1, PIDs: 2, Disk: 3, Files: -1 << 63}, protocol.DecodeUsage),
		"info":     of(protocol.Info{Path: "p", Size: 1, Mode: 0o100644, Modified: -5, Link: "l", Hard: true}, protocol.DecodeInfo),
		"attr":     of(protocol.Attr{Name: "user.a", Value: "\x00v"}, protocol.DecodeAttr),
		"tag":      of(protocol.Tag{Name: "/f", Attrs: []protocol.Attr{{Name: "user.a", Value: "v"}, {Name: "user.b"}}}, protocol.DecodeTag),
		"parts":    of(protocol.Parts{{Offset: 0, Length: 1}, {Offset: 1 << 50, Length: 1 << 40}}, protocol.DecodeParts),
		"change":   of(protocol.Change{Kind: protocol.Removed, Path: "/x"}, protocol.DecodeChange),
		"move":     of(protocol.Change{Kind: protocol.Moved, Path: "/x"}, protocol.DecodeChange),
		"chmod":    of(protocol.Change{Kind: protocol.Attributes, Path: "/x"}, protocol.DecodeChange),
	}
}

func TestRoundTrips(t *testing.T) {
	for name, c := range codecs() {
		b := c.encode()
		got, err := c.decode(b)
		if d := cmp.Diff(c.value, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
		for n := range b {
			if name == "reply" && n >= 4 {
				break // its body has any length
			}
			if _, err := c.decode(b[:n]); !errors.Is(err, protocol.ErrMalformed) {
				t.Errorf("%s: %d of %d bytes give %v", name, n, len(b), err)
			}
		}
		if name != "reply" {
			if _, err := c.decode(append(b, 0)); !errors.Is(err, protocol.ErrMalformed) {
				t.Errorf("%s: a byte too many gives %v", name, err)
			}
		}
	}
}

// An entry of an agent before version 5 is an info alone.
func TestEntries(t *testing.T) {
	want := protocol.Entry{Info: protocol.Info{Path: "p", Size: 1, Mode: 0o100644, Link: "l"}, UID: 1000, GID: 1 << 31, Attrs: []protocol.Attr{{Name: "user.a", Value: "v"}}}
	b := want.Encode()
	got, err := protocol.DecodeEntry(b)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	old := want.Info.Encode()
	got, err = protocol.DecodeEntry(old)
	if d := cmp.Diff(protocol.Entry{Info: want.Info, UID: -1, GID: -1}, got); d != "" || err != nil {
		t.Errorf("an old one: %v\n%s", err, d)
	}
	for n := range b {
		if _, err := protocol.DecodeEntry(b[:n]); n != len(old) && !errors.Is(err, protocol.ErrMalformed) {
			t.Errorf("%d of %d bytes give %v", n, len(b), err)
		}
	}
}

func TestMalformed(t *testing.T) {
	many := protocol.Tag{Attrs: slices.Repeat([]protocol.Attr{{Name: "user.a", Value: strings.Repeat("x", 1<<10)}}, 9)}
	for name, err := range map[string]error{
		"no name": func() error {
			_, err := protocol.DecodeHold(protocol.Hold{Start: protocol.Start{Argv: []string{"a"}}}.Encode())
			return err
		}(),
		"long number":    func() error { _, err := protocol.DecodeExited([]byte{0x80, 0x00, 0, 0}); return err }(),
		"large status":   func() error { _, err := protocol.DecodeExited([]byte{0xff, 0xff, 0xff, 0x7f, 0, 0}); return err }(),
		"no program":     func() error { _, err := protocol.DecodeStart(protocol.Start{}.Encode()); return err }(),
		"many strings":   func() error { _, err := protocol.DecodeStart([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}); return err }(),
		"long string":    func() error { _, err := protocol.DecodeStart([]byte{1, 0xff, 0x7f, 'x'}); return err }(),
		"truth":          func() error { _, err := protocol.DecodeGreeting([]byte{1, 2, 2}); return err }(),
		"negative range": func() error { _, err := protocol.DecodeFile(protocol.File{Offset: -1}.Encode()); return err }(),
		"negative size":  func() error { _, err := protocol.DecodeInfo(protocol.Info{Size: -1}.Encode()); return err }(),
		"many bytes":     func() error { _, err := protocol.DecodeTag(many.Encode()); return err }(),
		"an odd owner":   func() error { _, err := protocol.DecodeEntry(protocol.Entry{UID: -2}.Encode()); return err }(),
		"no change":      func() error { _, err := protocol.DecodeChange(protocol.Change{}.Encode()); return err }(),
	} {
		if !errors.Is(err, protocol.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecords(t *testing.T) {
	var buf bytes.Buffer
	w := protocol.NewRecordWriter(&buf)
	text := strings.Repeat("x", 3*protocol.MaxRecord+1)
	for _, err := range []error{w.Copy(strings.NewReader(text), 1<<40), w.Copy(strings.NewReader("abc"), 2), w.Write(protocol.RecordFile, []byte("f")), w.End()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	whole := bytes.Clone(buf.Bytes())
	r := protocol.NewRecordReader(&buf)
	var got strings.Builder
	for {
		kind, b, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if kind == protocol.RecordEnd {
			break
		}
		got.WriteString(string(b))
	}
	if got.String() != text+"abf" {
		t.Errorf("%d bytes came back", len(got.String()))
	}
	r = protocol.NewRecordReader(bytes.NewReader(whole[:len(whole)-3]))
	var err error
	for err == nil {
		_, _, err = r.Next()
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a stream that is cut gives %v", err)
	}
	fails := errors.New("no")
	if err := protocol.NewRecordWriter(&buf).Copy(failing{fails}, 5); !errors.Is(err, fails) {
		t.Errorf("a reader that fails gives %v", err)
	}
	bad := protocol.NewRecordWriter(failing{fails})
	var stream *protocol.WriteError
	if err := bad.Copy(strings.NewReader(text), 1<<40); !errors.As(err, &stream) || !errors.Is(err, fails) || stream.Error() != "stream: no" {
		t.Errorf("a stream that fails gives %v", err)
	}
	if err := bad.End(); err == nil {
		t.Error("the end was written to a stream that fails")
	}
	if err := bad.Fail(protocol.Reply{}); err == nil {
		t.Error("a failure was written to a stream that fails")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// FuzzDecode gives every decoder anything: it must not panic, and what it takes
// must be what it writes.
func FuzzDecode(f *testing.F) {
	for _, c := range codecs() {
		f.Add(c.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, c := range codecs() {
			v, err := c.decode(b)
			if err != nil {
				continue
			}
			again := v.(interface{ Encode() []byte }).Encode()
			if !bytes.Equal(again, b) {
				t.Errorf("%s: %x decodes to %+v, which is %x", name, b, v, again)
			}
		}
	})
}

// FuzzRecords gives the reader of records anything.
func FuzzRecords(f *testing.F) {
	f.Add([]byte{1, 1, 'x', 4, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := protocol.NewRecordReader(bytes.NewReader(b))
		for total := 0; ; {
			_, p, err := r.Next()
			if err != nil {
				return
			}
			if total += len(p) + 2; total > len(b) {
				t.Fatalf("%d bytes of records in %d", total, len(b))
			}
		}
	})
}

func TestPartsOfAFile(t *testing.T) {
	for _, c := range []struct {
		parts protocol.Parts
		total int64
		ok    bool
	}{
		{nil, 0, true},
		{protocol.Parts{{Offset: 0, Length: 100}}, 100, true},
		{protocol.Parts{{Offset: 10, Length: 5}, {Offset: 15, Length: 0}, {Offset: 90, Length: 10}}, 15, true},
		{protocol.Parts{{Offset: 90, Length: 11}}, 0, false},
		{protocol.Parts{{Offset: 101, Length: 0}}, 0, false},
		{protocol.Parts{{Offset: -1, Length: 2}}, 0, false},
		{protocol.Parts{{Offset: 1, Length: -1}}, 0, false},
		{protocol.Parts{{Offset: 10, Length: 5}, {Offset: 14, Length: 1}}, 0, false},
		{protocol.Parts{{Offset: 1, Length: 1<<63 - 1}}, 0, false},
	} {
		if total, ok := c.parts.Total(100); total != c.total || ok != c.ok {
			t.Errorf("%v: %d, %t", c.parts, total, ok)
		}
	}
}
