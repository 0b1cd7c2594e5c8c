package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/cove-sandbox/cove"
)

// Get implements cove.Archives. The stream is fetched as the caller reads, until
// ctx ends; it stays whole when the archive is replaced or deleted meanwhile. One
// that is not what Put stored is Unavailable, here or instead of its last piece:
// who does not read to the end does not know that it is right.
func (a *Archives) Get(ctx context.Context, id cove.ID) (io.ReadCloser, error) {
	name, err := a.begin(ctx, id)
	if err != nil {
		return nil, err
	}
	ref, ok, err := a.refer(ctx, name)
	switch {
	case errors.Is(err, errMissing):
		return nil, cove.Errorf(cove.NotFound, "there is no archive of %s", id)
	case err != nil:
		return nil, err
	case !ok:
		return nil, damaged(id, "its reference cannot be read")
	case ref.of != "" && ref.of != id:
		return nil, damaged(id, "its reference is that of session "+string(ref.of))
	}
	r, size, err := a.objects.get(ctx, ref.blob.path())
	switch {
	case errors.Is(err, errMissing):
		return nil, damaged(id, "its files are not there")
	case err != nil:
		return nil, err
	case size != ref.size:
		return nil, errors.Join(damaged(id, "its length is not right"), r.Close())
	}
	return &verified{r: r, id: id, left: size, want: ref.blob.digest, sum: sha256.New(), about: a.objects.about()}, nil
}

// verified reads a stream and compares its digest before it gives the last piece.
type verified struct {
	r     io.ReadCloser
	id    cove.ID
	left  int64
	want  string
	sum   hash.Hash
	about string
	err   error
}

func (v *verified) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.r.Read(p[:min(int64(len(p)), v.left)])
	v.sum.Write(p[:n])
	v.left -= int64(n)
	switch {
	case v.left == 0 && hex.EncodeToString(v.sum.Sum(nil)) != v.want:
		n, v.err = 0, damaged(v.id, "its digest is not right")
	case v.left == 0:
		v.err = io.EOF
	case err == io.EOF: // a wrapped one is a connection that broke
		v.err = damaged(v.id, "it ends too early")
	case err != nil:
		v.err = fault(v.about, err)
	}
	return n, v.err
}

func (v *verified) Close() error { return v.r.Close() }

func damaged(id cove.ID, how string) error {
	return cove.Errorf(cove.Unavailable, "the archive of %s is damaged: %s", id, how).
		Remedy("put back a good copy from a backup of the archives, or close the session")
}
