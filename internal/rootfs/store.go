package rootfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// The names in a store.
const (
	namesDir   = "names"
	ownedDir   = "owned"
	treesDir   = "trees"
	stagingDir = "staging"
	lockFile   = "lock"
	treeDir    = "tree" // in a stage
)

// mostManifest bounds one file in names.
const mostManifest = 4 << 20

// Config says where a store is and what it stands on.
type Config struct {
	// Dir is the directory of the store; it is made when something is built.
	Dir string
	// Top is where the host's own tree begins; "" is /.
	Top string
	// Held reports whether sandboxes may live that no process with a store made:
	// then a tree that was used is not removed. nil: there are none.
	Held func() bool
	// Recheck is after how long a tree that is used again is compared again; 0 is a
	// minute.
	Recheck time.Duration
}

const defaultRecheck = time.Minute

// Store is the templates of one directory. It is safe for concurrent use, also
// by several processes.
type Store struct {
	cfg  Config
	top  lazyRoot
	host hostView

	mu   sync.Mutex
	held map[string]*os.File // guarded by mu; by digest: that the tree is in use

	checking sync.Mutex
	checked  map[string]time.Time // guarded by checking; by digest: when the seal was compared
}

// New returns the store in a directory, which may not be there yet. The caller
// closes it.
func New(cfg Config) *Store {
	if cfg.Top == "" {
		cfg.Top = "/"
	}
	if cfg.Recheck == 0 {
		cfg.Recheck = defaultRecheck
	}
	return &Store{cfg: cfg, top: lazyRoot{dir: cfg.Dir}, held: map[string]*os.File{}, checked: map[string]time.Time{}}
}

// Close says that this process uses no tree any more. The store is not to be used
// after it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := []error{s.top.close()}
	for _, f := range s.held {
		errs = append(errs, f.Close())
	}
	s.held = nil
	return errors.Join(errs...)
}

// List returns all templates, built or not, by name. One of which nothing can be
// read is not ready.
func (s *Store) List() ([]Entry, error) {
	built, err := s.built()
	if err != nil {
		return nil, fault(err, "the templates in "+s.cfg.Dir)
	}
	names := append(Builtin(), built...)
	slices.Sort(names)
	var all []Entry
	for _, name := range slices.Compact(names) {
		e, err := s.Look(name)
		if errors.Is(err, cove.NotFound) {
			continue // removed meanwhile
		}
		if err != nil { // the others are none the worse
			e = Entry{Manifest: Manifest{Name: name}, Why: cove.MessageOf(err), Remedy: cove.RemedyOf(err)}
		}
		all = append(all, e)
	}
	return all, nil
}

// built returns the names that something was built under.
func (s *Store) built() (names []string, err error) {
	root, err := s.top.get()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if names, err = namesIn(root, namesDir); err != nil {
		return nil, err
	}
	tenants, err := owners(root)
	for _, tenant := range tenants {
		own, oerr := namesIn(root, path.Join(ownedDir, tenant))
		for _, name := range own {
			names = append(names, cove.TenantTemplate(tenant, name))
		}
		err = errors.Join(err, oerr)
	}
	return names, err
}

// Look returns one template. One that nobody built and that is not builtin is
// NotFound.
func (s *Store) Look(name string) (Entry, error) {
	if err := CheckName(name); err != nil {
		return Entry{}, err
	}
	m, err := s.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		if e, ok := s.builtin(name); ok {
			return e, nil
		}
		return Entry{}, cove.Errorf(cove.NotFound, "there is no template %s", name).Remedy("cove template ls lists those that are there; cove template build %s makes it", name)
	}
	if err != nil {
		return Entry{}, fault(err, "the template "+name)
	}
	e := Entry{Manifest: m, Ready: true}
	if now := s.facts(); m.Kind == KindLayer && m.Base != now {
		e.Ready, e.Why = false, fmt.Sprintf("it was built over %s, and this host is %s", m.Base, now)
		e.Remedy = "build it again: cove template build " + name
	}
	return e, nil
}

// read reads a manifest and believes nothing that is in it.
func (s *Store) read(name string) (m Manifest, err error) {
	root, err := s.top.get()
	if err != nil {
		return m, err
	}
	f, err := root.Open(manifestOf(name))
	if err != nil {
		return m, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, mostManifest))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err == nil && (m.Name != name || !goodDigest(m.Digest) || m.Kind != KindLayer && m.Kind != KindTree) {
		err = errors.New("it describes something else")
	}
	if err != nil {
		return m, cove.Wrap(cove.Unavailable, err, "what is known of template %s cannot be read", name).Remedy("remove it with cove template rm %s, and build it again", name)
	}
	return m, nil
}

func goodDigest(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

func treeOf(digest string) string { return path.Join(treesDir, digest) }
func useOf(digest string) string  { return treeOf(digest) + ".use" }

// Put makes a stage's tree the template that m names; the stage is used up. A
// template of that name is replaced for sandboxes to come, and stays what it is
// for those that live.
func (s *Store) Put(ctx context.Context, st *Stage, m Manifest) (Manifest, error) {
	m, err := s.put(ctx, st, m)
	return m, fault(err, "the template "+m.Name)
}

func (s *Store) put(ctx context.Context, st *Stage, m Manifest) (Manifest, error) {
	if err := CheckName(m.Name); err != nil {
		return m, err
	}
	if m.Name == Base {
		return m, cove.InvalidField("template", "%s is the host as it is; choose another name", Base)
	}
	found, err := digestOf(ctx, st.Tree)
	if err != nil {
		return m, err
	}
	m.Digest, m.Size, m.Files, m.Created = found.digest, found.size, found.files, time.Now().UTC().Truncate(time.Second)
	if m.Kind == KindLayer {
		m.Base = s.facts()
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return m, err
	}
	defer unlock()
	if err := s.roomFor(m); err != nil {
		return m, err
	}
	if err := s.settle(ctx, st, m.Digest); err != nil {
		return m, err
	}
	if m.Seal, err = s.seal(ctx, m.Digest); err != nil {
		return m, err
	}
	if err := s.write(m); err != nil {
		return m, err
	}
	_, err = s.sweep()
	return m, err
}

// Tag gives the files of a template another name. What had that name is replaced, as
// by Put.
func (s *Store) Tag(ctx context.Context, name, as string) (Manifest, error) {
	m, err := s.tag(ctx, name, as)
	return m, fault(err, "the template "+name)
}

func (s *Store) tag(ctx context.Context, name, as string) (m Manifest, err error) {
	for _, word := range []string{name, as} {
		if err := CheckName(word); err != nil {
			return m, err
		}
	}
	if as == Base {
		return m, cove.InvalidField("template", "%s is the host as it is; choose another name", Base)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return m, err
	}
	defer unlock()
	e, err := s.Look(name)
	if err != nil {
		return m, err
	}
	if !e.Ready || e.Digest == "" {
		return m, cove.Errorf(cove.Conflict, "template %s has no files that another name could stand for", name).Remedy("build it first")
	}
	m = e.Manifest
	m.Name = as
	if err := s.roomFor(m); err != nil {
		return m, err
	}
	if err := s.write(m); err != nil {
		return m, err
	}
	_, err = s.sweep()
	return m, err
}

// settle gives a stage's tree its name, unless that is there already and whole.
func (s *Store) settle(ctx context.Context, st *Stage, digest string) error {
	old, err := s.root().OpenRoot(treeOf(digest))
	if err == nil {
		found, err := digestOf(ctx, old)
		_ = old.Close()
		if err == nil && found.digest == digest {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.inUse(digest) {
			return cove.Errorf(cove.Conflict, "files of this very template were changed on disk, and sandboxes use them").Remedy("end those sandboxes and the server, and build it again")
		}
		if err := s.drop(digest); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.root().Rename(path.Join(stagingDir, st.name, treeDir), treeOf(digest))
}

func (s *Store) seal(ctx context.Context, digest string) (string, error) {
	tree, err := s.root().OpenRoot(treeOf(digest))
	if err != nil {
		return "", err
	}
	defer func() { _ = tree.Close() }()
	return sealOf(ctx, tree)
}

// write replaces the manifest of a name in one step.
func (s *Store) write(m Manifest) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	draft := path.Join(stagingDir, string(cove.NewID())+".json")
	f, err := s.root().OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = s.leave(m.Name, m.Digest)
	}
	if err == nil {
		err = s.root().MkdirAll(path.Dir(manifestOf(m.Name)), 0o700)
	}
	if err == nil {
		err = s.root().Rename(draft, manifestOf(m.Name))
	}
	if err != nil {
		return errors.Join(err, s.root().Remove(draft))
	}
	return nil
}
