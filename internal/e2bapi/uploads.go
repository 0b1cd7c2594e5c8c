package e2bapi

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/cove-sandbox/cove"
)

// uploadID names what the token of an upload is for: one file of one build.
func uploadID(build, hash string) cove.ID { return cove.ID(build + ":" + hash) }

const uploadRoute = "PUT /templates/{id}/upload/{build}/{hash}"

// upload takes the files of a step, for the caller that the token in the link names.
func (h *Handler) upload() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := h.resume(w, r)
		caller, ok := h.callerOf(r.URL.Query().Get("token"), kindUpload, uploadID(r.PathValue("build"), r.PathValue("hash")))
		if !ok {
			c.act(uploadRoute, cove.Principal{}, nil, cove.Errorf(cove.Unauthenticated, "the token in this link is not one for these files").
				Remedy("ask for a new link with GET /templates/{id}/files/{hash}"), nil)
			return
		}
		who, done, err := h.cfg.Key(r.Context(), caller)
		c.act(uploadRoute, who, done, err, (*call).takeUpload)
	})
}

func (c *call) takeUpload() error {
	if err := c.mayBuild(); err != nil {
		return err
	}
	id, hash := c.r.PathValue("build"), c.r.PathValue("hash")
	return c.atBuild(func() error { return c.keepUpload(id, hash) })
}

// keepUpload keeps the files of a step.
func (c *call) keepUpload(id, hash string) error {
	one := c.h.builds.open(id)
	if one == nil || one.name != c.r.PathValue("id") || one.tenant != c.who.Tenant {
		return cove.Errorf(cove.NotFound, "the build does not wait for files")
	}
	f, err := os.CreateTemp("", "cove-build-")
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "the files have no place")
	}
	kept := keptFile{f, &c.h.builds, one}
	b := c.upload()
	n, err := io.Copy(struct{ io.Writer }{kept}, io.LimitReader(b, int64(maxUpload)+1)) // not by ReadFrom of the file
	if n > int64(maxUpload) {
		err = cove.Errorf(cove.Invalid, "the file has more than %s", maxUpload).Remedy("have a step of the build fetch it")
	}
	err = b.settle(errors.Join(err, f.Close()))
	if err == nil && !c.h.builds.put(one, hash, kept) {
		err = cove.Errorf(cove.Exhausted, "the build takes no more files: it has %d, or has begun", maxUploads).Remedy("begin a build with fewer COPY steps")
	}
	if err != nil {
		kept.discard(f.Name(), n)
		if _, ok := errors.AsType[*cove.Error](err); !ok {
			err = cove.Wrap(cove.Invalid, err, "the file did not arrive whole; send it again")
		}
		return err
	}
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// put gives a build a file, in the place of an earlier one of this hash, and reports
// whether the build still waits for files.
func (b *builds) put(one *build, hash string, f keptFile) bool {
	b.mu.Lock()
	old := one.files[hash]
	ok := b.all[one.id] == one && one.status == statusWaits && (old != "" || len(one.files) < maxUploads)
	if ok {
		one.files[hash] = f.Name()
	}
	b.mu.Unlock()
	if info, err := os.Stat(old); ok && err == nil {
		f.discard(old, info.Size())
	}
	return ok
}

// keep counts n more bytes of files for a build, unless its tenant has too many; n may be
// negative.
func (b *builds) keep(one *build, n cove.Bytes) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := n
	for _, other := range b.all {
		if other.tenant == one.tenant {
			sum += other.bytes
		}
	}
	if n > 0 && sum > b.most {
		return cove.Errorf(cove.Exhausted, "the files that this tenant sent for template builds are more than %s", b.most).
			Remedy("start the builds that wait, or have their steps fetch large files")
	}
	one.bytes = max(0, one.bytes+n)
	return nil
}

// keptFile is a file that is being sent for a build.
type keptFile struct {
	*os.File

	builds *builds
	one    *build
}

// Write implements [io.Writer].
func (f keptFile) Write(p []byte) (int, error) {
	if err := f.builds.keep(f.one, cove.Bytes(len(p))); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// discard removes a file that the build does not have.
func (f keptFile) discard(name string, size int64) {
	_ = os.Remove(name) // no build needs it
	_ = f.builds.keep(f.one, -cove.Bytes(size))
}
