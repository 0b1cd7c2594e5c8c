package wire

import (
	"io/fs"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
)

// File is the answer about a file.
type File struct {
	Path       string     `json:"path,omitempty"`
	PathBase64 []byte     `json:"path_base64,omitempty" jsonschema:"in the place of path where that is not UTF-8"`
	Type       FileType   `json:"type" jsonschema:"file, dir, symlink, pipe, socket, device, char_device or other"`
	SizeBytes  cove.Bytes `json:"size"`
	Mode       string     `json:"mode" jsonschema:"permissions in octal, such as 0644"`
	Modified   time.Time  `json:"modified"`
	Link       string     `json:"link,omitempty" jsonschema:"where a symbolic link points"`
	LinkBase64 []byte     `json:"link_base64,omitempty"`

	UID  *int              `json:"uid,omitempty" jsonschema:"whose it is, by the sandbox's numbers; left out where nobody knows"`
	GID  *int              `json:"gid,omitempty"`
	Meta map[string]string `json:"meta,omitempty" jsonschema:"attributes of its own"`
}

// FileType is what a file is.
type FileType string

var fileTypes = map[fs.FileMode]FileType{
	0: "file", fs.ModeDir: "dir", fs.ModeSymlink: "symlink", fs.ModeNamedPipe: "pipe", fs.ModeSocket: "socket",
	fs.ModeDevice: "device", fs.ModeDevice | fs.ModeCharDevice: "char_device", fs.ModeIrregular: "other",
}

// modeBits are the bits beside the permissions, as chmod counts them.
var modeBits = []struct {
	mode fs.FileMode
	bit  uint64
}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}}

// FormatMode writes the permissions of mode in octal.
func FormatMode(mode fs.FileMode) string {
	n := uint64(mode.Perm())
	for _, b := range modeBits {
		if mode&b.mode != 0 {
			n |= b.bit
		}
	}
	return "0" + strconv.FormatUint(n, 8)
}

// ParseMode reads permissions in octal, such as 644 or 0755.
func ParseMode(text string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(text, 8, 16)
	if err != nil || n > 0o7777 {
		return 0, cove.InvalidField("mode", "%.40q is not a file mode; use octal such as 0644", text)
	}
	mode := fs.FileMode(n & 0o777)
	for _, b := range modeBits {
		if n&b.bit != 0 {
			mode |= b.mode
		}
	}
	return mode, nil
}

// FileOf returns the form of f.
func FileOf(f cove.FileInfo) File {
	w := File{SizeBytes: f.Size, Mode: FormatMode(f.Mode), Modified: f.Modified, UID: known(f.UID), GID: known(f.GID), Meta: f.Meta}
	w.Path, w.PathBase64 = names(f.Path)
	w.Link, w.LinkBase64 = names(f.Link)
	w.Type = "other"
	if t, ok := fileTypes[f.Mode.Type()]; ok {
		w.Type = t
	}
	return w
}

// Cove returns the platform's own form.
func (w File) Cove() cove.FileInfo {
	f := cove.FileInfo{Path: unnames(w.Path, w.PathBase64), Size: w.SizeBytes, Modified: w.Modified, Link: unnames(w.Link, w.LinkBase64)}
	f.UID, f.GID, f.Meta = orUnknown(w.UID), orUnknown(w.GID), w.Meta
	f.Mode, _ = ParseMode(w.Mode) // a mode that is none shows as no permissions
	for mode, t := range fileTypes {
		if t == w.Type {
			f.Mode |= mode
		}
	}
	return f
}

// known is the number of a user or group, nil where nobody knows it.
func known(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

func orUnknown(n *int) int {
	if n == nil || *n < 0 {
		return -1
	}
	return *n
}

// Change is one thing that happened to a file.
type Change struct {
	Kind       cove.ChangeKind `json:"kind" jsonschema:"watching, created, modified, removed or overflow"`
	Path       string          `json:"path,omitempty"`
	PathBase64 []byte          `json:"path_base64,omitempty"`
	Moved      bool            `json:"moved,omitempty" jsonschema:"what was removed has another name now"`
	Attributes bool            `json:"attributes,omitempty" jsonschema:"of what was modified, permissions, owner, times or attributes changed, and not what it holds"`
}

// ChangeOf returns the form of c.
func ChangeOf(c cove.Change) Change {
	w := Change{Kind: c.Kind, Moved: c.Moved, Attributes: c.Attributes}
	w.Path, w.PathBase64 = names(c.Path)
	return w
}

// Cove returns the platform's own form.
func (w Change) Cove() cove.Change {
	return cove.Change{Kind: w.Kind, Path: unnames(w.Path, w.PathBase64), Moved: w.Moved, Attributes: w.Attributes}
}

// MkdirRequest makes a directory.
type MkdirRequest struct {
	Path       string `json:"path,omitempty"`
	PathBase64 []byte `json:"path_base64,omitempty"`
}

// MkdirRequestOf returns the form of a request for a directory.
func MkdirRequestOf(name string) MkdirRequest {
	var w MkdirRequest
	w.Path, w.PathBase64 = names(name)
	return w
}

// Name returns the directory's name.
func (w MkdirRequest) Name() string { return unnames(w.Path, w.PathBase64) }

// MoveRequest gives a file another name.
type MoveRequest struct {
	From       string `json:"from,omitempty"`
	FromBase64 []byte `json:"from_base64,omitempty"`
	To         string `json:"to,omitempty"`
	ToBase64   []byte `json:"to_base64,omitempty"`
}

// MoveRequestOf returns the form of a move.
func MoveRequestOf(from, to string) MoveRequest {
	var w MoveRequest
	w.From, w.FromBase64 = names(from)
	w.To, w.ToBase64 = names(to)
	return w
}

// Names returns the old name and the new one.
func (w MoveRequest) Names() (from, to string) {
	return unnames(w.From, w.FromBase64), unnames(w.To, w.ToBase64)
}

// TagRequest gives a file attributes.
type TagRequest struct {
	Path       string            `json:"path,omitempty"`
	PathBase64 []byte            `json:"path_base64,omitempty"`
	Meta       map[string]string `json:"meta" jsonschema:"1 to 32 attributes; keys of printable ASCII, values of at most 512 bytes"`
}

// TagRequestOf returns the form of a request for attributes.
func TagRequestOf(name string, meta map[string]string) TagRequest {
	w := TagRequest{Meta: meta}
	w.Path, w.PathBase64 = names(name)
	return w
}

// Name returns the file's name.
func (w TagRequest) Name() string { return unnames(w.Path, w.PathBase64) }
