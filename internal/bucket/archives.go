package bucket

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"time"

	"github.com/cove-sandbox/cove"
)

// Config is what a URL does not say.
type Config struct {
	AccessKey    string // for S3
	SecretKey    string
	SessionToken string // of credentials that end
	// Owner is whose the archives are: nobody else can open them. Nodes that share them
	// name the same one.
	Owner string
	// Scratch is a folder of this node, on a disk: every stream that is stored lies
	// there once, in a file without a name. It is made when it is missing.
	Scratch string
	// Most bounds one stream, below what the store takes; 0 is no other bound.
	Most cove.Bytes
}

// Archives is a cove.Archives that nodes share. It is safe for concurrent use, by
// many processes.
type Archives struct {
	objects objects
	scratch *os.Root
	dir     string // of scratch
	owner   string
	most    int64
	batch   int // how many blobs are judged at a time
}

var _ cove.Archives = (*Archives)(nil)

// Open opens the archives at a URL:
//
//	file:///shared/folder
//	s3://bucket/prefix?endpoint=https://host:port&region=eu&path_style=true
//
// It asks the store, so that what stands in the way is said here. A URL that has no
// such form is Invalid, a store that does not answer or refuses is Unavailable, and
// one that has another owner is Conflict. One that has none gets this one.
func Open(ctx context.Context, rawURL string, cfg Config) (_ *Archives, err error) {
	p, err := parsePlace(rawURL)
	if err != nil {
		return nil, err
	}
	scratch, err := openFolder(cfg.Scratch)
	if err != nil {
		return nil, fault(cfg.Scratch, err)
	}
	a := &Archives{scratch: scratch, dir: cfg.Scratch, owner: cfg.Owner, batch: maxBatch}
	if p.folder != "" {
		a.objects, err = openShared(p.folder)
	} else {
		a.objects, err = openS3(p, cfg)
	}
	if err != nil {
		return nil, errors.Join(err, scratch.Close())
	}
	a.most = a.objects.most()
	if cfg.Most > 0 {
		a.most = min(a.most, int64(cfg.Most))
	}
	if _, err = a.objects.now(ctx); err == nil {
		err = a.claim(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Close gives back what the archives hold on this node. Readers that Get returned
// are the callers' to close.
func (a *Archives) Close() error { return errors.Join(a.objects.close(), a.scratch.Close()) }

// begin is what every call on one archive starts with.
func (a *Archives) begin(ctx context.Context, id cove.ID) (name string, err error) {
	if err := ctx.Err(); err != nil {
		return "", fault("", err)
	}
	if !id.Valid() {
		return "", cove.InvalidField("id", "%.40q is not an id", string(id))
	}
	return sessions + "/" + string(id), nil
}

// Delete implements cove.Archives. The blob stays until Sweep.
func (a *Archives) Delete(ctx context.Context, id cove.ID) error {
	name, err := a.begin(ctx, id)
	if err != nil {
		return err
	}
	return a.objects.delete(ctx, name)
}

// List implements cove.Archives. Ids come in order; what is no archive is passed
// over. The archives of all nodes are in it, and none where they belong to another
// owner by now.
func (a *Archives) List(ctx context.Context) iter.Seq2[cove.ID, error] {
	return func(yield func(cove.ID, error) bool) {
		if err := a.owned(ctx); err != nil {
			yield("", err)
			return
		}
		for e, err := range a.objects.list(ctx, sessions) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield("", fault(a.objects.about(), err))
				return
			}
			if id := cove.ID(e.name); id.Valid() && !yield(id, nil) {
				return
			}
		}
	}
}

// refer reads the reference of a session: errMissing where there is none.
func (a *Archives) refer(ctx context.Context, name string) (_ reference, ok bool, err error) {
	text, err := a.readText(ctx, name)
	if err != nil {
		return reference{}, false, err
	}
	ref, ok := parseReference(text)
	return ref, ok, nil
}

// readText reads a small object: errMissing where there is none.
func (a *Archives) readText(ctx context.Context, name string) (string, error) {
	r, _, err := a.objects.get(ctx, name)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxText))
	if err := errors.Join(err, r.Close()); err != nil {
		return "", fault(a.objects.about(), err)
	}
	return string(text), nil
}

// maxText is longer than any reference, and than what names an owner.
const maxText = 256

// tooOld is how long ago the half hour of a blob began that nobody can begin to
// refer to: the half hour, and more than writeTime after it.
const tooOld = time.Hour
