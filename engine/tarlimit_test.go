package engine

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cove-sandbox/cove"
)

// tarOf makes a tar of headers, each with as many bytes as its size says.
func tarOf(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// oldSparse is the header of a file that is one hole, as old GNU tars write it.
func oldSparse(size int64) []byte {
	whole := make([]byte, 3*512)
	b := whole[:512]
	copy(b, "hole")
	copy(b[100:], "0000644\x00")
	copy(b[124:], "00000000000\x00") // stored
	copy(b[136:], "00000000000\x00")
	b[156] = tar.TypeGNUSparse
	copy(b[257:], "ustar  \x00")
	for i, n := 0, size; i < 11; i, n = i+1, n>>3 {
		b[483+10-i] = byte('0' + n&7)
	}
	copy(b[386:], b[483:494]) // one empty piece at the end
	copy(b[398:], "00000000000")
	sum := 0
	copy(b[148:], "        ")
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], []byte{'0', '0' + byte(sum>>12&7), '0' + byte(sum>>9&7), '0' + byte(sum>>6&7), '0' + byte(sum>>3&7), '0' + byte(sum&7), 0, ' '})
	return whole
}

func TestCapTar(t *testing.T) {
	const most = 1000
	whole := tarOf(t, tar.Header{Name: "a", Size: most}, tar.Header{Name: "d/", Typeflag: tar.TypeDir}, tar.Header{Name: "b", Size: 1})
	for name, c := range map[string]struct {
		data   []byte
		reason string
		code   cove.Code
	}{
		"at the limit": {data: whole},
		"one over":     {data: tarOf(t, tar.Header{Name: "a", Size: 3}, tar.Header{Name: "b", Size: most + 1}), reason: cove.ReasonFileTooLarge, code: cove.Invalid},
		"one over with a long name": {
			data: tarOf(t, tar.Header{Name: strings.Repeat("x", 300), Size: most + 1}), reason: cove.ReasonFileTooLarge, code: cove.Invalid,
		},
		"a hole at the limit": {data: oldSparse(most)},
		"a hole that is over": {data: oldSparse(most + 1), reason: cove.ReasonFileTooLarge, code: cove.Invalid},
		"another kind of hole at the limit": {
			data: tarOf(t, tar.Header{Name: "h", Size: 1, PAXRecords: map[string]string{"X.sparse.realsize": "1000"}}),
		},
		"another kind of hole that is over": {
			data: tarOf(t, tar.Header{Name: "h", Size: 1, PAXRecords: map[string]string{"X.sparse.realsize": "1001"}}), reason: cove.ReasonFileTooLarge, code: cove.Invalid,
		},
		"a hole without a size": {
			data: tarOf(t, tar.Header{Name: "h", Size: 1, PAXRecords: map[string]string{"X.sparse.realsize": "much"}}), reason: cove.ReasonFileTooLarge, code: cove.Invalid,
		},
		"no tar":    {data: []byte(strings.Repeat("no tar ", 200)), code: cove.Invalid},
		"cut short": {data: whole[:700]},
		"nothing":   {},
	} {
		for way, r := range map[string]io.Reader{"at once": bytes.NewReader(c.data), "by bytes": iotest.OneByteReader(bytes.NewReader(c.data))} {
			bounded := capTar(r, most)
			got, err := io.ReadAll(bounded)
			if c.code == "" && (err != nil || !bytes.Equal(got, c.data)) {
				t.Errorf("%s, %s: %d of %d bytes, %v", name, way, len(got), len(c.data), err)
			}
			if c.code != "" && (!errors.Is(err, c.code) || cove.ReasonOf(err) != c.reason) {
				t.Errorf("%s, %s: %v", name, way, err)
			}
			if _, again := bounded.Read(make([]byte, 1)); c.code != "" && !errors.Is(again, c.code) {
				t.Errorf("%s, %s: read on after the refusal, with %v", name, way, again)
			}
			bounded.stop()
			if n, err := bounded.Read(make([]byte, 1)); n > 0 || err == nil {
				t.Errorf("%s, %s: %d bytes after the end, %v", name, way, n, err)
			}
		}
	}
	broken := errors.New("the source broke")
	bounded := capTar(io.MultiReader(bytes.NewReader(whole[:700]), iotest.ErrReader(broken)), most)
	defer bounded.stop()
	if _, err := io.ReadAll(bounded); !errors.Is(err, broken) {
		t.Errorf("a source that breaks: %v", err)
	}
}

// FuzzCapTar: whatever is passed on holds no file over the limit, and is what
// came.
func FuzzCapTar(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: "a", Size: 3, PAXRecords: map[string]string{"COVE.x": "y"}})
	_, _ = io.WriteString(w, "abc")
	_ = w.Close()
	f.Add(b.Bytes())
	f.Add(oldSparse(101))
	f.Add(oldSparse(1 << 40))
	f.Add([]byte(strings.Repeat("no tar ", 200)))
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 100
		bounded := capTar(bytes.NewReader(data), most)
		defer bounded.stop()
		in := tar.NewReader(bounded)
		for {
			h, err := in.Next()
			if err != nil {
				return
			}
			if h.Typeflag == tar.TypeReg && h.Size > most {
				t.Fatalf("a file of %d bytes went through", h.Size)
			}
		}
	})
}
