package fake

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
)

// Where things are within the directory of a sandbox.
const (
	treeDir    = "tree"     // what the sandbox sees
	stagingDir = ".staging" // files that are still being written; no mount shows it
	homeDir    = "/home/sandbox"
	restBytes  = int64(1 << 30) // bound on /tmp and /home together
	restFiles  = int64(1 << 18)
	maxLinks   = 40
	maxName    = 255
	maxPath    = 4096
	userID     = 1000
)

// tree is the files of a sandbox as its programs see them. Every change and
// every look is made under one mutex, so that no program can swap a directory
// for a link between our check and our use; [os.Root] would hold even then.
type tree struct {
	root   *os.Root
	mounts []*mount // longest target first
	sim    map[string]*node
	tools  func(name string) bool // whether /bin has a program

	mu      sync.Mutex
	work    *ledger
	open    map[inode]int     // descriptions open for writing; guarded by mu
	orphans map[inode]*ledger // removed while open: booked until closed; guarded by mu
	watches map[*watch]struct{}
	meta    map[inode]map[string]string // attributes of files; guarded by mu
	staged  int
	closed  bool
}

// mount shows a directory of the host at a place of the tree.
type mount struct {
	target   string
	root     *os.Root
	base     string // within root
	book     *ledger
	readOnly bool
}

// node is a file that exists only here: a device, a program, a link or a
// directory that holds such.
type node struct {
	mode   fs.FileMode
	device device
	link   string
}

// place is where a name leads.
type place struct {
	abs  string
	on   *mount // nil for what only exists here
	name string // within on.root
	node *node  // nil for what does not exist, if on is nil
}

// bound gives the workspace another quota.
func (t *tree) bound(quota cove.Workspace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.work.maxBytes, t.work.maxFiles = int64(quota.Size), quota.Files
}

func newTree(root *os.Root, quota cove.Workspace, tools func(string) bool) *tree {
	t := &tree{
		root: root, tools: tools, sim: map[string]*node{},
		work: &ledger{maxBytes: int64(quota.Size), maxFiles: quota.Files},
		open: map[inode]int{}, orphans: map[inode]*ledger{}, watches: map[*watch]struct{}{},
		meta: map[inode]map[string]string{},
	}
	rest := &ledger{maxBytes: restBytes, maxFiles: restFiles}
	t.mounts = []*mount{
		{target: cove.WorkspacePath, root: root, base: "workspace", book: t.work},
		{target: "/tmp", root: root, base: "tmp", book: rest},
		{target: homeDir, root: root, base: "home", book: rest},
	}
	for _, dir := range []string{"/", "/bin", "/dev", "/home", "/proc", "/sys", "/usr", "/usr/bin"} {
		t.sim[dir] = &node{mode: fs.ModeDir | 0o755}
	}
	t.sim[cove.HomePath] = &node{mode: fs.ModeSymlink | 0o777, link: cove.WorkspacePath}
	for name, d := range devices() {
		t.sim["/dev/"+name] = &node{mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, device: d}
	}
	return t
}

// addVolume shows a directory of the host.
func (t *tree) addVolume(v cove.Volume) error {
	fi, err := os.Stat(v.Source)
	if err != nil || !fi.IsDir() {
		return cove.InvalidField("volumes", "%q is not a directory of the host", v.Source)
	}
	root, err := os.OpenRoot(v.Source)
	if err != nil {
		return cove.Wrap(cove.Invalid, err, "volumes: %q cannot be opened", v.Source).With("field", "volumes")
	}
	if t.at(v.Target).on != nil {
		if err := t.mkdirAll(v.Target); err != nil {
			_ = root.Close()
			return fileError(v.Target, err)
		}
	}
	for dir := path.Dir(v.Target); t.at(dir).on == nil && t.sim[dir] == nil; dir = path.Dir(dir) {
		t.sim[dir] = &node{mode: fs.ModeDir | 0o755}
	}
	t.mounts = slices.Insert(t.mounts, 0, &mount{target: v.Target, root: root, base: ".", readOnly: !v.Write})
	slices.SortStableFunc(t.mounts, func(a, b *mount) int { return cmp.Compare(len(b.target), len(a.target)) })
	return nil
}

// close lets go of the host's directories. What is still open fails from now on.
func (t *tree) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	t.stopWatches()
	for _, m := range t.mounts {
		if m.root != t.root {
			_ = m.root.Close()
		}
	}
	_ = t.root.Close()
}

// endWatches ends the streams of changes that somebody reads.
func (t *tree) endWatches() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopWatches()
}

func (t *tree) stopWatches() {
	for w := range t.watches {
		w.stop()
	}
}

// do runs fn with the tree held still.
func (t *tree) do(fn func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return cove.Errorf(cove.NotFound, "the sandbox is gone")
	}
	return fn()
}

func within(dir, abs string) bool {
	return dir == "/" || abs == dir || strings.HasPrefix(abs, dir+"/")
}

// at returns the place of a clean absolute path, without looking at links.
func (t *tree) at(abs string) place {
	for _, m := range t.mounts {
		if within(m.target, abs) {
			return place{abs: abs, on: m, name: path.Join(m.base, strings.TrimPrefix(abs[len(m.target):], "/"))}
		}
	}
	p := place{abs: abs, node: t.sim[abs]}
	if dir := path.Dir(abs); p.node == nil && (dir == "/bin" || dir == "/usr/bin") && t.tools(path.Base(abs)) {
		p.node = &node{mode: 0o755}
	}
	return p
}

// walk finds where an absolute name leads, following links as the sandbox sees
// them. The last part may be missing; with follow it may not be a link.
func (t *tree) walk(name string, follow bool) (place, error) {
	p, rest, err := t.descend(name, follow)
	if errors.Is(err, fs.ErrNotExist) && len(rest) == 0 {
		err = nil
	}
	return p, err
}

// descend is walk that says where it had to stop: at a place that is missing,
// with the parts of the name that were still to come.
func (t *tree) descend(name string, follow bool) (at place, rest []string, err error) {
	rest = strings.Split(strings.TrimRight(name, "/"), "/")
	cur := "/"
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			cur = path.Dir(cur)
			continue
		case len(part) > maxName:
			return place{}, rest, syscall.ENAMETOOLONG
		}
		here := t.at(path.Join(cur, part))
		if followed := follow || len(rest) > 0; followed && (here.abs == "/proc" || here.abs == "/sys") || strings.HasPrefix(here.abs, "/proc/") || strings.HasPrefix(here.abs, "/sys/") {
			return here, rest, errKernelFiles
		}
		fi, err := t.lstat(here)
		switch {
		case err != nil:
			return here, rest, err
		case fi.Mode()&fs.ModeSymlink != 0 && (follow || len(rest) > 0):
			if links++; links > maxLinks {
				return here, rest, syscall.ELOOP
			}
			target, err := here.readlink()
			if err != nil {
				return here, rest, err
			}
			if path.IsAbs(target) {
				cur = "/"
			}
			rest = append(strings.Split(target, "/"), rest...)
			continue
		case len(rest) > 0 && !fi.IsDir():
			return here, rest, syscall.ENOTDIR
		}
		cur = here.abs
	}
	return t.at(cur), nil, nil
}

// readlink returns what a link leads to.
func (p place) readlink() (string, error) {
	if p.on == nil {
		return p.node.link, nil
	}
	return p.on.root.Readlink(p.name)
}

// lstat describes a place.
func (t *tree) lstat(p place) (fs.FileInfo, error) {
	if p.on != nil {
		return p.on.root.Lstat(p.name)
	}
	if p.node == nil {
		return nil, syscall.ENOENT
	}
	return simInfo{name: path.Base(p.abs), mode: p.node.mode}, nil
}

// stat describes what a name leads to.
func (t *tree) stat(name string, follow bool) (fs.FileInfo, place, error) {
	p, err := t.walk(name, follow)
	if err != nil {
		return nil, p, err
	}
	fi, err := t.lstat(p)
	return fi, p, err
}

// entries lists a directory, names in order.
func (t *tree) entries(p place) ([]fs.FileInfo, error) {
	fi, err := t.lstat(p)
	switch {
	case err != nil:
		return nil, err
	case !fi.IsDir():
		return nil, syscall.ENOTDIR
	case p.on == nil:
		return t.simEntries(p.abs), nil
	}
	dir, err := p.on.root.Open(p.name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	list, err := dir.Readdir(-1)
	slices.SortFunc(list, func(a, b fs.FileInfo) int { return cmp.Compare(a.Name(), b.Name()) })
	return list, err
}

func (t *tree) simEntries(dir string) []fs.FileInfo {
	var list []fs.FileInfo
	for abs, n := range t.sim {
		if abs != "/" && path.Dir(abs) == dir {
			list = append(list, simInfo{name: path.Base(abs), mode: n.mode})
		}
	}
	for _, m := range t.mounts {
		if path.Dir(m.target) == dir {
			list = append(list, simInfo{name: path.Base(m.target), mode: fs.ModeDir | 0o755})
		}
	}
	slices.SortFunc(list, func(a, b fs.FileInfo) int { return cmp.Compare(a.Name(), b.Name()) })
	return list
}

// isMount reports whether something is mounted at abs or below it.
func (t *tree) isMount(abs string) bool {
	return slices.ContainsFunc(t.mounts, func(m *mount) bool { return within(abs, m.target) })
}

// simInfo describes a node.
type simInfo struct {
	name string
	mode fs.FileMode
}

func (i simInfo) Name() string       { return i.name }
func (i simInfo) Size() int64        { return 0 }
func (i simInfo) Mode() fs.FileMode  { return i.mode }
func (i simInfo) ModTime() time.Time { return time.Unix(0, 0) }
func (i simInfo) IsDir() bool        { return i.mode.IsDir() }
func (i simInfo) Sys() any           { return nil }

// count books what the directories of the sandbox hold already.
func (t *tree) count() error {
	return t.do(func() error {
		for _, m := range t.mounts {
			if m.book != nil {
				m.book.bytes, m.book.files = 0, 0
			}
		}
		for _, m := range t.mounts {
			if m.book == nil {
				continue
			}
			bytes, files, err := t.measure(place{abs: m.target, on: m, name: m.base})
			if err != nil {
				return err
			}
			if err := m.book.take(bytes, files-1); err != nil {
				return fileError(m.target, err)
			}
		}
		return nil
	})
}

// measure adds up a place and all below it, on its own mount.
func (t *tree) measure(p place) (bytes, files int64, err error) {
	fi, err := t.lstat(p)
	if err != nil {
		return 0, 0, err
	}
	bytes, files = weight(fi), 1
	if !fi.IsDir() {
		return bytes, files, nil
	}
	list, err := t.entries(p)
	for _, e := range list {
		below := t.at(path.Join(p.abs, e.Name()))
		if below.on != p.on {
			continue
		}
		b, f, err := t.measure(below)
		if err != nil {
			return 0, 0, err
		}
		bytes, files = bytes+b, files+f
	}
	return bytes, files, err
}
