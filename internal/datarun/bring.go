package datarun

import (
	"context"
	"fmt"
	"os"
	"path"
	"sync"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
)

// bring makes the files be where a place can read them: they are mounted, or are
// copied where the provider mounts nothing, or in a session, which was made before.
// The files of a session itself are there, and get the stamp of what they are now.
func (t *task) bring(ctx context.Context, place cove.RunSandbox, list sources) error {
	for _, s := range list {
		var err error
		switch {
		case s.set == "":
			err = stamp(ctx, place, s)
		case !place.Mounted:
			err = t.send(ctx, place, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stamp looks at a file of a session.
func stamp(ctx context.Context, place cove.RunSandbox, s *source) error {
	info, err := place.Files().Stat(ctx, s.inside)
	switch {
	case cove.CodeOf(err) == cove.NotFound:
		return invalid("there is no file %.200q in the session", s.File)
	case err != nil:
		return invalid("the file %.200q in the session: %s", s.File, cove.MessageOf(err))
	case !info.Mode.IsRegular():
		return invalid("%.200q in the session is no file, or a link", s.File)
	case info.Size == 0:
		return invalid("%.200s is empty", s.File)
	}
	s.Size, s.Stamp = info.Size, fmt.Sprintf("%d.%d", info.Size, info.Modified.UnixNano())
	return nil
}

// sent is the name under which a place keeps which files it got.
const sent = "datarun files"

// send copies a file of a dataset into a place, once.
func (t *task) send(ctx context.Context, place cove.RunSandbox, s *source) error {
	if s.bounded && t.q.Request.Session != "" {
		why := &cove.Refusal{Rule: ruleColumns, Word: s.String(), Reason: "this key sees some columns of " + s.String() + " only, so that the file cannot go into a session"}
		t.decision = &cove.RunDecision{Refusal: why}
		return refused(cove.RunSQLPolicy, why)
	}
	kept, _ := place.Keep.LoadOrStore(sent, &sync.Map{})
	done, ok := kept.(*sync.Map)
	if !ok {
		return cove.Errorf(cove.Internal, "something else is kept of the place as %q", sent)
	}
	s.inside = path.Join(duckdb.PutPath, "data", s.set, s.Stamp, path.Base(s.inside))
	if _, there := done.Load(s.inside); there {
		return nil
	}
	f, err := s.open()
	if err != nil {
		return invalid("%s cannot be read: %v", s, err)
	}
	defer func() { _ = f.Close() }()
	if err := duckdb.Send(ctx, place.Sandbox, f, s.inside); err != nil {
		return err
	}
	done.Store(s.inside, true)
	return nil
}

// open opens the file on the host. No link leads out of the directory of a dataset.
func (s *source) open() (*os.File, error) {
	if s.Source != "" {
		return os.Open(s.Source)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.Open(s.File)
}
