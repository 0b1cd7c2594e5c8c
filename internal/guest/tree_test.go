//go:build linux

package guest_test

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// record is one record of a stream.
type record struct {
	Kind protocol.RecordKind
	Body []byte
}

// treeOf is an agent whose only tree has these records.
func treeOf(t *testing.T, records ...record) *guest.Conn {
	t.Helper()
	return lying(t, false, func(l liar, m *protocol.Message) {
		_ = l.link.Send(&protocol.Message{Kind: protocol.KindReply, ID: m.ID, Body: protocol.Reply{}.Encode()})
		out := m.Streams[0].File("tree")
		w := protocol.NewRecordWriter(out)
		for _, r := range records {
			_ = w.Write(r.Kind, r.Body)
		}
		_ = w.End()
		_ = out.Close()
	})
}

func aFile(size int64) record {
	return record{protocol.RecordFile, protocol.Info{Path: "f", Size: size, Mode: unix.S_IFREG | 0o644}.Encode()}
}

func attr(name, value string) record {
	return record{protocol.RecordAttr, protocol.Attr{Name: name, Value: value}.Encode()}
}

func parts(list ...protocol.Part) record {
	return record{protocol.RecordParts, protocol.Parts(list).Encode()}
}

func TestLiesAboutTrees(t *testing.T) {
	data := record{protocol.RecordData, []byte("data")}
	many := []record{aFile(1 << 50)}
	for range protocol.MaxParts/protocol.PartsPerPage + 1 {
		many = append(many, parts(make(protocol.Parts, protocol.PartsPerPage)...))
	}
	large := []record{aFile(0)}
	for range protocol.MaxAttrs/protocol.MaxAttr + 1 {
		large = append(large, attr("user.x", strings.Repeat("v", protocol.MaxAttr)))
	}
	for name, records := range map[string][]record{
		"an attribute of nothing":      {attr("user.x", "")},
		"an attribute after the data":  {aFile(4), data, attr("user.x", "")},
		"an attribute of the system":   {aFile(0), attr("security.x", "")},
		"an attribute of nonsense":     {aFile(0), {protocol.RecordAttr, []byte{9}}},
		"attributes without end":       large,
		"parts of nothing":             {parts()},
		"parts of nonsense":            {aFile(0), {protocol.RecordParts, []byte{9}}},
		"parts beyond the end":         {aFile(10), parts(protocol.Part{Offset: 8, Length: 4}), data},
		"parts without order":          {aFile(100), parts(protocol.Part{Offset: 8, Length: 4}, protocol.Part{Offset: 4, Length: 4}), data},
		"parts without end":            many,
		"more data than parts":         {aFile(100), parts(protocol.Part{Offset: 8, Length: 3}), data},
		"a hard link that leaves":      {{protocol.RecordFile, protocol.Info{Path: "f", Mode: unix.S_IFREG, Link: "../x", Hard: true}.Encode()}},
		"data of what is a hard link":  {{protocol.RecordFile, protocol.Info{Path: "f", Mode: unix.S_IFREG, Size: 4, Link: "x", Hard: true}.Encode()}, data},
		"data of what is a named pipe": {{protocol.RecordFile, protocol.Info{Path: "f", Mode: unix.S_IFIFO, Size: 4}.Encode()}, data},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := treeOf(t, records...).Files().Archive(t.Context(), ".")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			if n, err := io.Copy(io.Discard, r); cove.CodeOf(err) != cove.Unavailable && cove.CodeOf(err) != cove.Invalid {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
}

// TestPartsInTar: archive/tar reads files with holes of ours, also a short one.
func TestPartsInTar(t *testing.T) {
	old := record{protocol.RecordFile, protocol.Info{Path: "d/näme", Size: 5000, Mode: unix.S_IFREG | 0o4400, Modified: -1_500_000_000}.Encode()}
	c := treeOf(t, old, attr("user.x", "v"), parts(protocol.Part{Offset: 1000, Length: 3}, protocol.Part{Offset: 4990, Length: 10}),
		record{protocol.RecordData, []byte("midend")}, aFile(3), record{protocol.RecordData, []byte("abc")})
	r, err := c.Files().Archive(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	in := tar.NewReader(r)
	h, err := in.Next()
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(in)
	want := make([]byte, 5000)
	copy(want[1000:], "mid")
	copy(want[4990:], "end")
	if err != nil || !bytes.Equal(body, want) || h.Name != "d/näme" || h.Mode != 0o400 || h.ModTime.UnixNano() != -1_500_000_000 ||
		h.PAXRecords["COVE.mode"] != "4400" || h.PAXRecords["SCHILY.xattr.user.x"] != "v" {
		t.Errorf("%+v, %d bytes, %v", h, len(body), err)
	}
	if h, err = in.Next(); err != nil || h.Name != "f" {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestAnOlderAgent gets what it knows, and no more.
func TestAnOlderAgent(t *testing.T) {
	c := treeOf(t, record{protocol.RecordFile, protocol.Info{Path: "f", Size: 200_000, Mode: unix.S_IFREG | 0o4400}.Encode()},
		attr("user.x", "v"), parts(protocol.Part{Offset: 100_000, Length: 3}), record{protocol.RecordData, []byte("mid")})
	r, err := c.Files().Archive(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	expanded := make([]byte, 200_000)
	copy(expanded[100_000:], "mid")
	for version, want := range map[uint64]received{
		protocol.Oldest: {[]protocol.RecordKind{protocol.RecordFile, protocol.RecordData, protocol.RecordEnd}, string(expanded), unix.S_IFREG | 0o600},
		protocol.Whole: {
			[]protocol.RecordKind{protocol.RecordFile, protocol.RecordAttr, protocol.RecordParts, protocol.RecordData, protocol.RecordEnd},
			"mid", unix.S_IFREG | 0o4400,
		},
	} {
		got := make(chan received, 1)
		c := lyingAs(t, version, false, func(l liar, m *protocol.Message) {
			in := m.Streams[0].File("tree")
			got <- receive(t, protocol.NewRecordReader(in))
			_ = in.Close()
			_ = l.link.Send(&protocol.Message{Kind: protocol.KindReply, ID: m.ID, Body: protocol.Reply{}.Encode()})
		})
		if err := c.Files().Unpack(t.Context(), ".", bytes.NewReader(whole)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, <-got); d != "" {
			t.Errorf("version %d: %s", version, d)
		}
	}
}

// received is what an agent was sent.
type received struct {
	Kinds   []protocol.RecordKind // without repetitions
	Content string
	Mode    uint32
}

func receive(t *testing.T, in *protocol.RecordReader) (r received) {
	for {
		kind, b, err := in.Next()
		if err != nil {
			t.Error(err)
			return r
		}
		if n := len(r.Kinds); n == 0 || r.Kinds[n-1] != kind {
			r.Kinds = append(r.Kinds, kind)
		}
		switch kind { //nolint:exhaustive // the others are only counted
		case protocol.RecordFile:
			i, err := protocol.DecodeInfo(b)
			if err != nil {
				t.Error(err)
			}
			r.Mode = i.Mode
		case protocol.RecordData:
			r.Content += string(b)
		case protocol.RecordEnd:
			return r
		}
	}
}

// TestHolesThatAreNone: lists of parts that nobody can have meant.
func TestHolesThatAreNone(t *testing.T) {
	c := connect(t, place{})
	r, err := treeOf(t, aFile(10), parts(protocol.Part{Offset: 3, Length: 4}), record{protocol.RecordData, []byte("data")}).Files().Archive(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	good, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	const list = "2\n3\n4\n10\n0\n"
	for name, change := range map[string][2]string{
		"no number":        {list, "x\n3\n4\n10\n0\n"},
		"too many":         {list, "9\n3\n4\n10\n0\n"},
		"fewer than none":  {list, "-\n3\n4\n10\n0\n"},
		"without order":    {list, "2\n7\n4\n06\n1\n"},
		"beyond the end":   {list, "2\n8\n4\n10\n0\n"},
		"of other lengths": {list, "2\n3\n3\n10\n0\n"},
		"no size":          {"realsize=10", "realsize=x0"},
		"a negative size":  {"realsize=10", "realsize=-1"},
		"a bad name":       {"sparse.name=f", "sparse.name=/"},
	} {
		bad := bytes.Replace(good, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(bad, good) {
			t.Fatalf("%s changes nothing", name)
		}
		wants(t, cove.Invalid, c.Files().Unpack(t.Context(), "bad", bytes.NewReader(bad)), name)
	}
	if err := c.Files().Unpack(t.Context(), "good", bytes.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	if text, err := content(t, c, "good/f"); text != "\x00\x00\x00data\x00\x00\x00" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for n := 1; n < len(good)-1024-508; n += 100 {
		wants(t, cove.Invalid, c.Files().Unpack(t.Context(), "cut", bytes.NewReader(good[:n])), "a part of it")
	}
}
