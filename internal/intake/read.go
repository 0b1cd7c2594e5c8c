package intake

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/cove-sandbox/cove"
)

// ReasonTooLarge is the reason of a body over a limit.
const ReasonTooLarge = "body_too_large"

// Sizes of the pieces that a body is read in: a quarter of what has arrived, within
// these.
const (
	smallPiece = 4 << 10
	largePiece = 256 << 10
)

// ReadAll reads a body of at most limit bytes and charges it as it arrives.
// announced is its length as far as the client told it, or -1: one that is too long
// is refused before a byte of it is read. Errors of r come back as they are.
func (b *Body) ReadAll(ctx context.Context, r io.Reader, announced, limit int64) ([]byte, error) {
	if announced > limit {
		return nil, TooLarge(limit)
	}
	r = b.Reader(ctx, r)
	var pieces [][]byte
	var size int64
	for {
		piece := make([]byte, min(max(size/4, smallPiece), largePiece))
		n, err := fill(r, piece)
		if size += int64(n); size > limit {
			return nil, TooLarge(limit)
		}
		pieces = append(pieces, piece[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(pieces) == 1 {
		return pieces[0], nil
	}
	return bytes.Join(pieces, nil), nil
}

// fill reads until p is full.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var got int
		got, err = r.Read(p[n:])
		n += got
	}
	return n, err
}

// Reader returns r with what is read of it charged to the body.
func (b *Body) Reader(ctx context.Context, r io.Reader) io.Reader { return charged{ctx, b, r} }

type charged struct {
	ctx  context.Context //nolint:containedctx // of the one request
	body *Body
	from io.Reader
}

// Read implements [io.Reader].
func (c charged) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if over := c.body.Take(c.ctx, n); over != nil {
		return 0, over
	}
	return n, err
}

// TooLarge is the error of a body over its limit.
func TooLarge(limit int64) error {
	return cove.Errorf(cove.Invalid, "the body is longer than %d bytes, the most that this route takes", limit).Reason(ReasonTooLarge).
		Remedy("send large content as a file")
}
