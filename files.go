package cove

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// Files is a sandbox's file tree. A Sandbox has one, and a Platform has one
// for each session with policy and journal in front: the contract is the same.
//
// Names are slash-separated and resolved inside the sandbox as its user, never
// on the host; relative ones start in the workspace. A missing file is
// NotFound; a name that cannot be, that goes below a file or through a loop of
// links is Invalid; what the sandbox's user may not touch is Denied; a workspace
// without room is Exhausted with reason workspace_full.
type Files interface {
	// Stat describes a link itself, not what it points to.
	Stat(ctx context.Context, name string) (FileInfo, error)
	// Read returns length bytes from offset on; length 0 means to the end.
	Read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// Write replaces a file, making missing directories. The new content
	// appears whole or not at all: a reader that fails leaves the old file, and
	// an error of ours comes back unchanged. Mode 0 means 0644.
	Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error
	// List yields what is below dir, depth levels deep (1 is dir's own entries),
	// depth first and by name. Links are listed, not followed.
	List(ctx context.Context, dir string, depth int) iter.Seq2[FileInfo, error]
	// Mkdir makes a directory and the missing ones above it. Where a file is, it
	// is Conflict, and so is Move onto a directory that is not empty.
	Mkdir(ctx context.Context, name string) error
	Move(ctx context.Context, from, to string) error
	// Remove deletes a file or a whole directory. A missing one is NotFound, and
	// the workspace itself stays: Invalid.
	Remove(ctx context.Context, name string) error
	// Archive streams dir as a tar with names relative to it. It takes no more
	// room than the files do: hard links are links, and holes are left out where
	// a provider can see them. What Unpack makes of it in an empty directory is
	// what was there, but for sockets and devices.
	Archive(ctx context.Context, dir string) (io.ReadCloser, error)
	// Unpack extracts a tar into dir. Names and hard links that leave dir,
	// entries that go through a link, and devices are Invalid. A symbolic link
	// may say anything: what it points to is looked up inside the sandbox. Each
	// file appears whole or not at all; those before a fault stay.
	Unpack(ctx context.Context, dir string, tar io.Reader) error
	// Watch yields changes below dir until ctx ends. It yields first a Change
	// with Kind Watching, after which no change is missed; a reader that is too
	// slow gets a Change with Kind Overflow and must look for itself.
	Watch(ctx context.Context, dir string) iter.Seq2[Change, error]
	// Tag gives a file or directory attributes of its own, such as
	// [FileInfo.Meta] shows; those that meta does not name stay, and links are
	// followed. Write replaces a file, and with it its attributes. Meta must
	// hold to [CheckMeta]. Where the tree has no attributes it is Unsupported.
	Tag(ctx context.Context, name string, meta map[string]string) error
}

// FilePager is a Files that can go on with a list where a page of it ended.
type FilePager interface {
	// ListPage returns up to limit files of what List yields, after the first skip,
	// and whether there are more. What changes between two pages may be seen or not.
	ListPage(ctx context.Context, dir string, depth, skip, limit int) (page []FileInfo, more bool, err error)
}

// ListPage is that of a [FilePager], and reads from the beginning where f is none.
func ListPage(ctx context.Context, f Files, dir string, depth, skip, limit int) (page []FileInfo, more bool, err error) {
	if pager, ok := f.(FilePager); ok {
		return pager.ListPage(ctx, dir, depth, skip, limit)
	}
	seen := 0
	for info, err := range f.List(ctx, dir, depth) {
		if err != nil {
			return nil, false, err
		}
		if seen++; seen <= skip {
			continue
		}
		if len(page) == limit {
			return page, true, nil
		}
		page = append(page, info)
	}
	return page, false, nil
}

// FileInfo describes one file. Path is absolute.
type FileInfo struct {
	Path     string      `json:"path"`
	Size     Bytes       `json:"size"`
	Mode     fs.FileMode `json:"mode"`
	Modified time.Time   `json:"modified"`
	Link     string      `json:"link,omitempty"` // where a symbolic link points
	UID      int         `json:"uid"`            // whose it is, by the sandbox's numbers; -1 where nobody knows
	GID      int         `json:"gid"`

	// Meta is the file's own attributes: extended ones of the class user,
	// without that word. Those that are no text, and what is beyond the bounds
	// of [CheckMeta], are left out.
	Meta map[string]string `json:"meta,omitempty"`
}

// Change is one thing that happened to a file.
type Change struct {
	Kind ChangeKind `json:"kind"`
	Path string     `json:"path,omitempty"`
	// Moved says of what was Removed that it has another name now. Where that is
	// watched, too, it was Created there.
	Moved bool `json:"moved,omitempty"`
	// Attributes says of what was Modified that it holds what it held: permissions,
	// owner, times or attributes changed.
	Attributes bool `json:"attributes,omitempty"`
}

// ChangeKind is what happened.
type ChangeKind string

// What can happen to a file.
const (
	Watching ChangeKind = "watching" // the watch is in place
	Created  ChangeKind = "created"
	Modified ChangeKind = "modified"
	Removed  ChangeKind = "removed"
	Overflow ChangeKind = "overflow" // changes were lost: look for yourself
)

// MaxListDepth bounds List.
const MaxListDepth = 32

// Bounds on the attributes of a file.
const (
	MaxMeta      = 32           // of one file
	MaxMetaKey   = 200          // bytes of a key
	MaxMetaValue = 512          // bytes of a value
	MaxMetaBytes = 7 * int(KiB) // keys and values of one file together
)

// CheckMeta reports what is wrong with attributes for [Files.Tag]: keys are
// printable ASCII without spaces, values are UTF-8 without NUL bytes, and there
// are no more of both than the bounds above allow.
func CheckMeta(meta map[string]string) error {
	if len(meta) == 0 || len(meta) > MaxMeta {
		return InvalidField("meta", "%d attributes; give 1 to %d", len(meta), MaxMeta)
	}
	total := 0
	for key, value := range meta {
		switch total += len(key) + len(value); {
		case key == "" || len(key) > MaxMetaKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
			return InvalidField("meta", "the key %.40q is not 1 to %d printable ASCII characters", key, MaxMetaKey)
		case len(value) > MaxMetaValue:
			return InvalidField("meta", "the value of %.40q is %d bytes long; the most is %d", key, len(value), MaxMetaValue)
		case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
			return InvalidField("meta", "the value of %.40q is not text", key)
		}
	}
	if total > MaxMetaBytes {
		return InvalidField("meta", "keys and values are %d bytes; the most is %d", total, MaxMetaBytes)
	}
	return nil
}
