package engine

import (
	"context"
	"io"

	"github.com/cove-sandbox/cove"
)

// What an archive may have beside the content of the files: a header for each,
// with its name, where a link points to and its attributes.
const (
	archiveSpare   = 1 * cove.MiB
	archivePerFile = 16 * cove.KiB
)

// archiveRoom is the most that an archive of a sandbox may have. What a sandbox
// says of itself counts only as far as its limits go.
func archiveRoom(ctx context.Context, sandbox cove.Sandbox, w cove.Workspace) int64 {
	files := w.Files
	if u, err := sandbox.Usage(ctx); err == nil && u.Files >= 0 && (files == 0 || u.Files < files) {
		files = u.Files
	}
	return int64(w.Size + archiveSpare + archivePerFile*cove.Bytes(files))
}

// roomed is a stream that may have so many bytes and no more: what a program
// makes of its files must not fill the disk of the host.
type roomed struct {
	r       io.Reader
	left    int64
	room    cove.Bytes             // of the workspace
	n       cove.Bytes             // that were read
	counted cove.Bytes             // that the tenant has room for already
	grow    func(cove.Bytes) error // asks for more
	err     error                  // that there was more
}

func (s *roomed) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if s.n += cove.Bytes(n); s.n > s.counted {
		if s.err = s.grow(s.n); s.err != nil {
			return 0, s.err
		}
		s.counted = s.n
	}
	if s.left -= int64(n); s.left < 0 {
		s.err = cove.Errorf(cove.Exhausted, "they would take more room in an archive than the workspace of %s may have", s.room).
			Reason(cove.ReasonWorkspaceFull).Remedy("remove large files that are mostly holes (compare ls -ls), and try again")
		return 0, s.err
	}
	return n, err
}
