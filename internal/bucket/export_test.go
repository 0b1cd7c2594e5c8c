package bucket

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// Later has the clock of the store be ahead, as if time had passed.
func (a *Archives) Later(by time.Duration) { a.objects = later{a.objects, by} }

type later struct {
	objects
	by time.Duration
}

func (l later) now(ctx context.Context) (time.Time, error) {
	t, err := l.objects.now(ctx)
	return t.Add(l.by), err
}

// list has drafts be as young as they are.
func (l later) list(ctx context.Context, folder string) iter.Seq2[entry, error] {
	if folder != drafts {
		return l.objects.list(ctx, folder)
	}
	return func(yield func(entry, error) bool) {
		for e, err := range l.objects.list(ctx, folder) {
			e.modified = e.modified.Add(l.by)
			if !yield(e, err) {
				return
			}
		}
	}
}

// Impatient has a bucket wait for a server no longer than this, and not ask twice.
func (a *Archives) Impatient(wait time.Duration) {
	s, _ := a.objects.(*s3)
	s.wait, s.pauses = wait, nil
}

// Batch has a sweep judge so many blobs at a time.
func (a *Archives) Batch(n int) { a.batch = n }

// Sign signs a request as one to S3.
func Sign(r *http.Request, accessKey, secretKey, token, region string, now time.Time) {
	signer{accessKey, secretKey, token, region, "s3"}.sign(r, emptyDigest, now)
}

// Address is where the object x of archives at a URL is, and the region.
func Address(rawURL string) (address, region string, err error) {
	p, err := parsePlace(rawURL)
	if err != nil || p.folder != "" {
		return p.folder, "", err
	}
	return p.address("x").String(), p.region, nil
}

// ReadReference reports whether a text is a reference.
func ReadReference(text string) bool {
	_, ok := parseReference(text)
	return ok
}
