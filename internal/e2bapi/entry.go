package e2bapi

import (
	"context"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// metaPrefix begins the keys of the attributes that clients see as metadata.
const metaPrefix = "e2b."

// maxLinks is how many links are followed to what they lead to.
const maxLinks = 8

// entry describes a file. Of a link it has the type and the mode of what the link leads
// to.
type entry struct {
	Name        string            `json:"name"`
	Type        string            `json:"type"`
	Path        string            `json:"path"`
	Size        int64             `json:"size,string"`
	Mode        uint32            `json:"mode"`
	Permissions string            `json:"permissions"`
	Owner       string            `json:"owner"`
	Group       string            `json:"group"`
	Modified    time.Time         `json:"modifiedTime"`
	Target      string            `json:"symlinkTarget,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	IsLink      bool              `json:"isSymlink,omitempty"`
}

// entryOf describes a file to a client.
func entryOf(ctx context.Context, files cove.Files, info cove.FileInfo) entry {
	e := entry{
		Name: path.Base(outward(info.Path)), Path: outward(info.Path), Size: int64(info.Size),
		Owner: nameOf(info.UID), Group: nameOf(info.GID), Modified: info.Modified.UTC(), Metadata: metadataOf(info.Meta),
	}
	if info.Mode&fs.ModeSymlink != 0 {
		e.IsLink, e.Target = true, outward(targetOf(info))
		if target, err := behind(ctx, files, info); err == nil {
			info = target
		}
	}
	e.Type, e.Mode, e.Permissions = typeOf(info.Mode), uint32(info.Mode.Perm()), info.Mode.String()
	return e
}

// typeOf is the word for what a file is. A link is one only where it leads nowhere that
// can be seen.
func typeOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "FILE_TYPE_FILE"
	case mode.IsDir():
		return "FILE_TYPE_DIRECTORY"
	case mode&fs.ModeSymlink != 0:
		return "FILE_TYPE_SYMLINK"
	default:
		return "FILE_TYPE_UNSPECIFIED"
	}
}

// sandboxUser is the number of the one user of a sandbox.
const sandboxUser = 1000

// nameOf is who has a number: the sandbox has one user beside root.
func nameOf(id int) string {
	switch {
	case id == 0:
		return "root"
	case id == sandboxUser:
		return "user"
	case id < 0:
		return ""
	default:
		return strconv.Itoa(id)
	}
}

// metadataOf returns what of a file's attributes clients see.
func metadataOf(meta map[string]string) map[string]string {
	var seen map[string]string
	for key, value := range meta {
		if name, ok := strings.CutPrefix(key, metaPrefix); ok && name != "" {
			if seen == nil {
				seen = map[string]string{}
			}
			seen[name] = value
		}
	}
	return seen
}

// targetOf is where a link points, as an absolute name.
func targetOf(link cove.FileInfo) string {
	if path.IsAbs(link.Link) {
		return path.Clean(link.Link)
	}
	return path.Join(path.Dir(link.Path), link.Link)
}

// behind returns what is at the end of a chain of links.
func behind(ctx context.Context, files cove.Files, link cove.FileInfo) (cove.FileInfo, error) {
	for range maxLinks {
		name, err := inward(targetOf(link))
		if err != nil {
			return link, err
		}
		info, err := files.Stat(ctx, name)
		if err != nil || info.Mode&fs.ModeSymlink == 0 {
			return info, err
		}
		link = info
	}
	return link, cove.InvalidField("path", "%.200q leads through too many links", outward(link.Path))
}

// find describes what a name leads to.
func find(ctx context.Context, files cove.Files, name string) (cove.FileInfo, error) {
	info, err := files.Stat(ctx, name)
	if err == nil && info.Mode&fs.ModeSymlink != 0 {
		return behind(ctx, files, info)
	}
	return info, err
}
