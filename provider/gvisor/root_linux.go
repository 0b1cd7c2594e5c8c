package gvisor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/template"
)

// root is the read-only tree of sandboxes, as it lies in the provider's
// directory. Sandboxes with the same one share it.
type root struct {
	key   string // tells its content
	path  string
	binds []bind
	empty []string
	dirs  []string // that volumes can be put into
	links []string
}

// bind shows a part of the host; without a source, an empty file.
type bind struct {
	Source string `json:"source"`
	Path   string `json:"path"`
}

// drawing is what a root is made from.
type drawing struct {
	Dirs   []drawnDir  `json:"dirs"`
	Links  []drawnLink `json:"links"`
	Files  []drawnFile `json:"files"`
	Copies []drawnCopy `json:"copies"`
	Binds  []bind      `json:"binds"`
	Empty  []string    `json:"empty,omitempty"` // directories in which nothing is shown
	Agent  string      `json:"agent"`           // a hash
}

type (
	drawnDir struct {
		Path string      `json:"path"`
		Mode os.FileMode `json:"mode"`
	}
	drawnLink struct {
		Path string `json:"path"`
		To   string `json:"to"`
	}
	drawnFile struct {
		Path string `json:"path"`
		Text string `json:"text"`
	}
	// drawnCopy is a file of the host. Who changes it changes the root.
	drawnCopy struct {
		Source string `json:"source"`
		Path   string `json:"path"`
		Size   int64  `json:"size"`
		Time   int64  `json:"time"`
	}
)

// Where the agent is in a sandbox, and how it is found there by its name alone.
const (
	agentName = "cove-agent"
	agentDir  = "/cove"
	agentPath = agentDir + "/" + agentName
	agentEnv  = "PATH=" + agentDir
	emptyFile = agentDir + "/nothing" // is shown by a bind without a source
)

// bare is what a root has that is no host's.
func bare() *drawing {
	d := &drawing{
		Links: []drawnLink{{"/etc/mtab", "/proc/self/mounts"}, {cove.HomePath, cove.WorkspacePath}, {"/var/run", "/run"}, {"/var/tmp", "/tmp"}},
		Files: []drawnFile{
			{emptyFile, ""},
			{"/etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"},
			{"/etc/hostname", host + "\n"},
			{"/etc/hosts", "127.0.0.1 localhost " + host + "\n::1 localhost ip6-localhost\n"},
			{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"},
			{"/etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/workspace:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
			{"/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n"},
		},
	}
	for _, path := range []string{"/cove", "/dev", "/etc", "/home", "/mnt", "/opt", "/proc", "/root", "/run", "/srv", "/sys", "/tmp", "/usr", "/var", cove.WorkspacePath} {
		d.Dirs = append(d.Dirs, drawnDir{path, 0o755})
	}
	return d
}

// settings are what programs look for in /etc and what says nothing about the
// host.
var settings = []string{
	"alternatives", "bash.bashrc", "ca-certificates/extracted", "fonts", "inputrc", "java-*", "ld.so.cache", "ld.so.conf", "localtime", "matplotlibrc",
	"mime.types", "perl", "pki/ca-trust/extracted", "pki/tls/certs", "protocols", "python3*", "services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "timezone",
}

// Bounds of what is copied into a root.
const (
	mostCopies = 8192
	mostCopied = 64 << 20
)

// drawHost is the root with the programs of this host, and nothing of what makes
// it that host.
func drawHost() *drawing {
	d := bare()
	d.programs("/")
	dirs, files := template.HostSettings("/")
	d.Empty = dirs
	for _, path := range files {
		d.Binds = append(d.Binds, bind{"", path})
	}
	c := &copying{d: d, room: mostCopied}
	for _, pattern := range settings {
		found, _ := filepath.Glob(filepath.Join("/etc", pattern)) // a pattern of ours
		for _, path := range found {
			c.add(path, path)
		}
	}
	return d
}

// programs shows /usr, and what stands beside it where /bin is no link.
func (d *drawing) programs(top string) {
	d.Binds = append(d.Binds, bind{filepath.Join(top, "usr"), "/usr"})
	for _, dir := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		path := filepath.Join(top, dir)
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			if to, err := os.Readlink(path); err == nil {
				d.Links = append(d.Links, drawnLink{"/" + dir, to})
			}
		case info.IsDir():
			d.Dirs = append(d.Dirs, drawnDir{"/" + dir, 0o755})
			d.Binds = append(d.Binds, bind{path, "/" + dir})
		}
	}
}

// copying collects files, up to a bound: what is beyond is left out.
type copying struct {
	d    *drawing
	room int64
}

// add copies what is at a path of the host, and all below it. What cannot be
// read is left out.
func (c *copying) add(source, path string) {
	if real, err := filepath.EvalSymlinks(source); err == nil {
		source = real // the top is what it stands for; links below stay links
	}
	c.parents(path)
	_ = filepath.WalkDir(source, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // somebody else's
		}
		below, _ := filepath.Rel(source, at)
		c.one(at, filepath.Join(path, below), e)
		return nil
	})
}

func (c *copying) one(source, path string, e fs.DirEntry) {
	if len(c.d.Copies)+len(c.d.Links)+len(c.d.Dirs) >= mostCopies || c.d.has(path) {
		return
	}
	switch kind := e.Type(); {
	case kind.IsDir():
		c.d.Dirs = append(c.d.Dirs, drawnDir{path, 0o755})
	case kind&os.ModeSymlink != 0:
		if to, err := os.Readlink(source); err == nil {
			c.d.Links = append(c.d.Links, drawnLink{path, to})
		}
	case kind.IsRegular():
		info, err := e.Info()
		// What others may not read is nobody's in a sandbox either.
		if err != nil || info.Size() > c.room || info.Mode()&0o004 == 0 {
			return
		}
		c.room -= info.Size()
		c.d.Copies = append(c.d.Copies, drawnCopy{source, path, info.Size(), info.ModTime().UnixNano()})
	}
}

// parents makes the directories above a path that are not there yet.
func (c *copying) parents(path string) {
	var missing []drawnDir
	for dir := filepath.Dir(path); dir != "/" && !c.d.has(dir); dir = filepath.Dir(dir) {
		missing = append([]drawnDir{{dir, 0o755}}, missing...)
	}
	c.d.Dirs = append(c.d.Dirs, missing...)
}

func (d *drawing) has(path string) bool {
	return slices.ContainsFunc(d.Dirs, func(x drawnDir) bool { return x.Path == path }) ||
		slices.ContainsFunc(d.Links, func(x drawnLink) bool { return x.Path == path }) ||
		slices.ContainsFunc(d.Files, func(x drawnFile) bool { return x.Path == path })
}

// roots are the trees in a directory.
type roots struct {
	dir   string
	seen  string // the directory, as the users of sandboxes find it
	agent []byte
	hash  string // of the agent
}

// build makes a tree, unless it is there.
func (r *roots) build(d *drawing) (*root, error) {
	d.Agent = r.hash
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	t := &root{key: hex.EncodeToString(sum[:12]), binds: d.Binds, empty: d.Empty}
	t.path = filepath.Join(r.seen, t.key)
	path := filepath.Join(r.dir, t.key)
	for _, x := range d.Dirs {
		t.dirs = append(t.dirs, x.Path)
	}
	for _, x := range d.Links {
		t.links = append(t.links, x.Path)
	}
	if _, err := os.Lstat(path); err == nil {
		return t, nil
	}
	tmp, err := os.MkdirTemp(r.dir, "new-")
	if err == nil {
		if err = r.fill(tmp, d); err == nil {
			err = os.Rename(tmp, path)
		}
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}
	if _, there := os.Lstat(path); err != nil && there != nil {
		return nil, diskError(err, "the root of sandboxes cannot be made")
	}
	return t, nil
}

// fill writes what is drawn below a directory that nobody else has. Links are
// last, so that nothing is written through one.
func (r *roots) fill(top string, d *drawing) error {
	at, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer func() { _ = at.Close() }()
	inside := func(path string) string { return strings.TrimPrefix(path, "/") }
	for _, x := range d.Dirs {
		if err := at.MkdirAll(inside(x.Path), x.Mode); err != nil {
			return err
		}
	}
	for _, x := range d.Files {
		if err := at.WriteFile(inside(x.Path), []byte(x.Text), 0o644); err != nil {
			return err
		}
	}
	for _, x := range d.Copies {
		if err := copyFile(at, inside(x.Path), x); err != nil {
			return err
		}
	}
	if err := at.WriteFile(inside(agentPath), r.agent, 0o555); err != nil {
		return err
	}
	for _, x := range d.Links {
		if err := at.Symlink(x.To, inside(x.Path)); err != nil {
			return err
		}
	}
	return at.Chmod(".", 0o755)
}

// copyFile copies one file, and of that no more than was there when it was drawn.
func copyFile(at *os.Root, path string, x drawnCopy) error {
	from, err := os.Open(x.Source)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := at.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.LimitReader(from, x.Size))
	return errors.Join(err, to.Close())
}

// sweep removes the trees that no sandbox and no snapshot has.
func (r *roots) sweep(used map[string]bool) error {
	list, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range list {
		if !used[e.Name()] {
			errs = append(errs, os.RemoveAll(filepath.Join(r.dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// diskError is an error about the provider's directory.
func diskError(err error, what string) error {
	if code, words, ok := cove.DiskFault(err); ok {
		return cove.Wrap(code, err, "%s: %s", what, words)
	}
	return cove.Wrap(cove.Unavailable, err, "%s: %s", what, fmt.Sprint(err))
}
