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
		c.act(uploadRoute, who, done, ofToken(err), (*call).takeUpload)
	})
}

func (c *call) takeUpload() error {
	if err := c.h.cfg.Authorize(c.r.Context(), c.who, "", cove.TemplateBuild); err != nil {
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
	f, err := c.newFile(one)
	if err != nil {
		return err
	}
	b := c.upload()
	n, err := io.Copy(f, io.LimitReader(b, int64(maxUpload)+1))
	if n > int64(maxUpload) {
		err = cove.Errorf(cove.Invalid, "the file has more than %s", maxUpload).Remedy("have a step of the build fetch it")
	}
	err = b.settle(err)
	if err == nil && !c.h.builds.put(one, hash, f) {
		err = cove.Errorf(cove.Exhausted, "the build takes no more files: it has %d, or has begun", maxUploads).Remedy("begin a build with fewer COPY steps")
	}
	if err != nil {
		f.discard()
		return unsent(err)
	}
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// unsent is the error of a file that was not kept.
func unsent(err error) error {
	if _, ok := errors.AsType[*cove.Error](err); ok {
		return err
	}
	if code, words, ok := cove.DiskFault(err); ok {
		return cove.Wrap(code, err, "the file cannot be kept: %s", words).Reason(cove.ReasonDiskReserve).Remedy("have the operator free space in the file system of COVE_HOME")
	}
	return cove.Wrap(cove.Invalid, err, "the file did not arrive whole; send it again")
}

// put gives a build a file, in the place of an earlier one of this hash, and reports
// whether the build still waits for files.
func (b *builds) put(one *build, hash string, f *sentFile) bool {
	b.mu.Lock()
	old := one.files[hash]
	ok := b.all[one.id] == one && one.status == statusWaits && (old != nil || len(one.files) < maxUploads)
	if ok {
		one.files[hash] = f
	}
	b.mu.Unlock()
	if ok && old != nil {
		old.discard()
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

// sentFile is a file that was sent for a build. It has no name on the disk, so that it
// ends with the server.
type sentFile struct {
	file   *os.File
	builds *builds
	one    *build
	room   func() error
	size   cove.Bytes
}

func (c *call) newFile(one *build) (*sentFile, error) {
	f, err := os.CreateTemp(c.h.cfg.Uploads, "cove-build-")
	if err == nil {
		err = os.Remove(f.Name()) //nolint:gosec // it was made here
	}
	if err != nil {
		return nil, unsent(err)
	}
	return &sentFile{file: f, builds: &c.h.builds, one: one, room: c.h.cfg.Room}, nil
}

// Write implements [io.Writer].
func (f *sentFile) Write(p []byte) (int, error) {
	if err := f.room(); err != nil {
		return 0, err
	}
	if err := f.builds.keep(f.one, cove.Bytes(len(p))); err != nil {
		return 0, err
	}
	f.size += cove.Bytes(len(p))
	return f.file.Write(p)
}

// content is what is in the file.
func (f *sentFile) content() io.Reader { return io.NewSectionReader(f.file, 0, int64(f.size)) }

// Close implements [io.Closer].
func (f *sentFile) Close() error { return f.file.Close() }

// discard closes a file that no build has.
func (f *sentFile) discard() {
	_ = f.Close() // nothing reads it
	_ = f.builds.keep(f.one, -f.size)
}
