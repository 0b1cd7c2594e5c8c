package console

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
)

// Bounds on an archive: more is not what web/ is built into.
const (
	mostFiles = 256
	mostBytes = 16 << 20 // of one file, packed or not
)

// index is the page itself; all other files are named by a hash of what is in them.
const index = "index.html"

// policy lets the page run its own scripts and talk to its own server, and nothing
// else. Styles may stand in the page, because the terminal and the editor write
// theirs there; frames may hold only what the page itself wrote into them.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; " +
	"font-src 'self'; frame-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// Pages are the files of a console. They are safe for concurrent use.
type Pages struct{ files map[string]file }

type file struct {
	packed []byte
	kind   string
	tag    string
}

// Embedded returns the console that make build put into this program, or nil where
// it put none.
func Embedded() (*Pages, error) {
	if len(image) == 0 {
		return nil, nil //nolint:nilnil // a build need have none
	}
	return read(bytes.NewReader(image))
}

// Open returns the console in an archive, as scripts/web.sh makes it.
func Open(name string) (*Pages, error) {
	f, err := os.Open(name) //nolint:gosec // the operator's own setting
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return read(f)
}

func read(r io.Reader) (*Pages, error) {
	p := &Pages{files: map[string]file{}}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if len(p.files) == mostFiles || h.Size > mostBytes {
			return nil, errors.New("the archive is larger than a console")
		}
		name, packed := strings.CutSuffix(path.Base(h.Name), ".gz")
		kind, known := kinds[path.Ext(name)]
		if !packed || !known {
			return nil, fmt.Errorf("the archive has %.80q, which is no file of a console", h.Name)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("read the archive: %w", err)
		}
		sum := sha256.Sum256(content)
		p.files[name] = file{packed: content, kind: kind, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	if _, ok := p.files[index]; !ok {
		return nil, errors.New("the archive has no " + index)
	}
	return p, nil
}

// Size returns how many bytes a browser fetches for all of it.
func (p *Pages) Size() (all int) {
	for _, f := range p.files {
		all += len(f.packed)
	}
	return all
}

// Serve answers with a file, or with the page itself where name is "", and reports
// whether it is there; if not, nothing was answered.
func (p *Pages) Serve(w http.ResponseWriter, r *http.Request, name string) bool {
	shown := name
	if name == "" {
		shown = index
	}
	f, ok := p.files[shown]
	if !ok || name == index {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Etag", f.tag)
	h.Add("Vary", "Accept-Encoding")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if name == "" {
		h.Set("Cache-Control", "no-cache") // the next build has another one
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Dns-Prefetch-Control", "off") // names in what a sandbox made are not looked up
	} else {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox") // a picture that is opened by itself
	}
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	f.send(w, r)
	return true
}

// send writes the file as it is packed, or unpacked for who cannot unpack it.
func (f file) send(w http.ResponseWriter, r *http.Request) {
	content := f.packed
	if accepts(r) {
		w.Header().Set("Content-Encoding", "gzip")
	} else {
		var err error
		if content, err = unpacked(f.packed); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // the client may be gone
	}
}

// accepts reports whether the client takes gzip.
func accepts(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return !strings.HasPrefix(strings.ReplaceAll(weight, " ", ""), "q=0") || strings.ContainsAny(weight, "123456789")
		}
	}
	return false
}

func unpacked(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err == nil && len(content) > mostBytes {
		err = errors.New("it is larger than a file of a console")
	}
	return content, err
}
