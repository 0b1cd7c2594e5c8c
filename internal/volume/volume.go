package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cove-sandbox/cove"
)

// owner is who sandboxes are, where a provider gives them a user of the host.
const owner = 1000

// Dir is a cove.Folders in a directory. It is safe for concurrent use.
type Dir struct {
	path string
	root *os.Root
}

var _ cove.Folders = (*Dir)(nil)

// Open opens the folders in dir, which is made when it is missing; the directory
// above it must exist. Messages of errors do not name it, here and elsewhere: callers
// have no business with paths of the host.
func Open(dir string) (*Dir, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fault(dir, err)
	}
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real) // providers follow no links
	}
	if err != nil {
		return nil, fault(dir, err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fault(dir, err)
	}
	if err := root.Chmod(".", 0o700); err != nil {
		return nil, errors.Join(fault(dir, err), root.Close())
	}
	return &Dir{path: real, root: root}, nil
}

// Close gives the directory back.
func (d *Dir) Close() error { return d.root.Close() }

// Make implements cove.Folders.
func (d *Dir) Make(ctx context.Context, id cove.ID) error {
	name, err := begin(ctx, id)
	if err != nil {
		return err
	}
	if err := d.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fault(d.path, err)
	}
	if os.Geteuid() == 0 {
		if err := d.root.Chown(name, owner, owner); err != nil {
			return fault(d.path, err)
		}
	}
	if err := d.root.Chmod(name, 0o777); err != nil { // whatever the umask is
		return fault(d.path, err)
	}
	return nil
}

// Path implements cove.Folders.
func (d *Dir) Path(ctx context.Context, id cove.ID) (string, error) {
	name, err := begin(ctx, id)
	if err != nil {
		return "", err
	}
	info, err := d.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return "", missing(id)
	}
	if err != nil {
		return "", fault(d.path, err)
	}
	return filepath.Join(d.path, name), nil
}

// begin is what every call about one folder starts with. Only an id can be in a
// name.
func begin(ctx context.Context, id cove.ID) (name string, err error) {
	if err := ctx.Err(); err != nil {
		return "", cove.Wrap(cove.CodeOf(err), err, "%s", cove.MessageOf(err))
	}
	if !id.Valid() {
		return "", cove.InvalidField("id", "%.40q is not an id", string(id))
	}
	return string(id), nil
}

func missing(id cove.ID) error {
	return cove.Errorf(cove.NotFound, "there is no folder of volume %s", id)
}

// fault turns what the operating system said into an error that says what to do
// about it.
func fault(dir string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return cove.Wrap(cove.CodeOf(err), err, "%s", cove.MessageOf(err))
	}
	if code, words, ok := cove.DiskFault(err); ok {
		return cove.Wrap(code, err, "the volumes cannot be kept: %s", words)
	}
	words := "the log has the cause"
	if errors.Is(err, fs.ErrPermission) {
		words = "something there belongs to somebody else than the user that runs cove"
	}
	return cove.Wrap(cove.Unavailable, errors.Join(errors.New(dir), err), "the folder of volumes in COVE_HOME cannot be used: %s", words)
}
