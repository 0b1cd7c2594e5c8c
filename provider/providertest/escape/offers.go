package escape

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Where volumes are in a sandbox.
const (
	readTarget  = "/srv/cove-read"
	writeTarget = "/srv/cove-write"
)

// offers are directories of the host that sandboxes are shown.
type offers struct {
	dir    string
	secret string
	baited bool   // there are a device and a setuid program
	before string // what the one to read looked like
}

func (o *offers) read() string  { return filepath.Join(o.dir, "read") }
func (o *offers) write() string { return filepath.Join(o.dir, "write") }

// layOut makes the directories, with links that lead out of them.
func layOut(secret string) (o *offers, err error) {
	dir, err := os.MkdirTemp("", "cove-escape-*")
	if err != nil {
		return nil, err
	}
	o = &offers{secret: secret}
	// A volume must be named by the path that it has.
	if o.dir, err = filepath.EvalSymlinks(dir); err == nil {
		err = errors.Join(os.Chmod(o.dir, 0o755), o.fill())
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return o, nil
}

func (o *offers) fill() error {
	for dir, other := range map[string]string{o.read(): writeTarget, o.write(): readTarget} {
		errs := []error{os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, "dir"), 0o755)}
		for _, open := range []string{dir, filepath.Join(dir, "dir")} {
			errs = append(errs, os.Chmod(open, 0o777))
		}
		for _, name := range []string{"f", "dir/g"} {
			name = filepath.Join(dir, name)
			errs = append(errs, os.WriteFile(name, []byte("shown"), 0o600), os.Chmod(name, 0o666))
		}
		for name, to := range map[string]string{"away": o.secret, "above": up + o.secret[1:], "across": other + "/f", "root": "/"} {
			errs = append(errs, os.Symlink(to, filepath.Join(dir, name)))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		o.baited = bait(dir) == nil
	}
	var err error
	o.before, err = look(o.read())
	return err
}

// look describes all that is in a directory.
func look(dir string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var text []byte
		if info.Mode().IsRegular() {
			if text, err = os.ReadFile(name); err != nil {
				return err
			}
		}
		fmt.Fprintf(&all, "%s %s %d %s %x\n", name, info.Mode(), info.Size(), info.ModTime(), sha256.Sum256(text))
		return nil
	})
	return all.String(), err
}

// untouched says whether the volume to read is as it was.
func (o *offers) untouched() verdict {
	now, err := look(o.read())
	if err == nil && now == o.before {
		return heldBy("")
	}
	if err := o.fill(); err != nil { // for the attacks that follow
		return failed(err)
	}
	return breach("a read-only volume was changed")
}

// showVolumes gives a sandbox the volumes.
func (a *arena) showVolumes(s *cove.Spec) {
	s.Volumes = []cove.Volume{{Source: a.read(), Target: readTarget}, {Source: a.write(), Target: writeTarget, Write: true}}
}
