package rootfs

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/cove-sandbox/cove"
)

// What one tenant may have.
const (
	mostOwned     = 20            // templates
	mostLeft      = 100           // trees of templates that it replaced or deleted, which are still in use
	mostOwnedSize = 20 * cove.GiB // in all of them
)

// The ends of names of files with manifests.
const (
	manifestEnd = ".json"
	leftEnd     = ".left"
)

// manifestOf is the file with the manifest of a template, by its full name.
func manifestOf(full string) string {
	if tenant, name := cove.SplitTemplate(full); tenant != "" {
		return path.Join(ownedDir, tenant, name+manifestEnd)
	}
	return path.Join(namesDir, full+manifestEnd)
}

// namesIn returns the names that a directory has manifests of.
func namesIn(root *os.Root, dir string) (names []string, err error) {
	files, err := fs.ReadDir(root.FS(), dir)
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), manifestEnd); ok && goodName.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, err
}

// owners returns the tenants that have or had templates.
func owners(root *os.Root) (tenants []string, err error) {
	dirs, err := fs.ReadDir(root.FS(), ownedDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the store is older than they are
	}
	for _, d := range dirs {
		if cove.ValidTenant(d.Name()) == nil {
			tenants = append(tenants, d.Name())
		}
	}
	return tenants, err
}

// Has reports whether something was built under a full name.
func (s *Store) Has(full string) (bool, error) {
	if CheckName(full) != nil {
		return false, nil //nolint:nilerr // nothing has such a name
	}
	root, err := s.top.get()
	if err == nil {
		_, err = root.Lstat(manifestOf(full))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, fault(err, "the template "+full)
}

// Room reports, as Exhausted, that the tenant of a full name may have no template more.
func (s *Store) Room(full string) error {
	return s.roomFor(Manifest{Name: full})
}

// roomFor reports, as Exhausted, that a manifest is more than its tenant may have.
func (s *Store) roomFor(m Manifest) error {
	tenant, _ := cove.SplitTemplate(m.Name)
	root, err := s.top.get()
	if tenant == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	dir := path.Join(ownedDir, tenant)
	files, err := fs.ReadDir(root.FS(), dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	named, left, size := 1, 0, m.Size
	for _, f := range files {
		at := path.Join(dir, f.Name())
		switch {
		case at == manifestOf(m.Name):
			continue
		case strings.HasSuffix(f.Name(), leftEnd):
			left++
		default:
			named++
		}
		size += sizeIn(root, at)
	}
	switch {
	case named > mostOwned:
		return cove.Errorf(cove.Exhausted, "the tenant has %d templates, the most there may be", mostOwned).Remedy("delete one")
	case left >= mostLeft:
		return cove.Errorf(cove.Exhausted, "files of %d templates that the tenant replaced or deleted are still in use", left).
			Remedy("close the sandboxes that were made from them, and have the operator restart the server")
	case size > mostOwnedSize:
		return cove.Errorf(cove.Exhausted, "the templates of the tenant would have %s, with those that were replaced or deleted and are still in use, and may have %s", size, mostOwnedSize).
			Remedy("delete a template, or make a smaller one")
	}
	return nil
}

// sizeIn is the size of the tree of a manifest; of one that cannot be read, 0.
func sizeIn(root *os.Root, file string) cove.Bytes {
	f, err := root.Open(file)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	var m Manifest
	if err := json.NewDecoder(io.LimitReader(f, mostManifest)).Decode(&m); err != nil {
		return 0
	}
	return m.Size
}

// leave keeps the manifest that a tenant's template has before another digest, or none,
// takes its place: its tree may still be in use. The caller has the lock, and sweeps.
func (s *Store) leave(full, next string) error {
	tenant, _ := cove.SplitTemplate(full)
	if tenant == "" {
		return nil
	}
	m, err := s.read(full)
	if err != nil || m.Digest == next {
		return nil //nolint:nilerr // there is none, or nothing is known of its tree
	}
	err = s.root().Link(manifestOf(full), path.Join(ownedDir, tenant, m.Digest+leftEnd))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// forgetLeft removes the manifests of trees that are not left any more, and directories
// of tenants that have none. The caller has the lock.
func (s *Store) forgetLeft(left map[string]bool) error {
	tenants, err := owners(s.root())
	for _, tenant := range tenants {
		dir := path.Join(ownedDir, tenant)
		files, rerr := fs.ReadDir(s.root().FS(), dir)
		err = errors.Join(err, rerr)
		kept := len(files)
		for _, f := range files {
			if digest, ok := strings.CutSuffix(f.Name(), leftEnd); ok && !left[digest] {
				err = errors.Join(err, s.root().Remove(path.Join(dir, f.Name())))
				kept--
			}
		}
		if kept == 0 {
			err = errors.Join(err, s.root().Remove(dir))
		}
	}
	return err
}
