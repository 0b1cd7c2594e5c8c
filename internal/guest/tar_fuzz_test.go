//go:build linux

package guest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// seedTars are archives as friends and enemies send them.
func seedTars() [][]byte {
	write := func(headers ...tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			_ = w.WriteHeader(&h)
			_, _ = w.Write(make([]byte, h.Size))
		}
		_ = w.Close()
		return b.Bytes()
	}
	return [][]byte{
		write(tar.Header{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o755}, tar.Header{Name: "a/f", Size: 700, Mode: 0o4644}, tar.Header{Name: "a/l", Typeflag: tar.TypeSymlink, Linkname: "../../x"}),
		write(tar.Header{Name: "../out", Size: 1}, tar.Header{Name: "/abs", Size: 1}),
		write(tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}, tar.Header{Name: "dev", Typeflag: tar.TypeChar}),
		write(tar.Header{Name: strings.Repeat("x/", 200) + "f", Size: 3, PAXRecords: map[string]string{"SCHILY.xattr.user.a": "b"}}),
		write(tar.Header{Name: "holes", Size: 512, PAXRecords: map[string]string{
			sparseOurs + sparseMajor: "1", sparseOurs + sparseMinor: "0", sparseOurs + sparseSize: "1099511627776", sparseOurs + sparseName: "../../out",
		}}),
		[]byte("no tar"),
	}
}

// FuzzTar: what the host makes of a tar are records that the agent can read, with
// names that stay in the directory, and no more content than came.
func FuzzTar(f *testing.F) {
	for _, seed := range seedTars() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if through, err := io.ReadAll(&holeReader{r: bytes.NewReader(data)}); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || len(through) != len(data) {
			t.Fatalf("of %d bytes came %d, %v", len(data), len(through), err)
		}
		var sent bytes.Buffer
		w := protocol.NewRecordWriter(&sent)
		files := files{&Conn{version: protocol.Version}}
		in := tar.NewReader(&holeReader{r: bytes.NewReader(data)})
		for {
			h, err := in.Next()
			if err == nil {
				err = files.sendEntry(w, h, in)
			}
			if err != nil {
				break
			}
		}
		_ = w.End()
		checkRecords(t, &sent, len(data))
	})
}

func checkRecords(t *testing.T, sent io.Reader, most int) {
	t.Helper()
	r := protocol.NewRecordReader(sent)
	content := 0
	for {
		kind, b, err := r.Next()
		if err != nil || kind == protocol.RecordEnd {
			break
		}
		if kind == protocol.RecordData {
			content += len(b)
		}
		if kind != protocol.RecordFile {
			continue
		}
		i, err := protocol.DecodeInfo(b)
		if err != nil {
			t.Fatalf("the agent cannot read %x: %v", b, err)
		}
		for _, name := range []string{i.Path, map[bool]string{true: i.Link, false: "."}[i.Hard]} {
			if !filepath.IsLocal(name) || path.Clean(name) != name || strings.ContainsRune(name, 0) {
				t.Fatalf("the name %q goes in", name)
			}
		}
	}
	if content > most {
		t.Fatalf("%d bytes of content came from %d", content, most)
	}
}

// TestSeedTarsAreRefused: an archive that leaves its directory is Invalid, and no fault of ours.
func TestSeedTarsAreRefused(t *testing.T) {
	for i, seed := range seedTars()[1:3] {
		h, err := tar.NewReader(bytes.NewReader(seed)).Next()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entryInfo(h, true); !errors.Is(err, cove.Invalid) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestHolesOfABrokenSource: what the source of an archive says about itself comes
// back as it is, also from within the list of holes.
func TestHolesOfABrokenSource(t *testing.T) {
	seed := seedTars()[4]
	said := cove.Errorf(cove.Invalid, "too large").Reason(cove.ReasonFileTooLarge)
	in := tar.NewReader(&holeReader{r: io.MultiReader(bytes.NewReader(seed[:3*512]), iotest.ErrReader(said))})
	h, err := in.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := contentOf(h, in); cove.ReasonOf(err) != cove.ReasonFileTooLarge {
		t.Errorf("%v", err)
	}
}
