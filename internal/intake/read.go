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
	var pieces [][]byte
	var size int64
	for {
		piece := make([]byte, min(max(size/4, smallPiece), largePiece))
		n, err := b.fill(ctx, r, piece)
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
func (b *Body) fill(ctx context.Context, r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var got int
		got, err = r.Read(p[n:])
		if over := b.Take(ctx, got); over != nil {
			return n, over
		}
		n += got
	}
	return n, err
}

// TooLarge is the error of a body over its limit.
func TooLarge(limit int64) error {
	return cove.Errorf(cove.Invalid, "the body is longer than %d bytes, the most that this route takes", limit).Reason(ReasonTooLarge).
		Remedy("send large content as a file")
}
