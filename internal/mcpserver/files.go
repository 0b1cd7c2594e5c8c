package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cove-sandbox/cove"
)

type readIn struct {
	Path     string `json:"path,omitempty" jsonschema:"the file; relative names start in /workspace"`
	OutputID string `json:"output_id,omitempty" jsonschema:"instead of a path: an output that was cut"`
	Offset   int64  `json:"offset,omitempty" jsonschema:"the byte to begin at"`
	Limit    int64  `json:"limit,omitempty" jsonschema:"the most bytes to read; left out, as many as fit into an answer"`
	Session  string `json:"session_id,omitempty" jsonschema:"left out, your own sandbox"`
}

type readOut struct {
	place

	Path    string `json:"path,omitempty"`
	Content string `json:"content,omitempty" jsonschema:"the text, where it is one"`
	Type    string `json:"mime_type,omitempty"`
	Size    int64  `json:"size" jsonschema:"bytes in all"`
	Offset  int64  `json:"offset"`
	Next    int64  `json:"next_offset" jsonschema:"where to go on; -1 at the end"`
}

func readFile(ctx context.Context, c *call, in readIn) (answer, error) {
	switch {
	case (in.Path == "") == (in.OutputID == ""):
		return answer{}, cove.InvalidField("path", "give a path or an output_id, and not both")
	case in.Offset < 0 || in.Limit < 0:
		return answer{}, cove.InvalidField("offset", "offset and limit are numbers of bytes from 0 on")
	}
	most := int64(c.face.room())
	if in.Limit > 0 {
		most = min(most, in.Limit)
	}
	if in.OutputID != "" {
		return readOutput(ctx, c, in, most)
	}
	var part filePart
	at, err := c.in(ctx, where{Session: in.Session}, func(ctx context.Context, id cove.ID) (err error) {
		part, err = readPart(ctx, c.platform.Files(id), in.Path, in.Offset, most)
		return err
	})
	if err != nil {
		return answer{}, err
	}
	out := readOut{place: at, Path: part.path, Type: part.kind, Size: part.size, Offset: in.Offset, Next: -1}
	if part.kind == textKind {
		return c.shownPart(out, part.data), nil
	}
	return answer{value: out, show: part.seen(at.Session)}, nil
}

// readOutput reads a part of what a program wrote.
func readOutput(ctx context.Context, c *call, in readIn, most int64) (answer, error) {
	var page *cove.OutputPage
	at, err := c.in(ctx, where{Session: in.Session}, func(ctx context.Context, id cove.ID) (err error) {
		page, err = c.platform.Processes(id).Output(ctx, cove.OutputID(in.OutputID), cove.OutputRange{Offset: in.Offset, Limit: most})
		return err
	})
	if err != nil {
		return answer{}, err
	}
	return c.shownPart(readOut{place: at, Type: textKind, Size: page.Total, Offset: page.Offset}, page.Data), nil
}

// shownPart shows text from a place on. What costs too much is left for the next
// call.
func (c *call) shownPart(out readOut, data []byte) answer {
	if int64(len(data))+out.Offset < out.Size {
		if whole := wholeRunes(data); len(whole) > 0 {
			data = whole
		}
	}
	// Counted in what is there, not in what is shown of it: the next call goes on there.
	kept := upTo(string(data), c.face.room()-cost(out.Path))
	used := int64(len(kept))
	out.Content = strings.ToValidUTF8(kept, "\uFFFD")
	note := ""
	if out.Next = out.Offset + used; out.Next >= out.Size || used == 0 {
		out.Next = -1
	} else {
		note = fmt.Sprintf("[bytes %d to %d of %d; go on with offset %d]", out.Offset, out.Next-1, out.Size, out.Next)
	}
	return answer{value: out, show: []mcp.Content{text(lines(out.Content, note, out.notes()))}}
}

// filePart is a part of a file, and what the file is.
type filePart struct {
	path string
	kind string
	size int64
	data []byte // a part of text, or a whole image
}

const textKind = "text/plain"

// sniff is how much of a file tells what it is.
const sniff = 512

// readPart reads from a file as much as can be shown: a part of text, or an image.
// Of other files it only says what they are.
func readPart(ctx context.Context, files cove.Files, name string, offset, most int64) (filePart, error) {
	info, err := stat(ctx, files, name)
	if err != nil {
		return filePart{}, err
	}
	part := filePart{path: info.Path, size: int64(info.Size)}
	head, err := readUpTo(ctx, files, info.Path, 0, sniff)
	if err != nil {
		return filePart{}, err
	}
	part.kind = kindOf(head)
	switch {
	case part.kind == textKind && offset < part.size:
		part.data, err = readUpTo(ctx, files, info.Path, offset, most)
	case slices.Contains(pictures, part.kind) && info.Size <= maxImage:
		part.data, err = readUpTo(ctx, files, info.Path, 0, maxImage)
	}
	return part, err
}

// maxLinks bounds how many links are followed to a file.
const maxLinks = 8

// stat describes a file that can be read, which is at the end of its links.
func stat(ctx context.Context, files cove.Files, name string) (cove.FileInfo, error) {
	info, err := files.Stat(ctx, name)
	for range maxLinks {
		if err != nil || info.Mode&fs.ModeSymlink == 0 {
			break
		}
		target := info.Link
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(info.Path), target)
		}
		info, err = files.Stat(ctx, target)
	}
	switch {
	case err != nil:
		return cove.FileInfo{}, err
	case info.Mode.IsDir():
		return cove.FileInfo{}, cove.InvalidField("path", "%.200q is a directory", name).Remedy("list_files shows what is in it")
	case !info.Mode.IsRegular():
		return cove.FileInfo{}, cove.InvalidField("path", "%.200q is no file that can be read", name)
	}
	return info, nil
}

func readUpTo(ctx context.Context, files cove.Files, name string, offset, most int64) ([]byte, error) {
	r, err := files.Read(ctx, name, offset, most)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(r, most))
}

// seen is how a file that is no text is shown.
func (p filePart) seen(session string) []mcp.Content {
	if p.data != nil {
		return []mcp.Content{&mcp.ImageContent{Data: p.data, MIMEType: p.kind}}
	}
	seen := []mcp.Content{text(fmt.Sprintf("[%s is no text: %s, %d bytes; look at it with a program]", path.Base(p.path), p.kind, p.size))}
	if strings.HasPrefix(p.path, cove.WorkspacePath+"/") { // others are no resources
		seen = append(seen, &mcp.ResourceLink{URI: uriOf(session, p.path), Name: path.Base(p.path), MIMEType: p.kind, Size: new(p.size)})
	}
	return seen
}

type writeIn struct {
	Path     string `json:"path" jsonschema:"the file; relative names start in /workspace"`
	Content  string `json:"content"`
	Encoding string `json:"encoding,omitempty" jsonschema:"utf-8, which is the default, or base64 for what is no text"`
	Session  string `json:"session_id,omitempty" jsonschema:"left out, your own sandbox"`
}

type writeOut struct {
	place

	Path string `json:"path"`
	Size int64  `json:"size" jsonschema:"bytes"`
}

func writeFile(ctx context.Context, c *call, in writeIn) (answer, error) {
	data := []byte(in.Content)
	switch strings.ToLower(in.Encoding) {
	case "", "utf-8", "utf8", "text":
	case "base64":
		var err error
		if data, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return answer{}, cove.InvalidField("content", "is not base64: %s", err)
		}
	default:
		return answer{}, cove.InvalidField("encoding", "%.40q is unknown; use utf-8 or base64", in.Encoding)
	}
	if in.Path == "" {
		return answer{}, cove.InvalidField("path", "is empty")
	}
	at, err := c.in(ctx, where{Session: in.Session}, func(ctx context.Context, id cove.ID) error {
		return c.platform.Files(id).Write(ctx, in.Path, bytes.NewReader(data), 0)
	})
	if err != nil {
		return answer{}, err
	}
	out := writeOut{place: at, Path: in.Path, Size: int64(len(data))}
	if !path.IsAbs(out.Path) {
		out.Path = path.Join(cove.WorkspacePath, out.Path)
	}
	fit(c.face.room(), &out.Path)
	return answer{value: out, show: []mcp.Content{text(lines(fmt.Sprintf("wrote %d bytes to %s", out.Size, out.Path), at.notes()))}}, nil
}

type listIn struct {
	Path    string `json:"path,omitempty" jsonschema:"the directory; left out, /workspace"`
	Depth   int    `json:"depth,omitempty" jsonschema:"how many levels; left out, 1"`
	Session string `json:"session_id,omitempty" jsonschema:"left out, your own sandbox"`
}

type listOut struct {
	place

	Path      string `json:"path"`
	Entries   []file `json:"entries"`
	Truncated bool   `json:"truncated" jsonschema:"there are more than are shown"`
}

type file struct {
	Path     string    `json:"path"`
	Type     string    `json:"type" jsonschema:"file, directory, link or other"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Link     string    `json:"link,omitempty" jsonschema:"where a link points"`
}

// maxEntries bounds a list of files, before it is cut to the budget.
const maxEntries = 1000

func listFiles(ctx context.Context, c *call, in listIn) (answer, error) {
	if in.Path == "" {
		in.Path = cove.WorkspacePath
	}
	if in.Depth == 0 {
		in.Depth = 1
	}
	if in.Depth < 0 || in.Depth > cove.MaxListDepth {
		return answer{}, cove.InvalidField("depth", "%d is out of range; use 1 to %d", in.Depth, cove.MaxListDepth)
	}
	out := listOut{Path: in.Path}
	at, err := c.in(ctx, where{Session: in.Session}, func(ctx context.Context, id cove.ID) error {
		out.Entries, out.Truncated = []file{}, false
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for info, err := range c.platform.Files(id).List(ctx, in.Path, in.Depth) {
			if err != nil {
				return err
			}
			if len(out.Entries) == maxEntries {
				out.Truncated = true
				break
			}
			out.Entries = append(out.Entries, fileOf(info))
		}
		return nil
	})
	if err != nil {
		return answer{}, err
	}
	out.place = at
	if n := within(c.face.room()-2*cost(in.Path), out.Entries); n < len(out.Entries) {
		out.Entries, out.Truncated = out.Entries[:n], true
	}
	return answer{value: out}, nil
}

func fileOf(info cove.FileInfo) file {
	f := file{Path: strings.ToValidUTF8(info.Path, "\uFFFD"), Type: "other", Size: int64(info.Size), Modified: info.Modified.UTC(), Link: strings.ToValidUTF8(info.Link, "\uFFFD")}
	switch {
	case info.Mode.IsRegular():
		f.Type = "file"
	case info.Mode.IsDir():
		f.Type = "directory"
	case info.Mode&fs.ModeSymlink != 0:
		f.Type = "link"
	}
	return f
}
