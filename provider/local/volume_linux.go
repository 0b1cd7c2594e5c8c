package local

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/internal/linux/userns"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// nobody is who owns what a sandbox makes in a volume of root's: nothing that a
// sandbox makes may be root's.
const nobody = 65534

// badVolume is an error about what was asked for.
func badVolume(v cove.Volume, why string) *cove.Error {
	return cove.InvalidField("volumes", "%q: %s", v.Source, why)
}

// Places of a sandbox that no volume can take.
const (
	tempDir = "/tmp" // has a bound of its own; what is below may be a volume
	ownDir  = "/tmp/.cove"
)

// checkTargets refuses targets that the root cannot have: its links and the parts
// of the host in it stay what they are, and so do the files of ours.
func checkTargets(r *fence.Root, list []cove.Volume) error {
	if most := fence.MaxVolumes - 1; len(list) > most { // one is for the workspace
		return cove.InvalidField("volumes", "%d are too many; the most is %d", len(list), most)
	}
	for _, v := range list {
		taken := func(path string) bool { return v.Target == path || strings.HasPrefix(v.Target, path+"/") }
		if v.Target == tempDir || taken(ownDir) {
			return cove.InvalidField("volumes", "%q is the sandbox's own; use a path such as /data or /tmp/data", v.Target)
		}
		for _, l := range r.Links {
			if taken(l.Path) {
				return cove.InvalidField("volumes", "%q leads through a link inside a sandbox; use a path such as /data", v.Target)
			}
		}
		for _, b := range r.Binds {
			if taken(b.Path) {
				return cove.InvalidField("volumes", "nothing can be mounted at %q inside a sandbox; use a path such as /data", v.Target)
			}
		}
	}
	return nil
}

// checkVolumes refuses volumes that no sandbox here could have.
func (h *hostSide) checkVolumes(spec cove.Spec) error {
	if len(spec.Volumes) == 0 {
		return nil
	}
	k, _, err := h.kitFor(spec.Template)
	if err != nil {
		return err
	}
	plan, err := k.planned()
	if err != nil {
		return err
	}
	return checkTargets(&plan.Root, spec.Volumes)
}

// shown is the volumes of a sandbox on their way into it.
type shown struct {
	volumes []fence.Volume
	handles []fence.VolumeHandles
	files   []*os.File // what the handles are of
}

func (s *shown) close() {
	for _, f := range s.files {
		_ = f.Close()
	}
}

// openVolumes opens what is to be shown, without following links: the path is
// the one that somebody allowed. From here on it is the descriptor that counts.
func (h *hostSide) openVolumes(list []cove.Volume, lease *userns.Lease) (_ *shown, err error) {
	s := &shown{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, v := range list {
		if err := s.add(v, lease); err != nil {
			return nil, err
		}
	}
	for i := range s.volumes {
		s.volumes[i].Write = s.volumes[i].Write || h.cfg.weak.volumes
	}
	return s, nil
}

func (s *shown) add(v cove.Volume, lease *userns.Lease) error {
	f, err := mount.Find(v.Source)
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return badVolume(v, "there is no such file or directory on this host")
	case errors.Is(err, unix.ELOOP):
		return badVolume(v, "leads through a symbolic link; use the path that it stands for")
	case errors.Is(err, unix.EACCES):
		return badVolume(v, "the user that runs cove may not open it")
	case err != nil:
		return cove.Wrap(cove.Unavailable, err, "volume %q cannot be opened", v.Source)
	}
	s.files = append(s.files, f)
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return cove.Wrap(cove.Unavailable, err, "volume %q cannot be looked at", v.Source)
	}
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !dir && st.Mode&unix.S_IFMT != unix.S_IFREG {
		return badVolume(v, "is neither a directory nor a file")
	}
	h := fence.VolumeHandles{Source: int(f.Fd()), Users: -1}
	if v.Write && lease != nil {
		users, err := owners(v, &st, lease.First)
		if err != nil {
			return err
		}
		s.files, h.Users = append(s.files, users), int(users.Fd())
	}
	s.volumes = append(s.volumes, fence.Volume{Source: v.Source, Target: v.Target, Write: v.Write, Dir: dir, Mapped: h.Users >= 0})
	s.handles = append(s.handles, h)
	return nil
}

// owners is a user namespace in which the owner of a volume is the user of a
// sandbox: what the sandbox makes there is the owner's, whoever has that user
// next.
func owners(v cove.Volume, st *unix.Stat_t, sandbox uint32) (*os.File, error) {
	uid, gid := st.Uid, st.Gid
	if uid == 0 && st.Mode&0o002 == 0 && (gid == 0 || st.Mode&0o020 == 0) {
		return nil, badVolume(v, "belongs to root, and only root may write to it").Remedy("give it to another user, or mount it read-only")
	}
	if uid == 0 {
		uid = nobody
	}
	if gid == 0 {
		gid = nobody
	}
	if uid >= userns.EndOfUsers || gid >= userns.EndOfUsers {
		return nil, cove.Errorf(cove.Unsupported, "volumes: %q belongs to user %d and group %d, which cannot be mapped", v.Source, uid, gid).With("field", "volumes")
	}
	f, err := userns.New(userns.Swap(uid, sandbox, userns.EndOfUsers), userns.Swap(gid, sandbox, userns.EndOfUsers))
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the users of volume %q cannot be mapped", v.Source).Remedy("mount it read-only")
	}
	return f, nil
}

// explainVolume gives the cause of a volume that could not be mounted; false is
// for errors about something else.
func explainVolume(err error) (error, bool) {
	text := err.Error()
	switch {
	case !strings.HasPrefix(text, fence.VolumeFault) || isFull(err):
		return nil, false
	case strings.Contains(text, fence.MapFault):
		return cove.Wrap(cove.Unsupported, err, "volumes: the file system, or one that is mounted below it, cannot show its files as those of a sandbox's user: %s", text).
			With("field", "volumes").Remedy("mount it read-only, or use a directory of another file system"), true
	}
	return cove.Wrap(cove.Invalid, err, "volumes: %s", text).With("field", "volumes").
		Remedy("see that source and target are there; what was mounted on the host after cove began, cove may see only when it is restarted"), true
}
