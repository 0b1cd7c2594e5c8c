package engine

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"

	"github.com/cove-sandbox/cove"
)

// restoreEnlarged starts a session whose saved files take more than its workspace may
// have: an older build saved them, or the bounds of another provider or disk are softer.
// Files that were saved can always be read. The workspace of this start has as much room
// as they take, and no more. The caller's sandbox was too small, and is gone.
func (e *Engine) restoreEnlarged(ctx context.Context, l *lease, provider cove.Provider, full error) (cove.Sandbox, error) {
	need, err := e.archiveNeeds(ctx, l.view())
	if err != nil {
		return nil, err
	}
	for range 2 {
		s := l.view()
		asked, w := s.Spec.Workspace, enlarged(s.Spec.Workspace, need)
		s.Spec.Workspace = w
		if w.Kind != cove.WorkspaceDisk && s.Spec.Resources.Memory > 0 {
			s.Spec.Resources.Memory += w.Size - asked.Size // programs have as much as before
		}
		sandbox, err := e.makeSandbox(ctx, l, provider, s)
		if err != nil {
			return nil, cove.Wrap(cove.CodeOf(err), errors.Join(err, full),
				"the saved files of the session take %s in %d files, its workspace has %s in %d files, and there is no larger one: %s",
				need.Size, need.Files, asked.Size, asked.Files, cove.MessageOf(err)).Remedy("try again, or ask the operator for a server with more memory")
		}
		if full = e.restore(ctx, sandbox, s); full == nil {
			l.change(func(r *cove.Session) { r.Enlarged = w })
			e.cfg.Logger.WarnContext(ctx, "the saved files of a session take more than its workspace may have; it was started with room for them",
				sessionAttr(s.ID), slog.Int64("bytes", int64(w.Size)), slog.Int64("files", w.Files))
			return sandbox, nil
		}
		e.destroy(ctx, sandbox)
		if cove.ReasonOf(full) != cove.ReasonWorkspaceFull {
			break
		}
		// What a file system takes for itself is not known here.
		need = cove.Workspace{Size: need.Size + need.Size/8 + cove.MiB, Files: need.Files + need.Files/8 + 16}
	}
	return nil, full
}

// enlarged is a workspace with room for what is needed.
func enlarged(w, need cove.Workspace) cove.Workspace {
	w.Size = max(w.Size, need.Size)
	if w.Files > 0 || need.Files > usualFiles {
		w.Files = max(w.Files, need.Files)
	}
	return w
}

// What files take where they are restored.
const (
	pageBytes  = 4 * cove.KiB
	shortLink  = 128     // a longer one takes a page
	usualFiles = 100_000 // that a workspace takes whose spec names none
)

// archiveNeeds returns how many bytes and files the saved files of a session take.
func (e *Engine) archiveNeeds(ctx context.Context, s *cove.Session) (need cove.Workspace, err error) {
	r, err := e.archivesOf(s).Get(ctx, s.ID)
	if err != nil {
		return need, unreadable(err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	stream := &counting{r: r}
	in := tar.NewReader(stream)
	began := cove.Bytes(-1) // where the content of a file with holes begins in the stream
	for {
		h, err := in.Next()
		if began >= 0 {
			need.Size += (stream.n - began) / pageBytes * pageBytes // the rest is the header that follows
			began = -1
		}
		if errors.Is(err, io.EOF) {
			return need, nil
		}
		if err != nil {
			return need, unreadable(err)
		}
		need.Files++
		for key, value := range h.PAXRecords {
			if strings.HasPrefix(key, "SCHILY.xattr.") { // the kernel counts them as parts of files
				need.Files += 1 + int64(len(key)+len(value))/1024
			}
		}
		switch {
		case h.Typeflag == tar.TypeReg && hollow(h) > 0, h.Typeflag == tar.TypeGNUSparse:
			began = stream.n
		case h.Typeflag == tar.TypeReg:
			need.Size += (cove.Bytes(h.Size) + pageBytes - 1) / pageBytes * pageBytes
		case h.Typeflag == tar.TypeSymlink && len(h.Linkname) >= shortLink:
			need.Size += pageBytes
		}
	}
}

// counting counts the bytes of a stream.
type counting struct {
	r io.Reader
	n cove.Bytes
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += cove.Bytes(n)
	return n, err
}

// beginsTooLarge says of which field of a spec it is that the files do not fit that the
// sandbox was to begin with. A provider that said so itself knows more.
func beginsTooLarge(err error, spec cove.Spec) error {
	if cove.ReasonOf(err) != cove.ReasonWorkspaceFull || strings.HasPrefix(cove.MessageOf(err), "workspace.") {
		return err
	}
	return cove.Wrap(cove.Exhausted, err, "workspace.size_mb: the session would begin with more than the %s in %d files that its workspace takes",
		spec.Workspace.Size, spec.Workspace.Files).
		Reason(cove.ReasonWorkspaceFull).With("field", "workspace.size_mb").Remedy("ask for a larger workspace, with more bytes and more files")
}
