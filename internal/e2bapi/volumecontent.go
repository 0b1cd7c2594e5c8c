package e2bapi

import (
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// contentRoutes are the routes about the files of a volume.
func contentRoutes() map[string]action {
	const at = " /volumecontent/{id}/"
	return map[string]action{
		"GET" + at + "dir":     (*call).listVolume,
		"POST" + at + "dir":    (*call).makeVolumeDir,
		"GET" + at + "path":    (*call).statVolume,
		"PATCH" + at + "path":  (*call).changeVolume,
		"DELETE" + at + "path": (*call).removeVolume,
		"GET" + at + "file":    (*call).readVolume,
		"PUT" + at + "file":    (*call).writeVolume,
	}
}

// The session through which the files of a volume are reached: what is in a volume is
// as hostile as what is in a sandbox, so nobody but a sandbox opens it.
const (
	volumeUser = "e2b-volumes" // whose session it is, beside the volume's id
	volumeRoot = "/volume"     // where it has the volume
	volumeRead = "-read"       // what a session that only reads has behind the id
	volumeIdle = time.Minute   // how long it stays when nobody asks
)

// byVolumeToken serves a route about the files of a volume for the caller that the token
// names, as that caller's key allows now.
func (h *Handler) byVolumeToken(route string, do action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := h.resume(w, r)
		name, ok := h.callerOf(bearerOf(r.Header), kindVolume, cove.ID(r.PathValue("id")))
		if !ok {
			c.act(route, cove.Principal{}, nil, cove.Errorf(cove.Unauthenticated, "the token is not that of this volume").
				Remedy("connect to the volume with your key, which gives one"), nil)
			return
		}
		who, done, err := h.cfg.Key(r.Context(), name)
		c.act(route, who, done, err, func(c *call) error {
			if err := c.enterVolume(); err != nil {
				return err
			}
			return do(c)
		})
	})
}

// enterVolume makes the call one of the session that has the volume.
func (c *call) enterVolume() error {
	v, err := c.namedVolume()
	if err != nil {
		return err
	}
	s, err := c.openVolume(v, true)
	if c.r.Method == http.MethodGet && cove.ReasonOf(err) == cove.ReasonVolumeFull {
		s, err = c.openVolume(v, false) // what is over its limit can be read
	}
	if err != nil {
		return err
	}
	c.id = s.ID
	return nil
}

func (c *call) openVolume(v *cove.SavedVolume, write bool) (*cove.Session, error) {
	thread := string(v.ID)
	if !write {
		thread += volumeRead
	}
	return c.platform.Sessions().Open(c.r.Context(), cove.OpenRequest{Spec: cove.Spec{
		User: volumeUser, Thread: thread, Idle: volumeIdle, OnEnd: cove.EndClose, Network: cove.Network{Mode: cove.NetworkNone},
		Volumes: []cove.Volume{{Name: v.Name, Target: volumeRoot, Write: write}},
	}})
}

// volumePath is the name of the file that the query names, which begins at the volume.
// Links in the folders above it are followed, and if all is set, it may be one itself.
func (c *call) volumePath(all bool) (string, error) {
	name := c.r.URL.Query().Get("path")
	if name == "" {
		return "", cove.InvalidField("path", "is missing")
	}
	at, err := inward(path.Join(volumeRoot, path.Clean("/"+name)))
	if err != nil {
		return "", err
	}
	for range maxLinks + 1 {
		next, linked, err := c.unlinked(at, all)
		if err != nil || !linked {
			return at, err
		}
		if at = next; at != volumeRoot && !strings.HasPrefix(at, volumeRoot+"/") {
			return "", cove.InvalidField("path", "%.200q leads out of the volume by a link", name)
		}
	}
	return "", cove.InvalidField("path", "%.200q leads through too many links", name)
}

// unlinked returns a name of a volume with its first link replaced by what that leads
// to, if there is one. What is not there is no link.
func (c *call) unlinked(name string, all bool) (_ string, linked bool, _ error) {
	at := volumeRoot
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(name, volumeRoot), "/"), "/")
	for i, part := range parts {
		last := i == len(parts)-1
		if at = path.Join(at, part); last && !all {
			break
		}
		info, err := c.files().Stat(c.r.Context(), at)
		switch {
		case cove.CodeOf(err) == cove.NotFound && !lost(err):
			return name, false, nil
		case err != nil:
			return "", false, err
		case info.Mode&fs.ModeSymlink != 0:
			return path.Join(targetOf(info), path.Join(parts[i+1:]...)), true, nil
		}
	}
	return name, false, nil
}

// volumeEntry describes a file of a volume.
type volumeEntry struct {
	Name     string    `json:"name"`
	Path     string    `json:"path"`
	Type     string    `json:"type"`
	Size     int64     `json:"size"`
	Mode     uint32    `json:"mode"`
	UID      int       `json:"uid"`
	GID      int       `json:"gid"`
	Accessed time.Time `json:"atime"`
	Modified time.Time `json:"mtime"`
	Changed  time.Time `json:"ctime"`
	Target   string    `json:"target,omitempty"`
}

// volumeEntryOf describes a file. Of its times we know when it was written.
func volumeEntryOf(info cove.FileInfo) volumeEntry {
	name := path.Join("/", strings.TrimPrefix(info.Path, volumeRoot))
	at := info.Modified.UTC()
	return volumeEntry{
		Name: path.Base(name), Path: name, Type: volumeType(info.Mode), Size: int64(info.Size), Mode: uint32(info.Mode.Perm()),
		UID: max(0, info.UID), GID: max(0, info.GID), Accessed: at, Modified: at, Changed: at, Target: info.Link,
	}
}

func volumeType(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "symlink"
	default:
		return "unknown"
	}
}

// tellVolume answers with what a file of a volume is now.
func (c *call) tellVolume(status int, name string) error {
	info, err := c.files().Stat(c.r.Context(), name)
	if err != nil {
		return err
	}
	c.answer(status, volumeEntryOf(info))
	return nil
}

func (c *call) statVolume() error {
	name, err := c.volumePath(false)
	if err != nil {
		return err
	}
	return c.tellVolume(http.StatusOK, name)
}

func (c *call) listVolume() error {
	name, err := c.volumePath(true)
	if err != nil {
		return err
	}
	depth := 1
	if text := c.r.URL.Query().Get("depth"); text != "" {
		if depth, err = strconv.Atoi(text); err != nil || depth < 1 {
			return cove.InvalidField("depth", "%q is not a number from 1 on", clip(text))
		}
	}
	out := []volumeEntry{}
	err = c.below(c.r.Context(), name, depth, func(info cove.FileInfo) { out = append(out, volumeEntryOf(info)) })
	if err != nil {
		return err
	}
	c.answer(http.StatusOK, out)
	return nil
}

func (c *call) readVolume() error {
	name, err := c.volumePath(true)
	if err != nil {
		return err
	}
	return c.sendFile(name)
}

// writeVolume replaces a file, with the folders above it.
func (c *call) writeVolume() error {
	b := c.upload()
	name, err := c.writeVolumeFile(b)
	if err = c.settled(b, err); err != nil {
		return err
	}
	return c.tellVolume(http.StatusCreated, name)
}

func (c *call) writeVolumeFile(b *body) (string, error) {
	name, err := c.volumePath(true)
	if err != nil {
		return "", err
	}
	want, err := ownership(c.r.URL.Query().Get)
	if err != nil {
		return "", err
	}
	_, mode, err := landing(c.r.Context(), c.files(), name)
	if err != nil {
		return "", err
	}
	if want != nil {
		mode = *want
	}
	return name, c.files().Write(c.r.Context(), name, b, mode)
}

// makeVolumeDir makes a folder. Those above it are made only by force.
func (c *call) makeVolumeDir() error {
	name, err := c.volumePath(true)
	if err != nil {
		return err
	}
	q := c.r.URL.Query()
	mode, err := ownership(q.Get)
	if err != nil {
		return err
	}
	force := q.Get("force") == "true"
	switch info, err := find(c.r.Context(), c.files(), name); {
	case err == nil && force && info.Mode.IsDir():
	case err == nil:
		return cove.Errorf(cove.Conflict, "%.200s exists already", q.Get("path"))
	case cove.CodeOf(err) != cove.NotFound || lost(err):
		return err
	}
	if !force {
		if _, err := c.files().Stat(c.r.Context(), path.Dir(name)); err != nil {
			return err
		}
	}
	if err := c.files().Mkdir(c.r.Context(), name); err != nil {
		return err
	}
	if err := c.chmod(name, mode); err != nil {
		return err
	}
	return c.tellVolume(http.StatusCreated, name)
}

// changeVolume sets the permissions of a file.
func (c *call) changeVolume() error {
	name, err := c.volumePath(true)
	if err != nil {
		return err
	}
	var b map[string]*int64
	if err := c.body(&b); err != nil {
		return err
	}
	mode, err := ownership(func(field string) string {
		if n := b[field]; n != nil {
			return strconv.FormatInt(*n, 10)
		}
		return ""
	})
	if err != nil {
		return err
	}
	if _, err := c.files().Stat(c.r.Context(), name); err != nil {
		return err
	}
	if err := c.chmod(name, mode); err != nil {
		return err
	}
	return c.tellVolume(http.StatusOK, name)
}

// ownership reads the permissions that a caller asks for, nil for none, and refuses
// every owner but the one that there is.
func ownership(get func(field string) string) (*fs.FileMode, error) {
	for _, field := range []string{"uid", "gid"} {
		if text := get(field); text != "" && text != strconv.Itoa(sandboxUser) {
			return nil, cove.Errorf(cove.Unsupported, "%s: the files of a volume belong to the one user of sandboxes, who has the number %d", field, sandboxUser).
				With("field", field).Remedy("leave it out")
		}
	}
	text := get("mode")
	if text == "" {
		return nil, nil //nolint:nilnil // nobody asked
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > uint64(fs.ModePerm) {
		return nil, cove.InvalidField("mode", "%q is not a number from 0 to %d, which is 0o777", clip(text), uint64(fs.ModePerm))
	}
	mode := fs.FileMode(n)
	return &mode, nil
}

// chmod sets permissions as a program of the sandbox does.
func (c *call) chmod(name string, mode *fs.FileMode) error {
	if mode == nil {
		return nil
	}
	done, err := c.platform.Processes(c.id).Exec(c.r.Context(), cove.ExecRequest{Argv: []string{"chmod", strconv.FormatUint(uint64(*mode), 8), name}})
	switch {
	case err != nil:
		return err
	case done.ExitCode != 0:
		return cove.Errorf(cove.Denied, "the permissions cannot be changed: %.200s", strings.TrimSpace(string(done.Stderr.Data)))
	}
	return nil
}

// removeVolume removes a file or a folder.
func (c *call) removeVolume() error {
	name, err := c.volumePath(false)
	if err != nil {
		return err
	}
	if name == volumeRoot {
		return cove.InvalidField("path", "the volume itself stays; destroy it, or remove what is in it")
	}
	if err := c.files().Remove(c.r.Context(), name); err != nil {
		return err
	}
	c.done()
	return nil
}
