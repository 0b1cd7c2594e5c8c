//go:build !lean

package intake

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"

	"github.com/cove-sandbox/cove"
)

// maxFormHead bounds the header of a part of a form, with what is read ahead.
const maxFormHead = 32 << 10

// Form reads the parts of a multipart form. Only the header of one part is in memory
// at a time, and it has a bound.
type Form struct {
	parts *multipart.Reader
	guard *guarded
}

// NewForm returns the form that r is.
func NewForm(r io.Reader, boundary string) *Form {
	guard := &guarded{r: r, mark: []byte("--" + boundary + "--")}
	return &Form{parts: multipart.NewReader(guard, boundary), guard: guard}
}

// Next returns the next part, or io.EOF behind the last boundary. A body that ends
// before it is io.ErrUnexpectedEOF.
func (f *Form) Next() (*multipart.Part, error) {
	f.guard.most = maxFormHead
	part, err := f.parts.NextRawPart()
	f.guard.most = 0
	if errors.Is(err, io.EOF) {
		if f.guard.whole {
			return nil, io.EOF
		}
		return nil, io.ErrUnexpectedEOF
	}
	return part, err
}

// guarded is the body of a form. While the reader of the form looks for the next
// part, it gives no more than most bytes; 0 means that it does not look. That
// reader takes the end of a body for the end of the form, also behind half a
// header, so the last boundary is looked for here.
type guarded struct {
	r     io.Reader
	most  int64
	mark  []byte // the last boundary
	tail  []byte // the bytes before, in which it may begin
	whole bool   // it was there
}

// Read implements [io.Reader].
func (g *guarded) Read(p []byte) (int, error) {
	if g.most == 1 {
		return 0, cove.Errorf(cove.Invalid, "the header of a part of the form is longer than %d bytes", maxFormHead).Reason(ReasonTooLarge)
	}
	if g.most > 0 {
		p = p[:min(int64(len(p)), g.most-1)]
	}
	n, err := g.r.Read(p)
	if g.most > 0 {
		g.most -= int64(n)
	}
	seen := append(g.tail, p[:n]...)
	g.whole = g.whole || bytes.Contains(seen, g.mark)
	g.tail = append(g.tail[:0], seen[max(0, len(seen)-len(g.mark)+1):]...)
	return n, err
}
