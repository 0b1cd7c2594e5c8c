package gvisor

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

// mostVolumes bounds them: each is a mount.
const mostVolumes = 64

// checkVolumes refuses volumes that no sandbox could have.
func checkVolumes(list []cove.Volume) error {
	if len(list) > mostVolumes {
		return cove.InvalidField("volumes", "%d are too many; the most is %d", len(list), mostVolumes)
	}
	for _, v := range list {
		if err := checkSource(v); err != nil {
			return err
		}
	}
	return nil
}

// checkSource looks at what is to be shown, without following links: the path is
// the one that somebody allowed.
func checkSource(v cove.Volume) error {
	bad := func(why string) *cove.Error { return cove.InvalidField("volumes", "%q: %s", v.Source, why) }
	f, err := mount.Find(v.Source)
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return bad("there is no such file or directory on this host")
	case errors.Is(err, unix.ELOOP):
		return bad("leads through a symbolic link; use the path that it stands for")
	case errors.Is(err, unix.EACCES):
		return bad("the user that runs cove may not open it")
	case err != nil:
		return cove.Wrap(cove.Unavailable, err, "volume %q cannot be opened", v.Source)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "volume %q cannot be looked at", v.Source)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return bad("is neither a directory nor a file")
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return cove.Wrap(cove.Unavailable, err, "volume %q cannot be looked at", v.Source)
	}
	if v.Write && st.Uid == 0 && st.Mode&0o002 == 0 {
		return bad("belongs to root, and only root may write to it").Remedy("let others write to it, or mount it read-only")
	}
	return nil
}

// nobody owns what a sandbox makes in a volume of root's: nothing that a
// sandbox makes may be root's.
const nobody = 65534

// owners are mappings with which the owner of a volume is a user of a sandbox, as in
// provider/local: what the sandbox makes there is the owner's, whichever sandbox has that user
// next. An owner that cannot be mapped keeps the files, and the sandbox is another user.
func owners(v cove.Volume, sandbox uint32) (users, groups []ociMapping) {
	uid, gid := uint32(nobody), uint32(nobody)
	var st unix.Stat_t
	if unix.Lstat(v.Source, &st) == nil { // what is gone cannot be mounted either
		uid, gid = cmp.Or(st.Uid, nobody), cmp.Or(st.Gid, nobody)
	}
	list := func(id uint32) (all []ociMapping) {
		for _, m := range userns.Swap(id, sandbox, userns.EndOfUsers) {
			all = append(all, ociMapping{ContainerID: m.Inside, HostID: m.Outside, Size: m.Count})
		}
		return all
	}
	return list(uid), list(gid)
}

// addTargets makes places for volumes. Links and what is shown of the host stay
// what they are, and so do the files of ours.
func (d *drawing) addTargets(list []cove.Volume) error {
	c := &copying{d: d}
	for _, v := range list {
		taken := func(path string) bool { return v.Target == path || strings.HasPrefix(v.Target, path+"/") }
		if v.Target == "/tmp" || taken("/tmp/.cove") || taken(agentDir) {
			return cove.InvalidField("volumes", "%q is the sandbox's own; use a path such as /data", v.Target)
		}
		if taken("/tmp") {
			return cove.Errorf(cove.Unsupported, "volumes: provider %s cannot mount below /tmp", name).With("field", "volumes").Remedy("use a path such as /data")
		}
		for _, l := range d.Links {
			if taken(l.Path) {
				return cove.InvalidField("volumes", "%q leads through a link inside a sandbox; use a path such as /data", v.Target)
			}
		}
		for _, b := range d.Binds {
			if taken(b.Path) {
				return cove.InvalidField("volumes", "nothing can be mounted at %q inside a sandbox; use a path such as /data", v.Target)
			}
		}
		c.parents(v.Target)
		if info, err := os.Lstat(v.Source); err == nil && !info.IsDir() {
			d.Files = append(d.Files, drawnFile{Path: v.Target})
			continue
		}
		if !d.has(v.Target) {
			d.Dirs = append(d.Dirs, drawnDir{v.Target, 0o755})
		}
	}
	return nil
}
