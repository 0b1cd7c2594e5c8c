package engine

import (
	"archive/tar"
	"errors"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

// tarCapped passes a tar on while a second reader looks at the same bytes: an
// entry that is larger than a file may be ends the stream before anybody gets
// the end of its header. It takes turns with its caller, and nothing runs beside.
type tarCapped struct {
	r    io.Reader
	most cove.Bytes

	mu   sync.Mutex // a provider may still be reading when its call is over
	seen []byte     // guarded by mu; about to be passed on
	end  error      // guarded by mu; after seen
	bad  error      // guarded by mu
	look func() (error, bool)
	quit func()
}

// capTar returns r with a bound on each file in it. The caller stops it when
// the tar is unpacked.
func capTar(r io.Reader, most cove.Bytes) *tarCapped {
	c := &tarCapped{r: r, most: most}
	c.look, c.quit = iter.Pull(c.verdicts)
	return c
}

// Read implements [io.Reader].
func (c *tarCapped) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bad == nil {
		c.seen, c.end = p[:n], err
		c.bad, _ = c.look()
	}
	if c.bad != nil {
		return 0, c.bad
	}
	return n, err
}

func (c *tarCapped) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quit()
	if c.bad == nil {
		c.bad = io.ErrClosedPipe
	}
}

// verdicts yields nil whenever it needs more bytes, and an error for what may
// not be. A tar that breaks off is for the provider to see. One that cannot be
// read cannot be bounded, and is refused.
func (c *tarCapped) verdicts(yield func(error) bool) {
	in := tar.NewReader(readerFunc(func(p []byte) (int, error) {
		for len(c.seen) == 0 {
			if c.end != nil {
				return 0, c.end
			}
			if !yield(nil) {
				return 0, io.EOF
			}
		}
		n := copy(p, c.seen)
		c.seen = c.seen[n:]
		return n, nil
	}))
	for {
		h, err := in.Next()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, c.end):
			return
		default:
			yield(cove.Wrap(cove.Invalid, err, "archive: this is not a tar stream"))
			return
		}
		isFile := h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse || h.Typeflag == tar.TypeCont
		if isFile && (h.Size > int64(c.most) || hollow(h) > int64(c.most)) {
			yield(tooLarge(c.most, "archive: the file %.200q is", h.Name))
			return
		}
	}
}

// hollow is the size that an entry claims to have with its holes, in whatever
// dialect, or 0. A provider may know one that archive/tar does not.
func hollow(h *tar.Header) (size int64) {
	for key, value := range h.PAXRecords {
		if strings.HasSuffix(key, "sparse.realsize") {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				n = math.MaxInt64
			}
			size = max(size, n)
		}
	}
	return size
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
