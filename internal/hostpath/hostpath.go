// Package hostpath takes paths of the host out of what callers are told: callers that are
// no operators, to whom such a path is the layout of a machine that others share.
//
// It must not decide who is an operator, and must not touch what a log gets.
package hostpath

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Instead is what callers read where a path was.
const Instead = "(a path of the server)"

// Filter knows which paths are the host's. The zero value knows none.
type Filter struct{ roots []string }

// common are roots of the host that no caller names: files in sandboxes are elsewhere.
var common = []string{"/run/cove", "/sys/fs/cgroup", "/tmp/cove-"}

// New returns a filter for paths that begin with one of roots, as they are spelled or as
// links lead there, with the executable, or with one of those that are known anyway.
func New(roots ...string) Filter {
	all := append(slices.Clone(common), roots...)
	if exe, err := os.Executable(); err == nil {
		all = append(all, exe)
	}
	if dir := filepath.Clean(os.TempDir()); dir != "/tmp" {
		all = append(all, dir)
	}
	for _, root := range all {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			all = append(all, real)
		}
	}
	all = slices.DeleteFunc(all, func(root string) bool { return !filepath.IsAbs(root) || filepath.Clean(root) == "/" })
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // what is inside another one first
	return Filter{slices.Compact(all)}
}

// Error returns err without paths of the host: in its message and in its details. Its
// cause, which no caller is told, has them still. An error about the server itself keeps no
// absolute path but those of files in a session; others may quote what the caller sent.
func (f Filter) Error(err error) error {
	e, ok := errors.AsType[*cove.Error](err)
	if !ok {
		return err
	}
	hide := f.Text
	if isServers(e) {
		hide = f.All
	}
	c := *e
	c.Message, c.Details = hide(e.Message), maps.Clone(e.Details)
	if c.Message != e.Message {
		c.Err = e // for the log
	}
	for key, value := range c.Details {
		switch value := value.(type) {
		case string:
			c.Details[key] = hide(value)
		case []string:
			list := slices.Clone(value)
			for i := range list {
				list[i] = hide(list[i])
			}
			c.Details[key] = list
		}
	}
	return &c
}

// isServers reports an error about the server: a full workspace is the caller's own.
func isServers(e *cove.Error) bool {
	switch e.Code { //nolint:exhaustive // the others are about what the caller asked for
	case cove.Unavailable, cove.Internal:
		return true
	case cove.Exhausted:
		return cove.ReasonOf(e) != cove.ReasonWorkspaceFull
	}
	return false
}

// Text returns a text without the paths below the roots.
func (f Filter) Text(text string) string {
	for _, root := range f.roots {
		for from := 0; ; {
			i := strings.Index(text[from:], root)
			if i < 0 {
				break
			}
			i += from
			if !bounds(text, i, root) {
				from = i + 1
				continue
			}
			end := i + len(root)
			end += length(text[end:])
			text = text[:i] + Instead + text[end:]
			from = i + len(Instead)
		}
	}
	return text
}

// All returns a text without any absolute path but those of files in a session.
func (f Filter) All(text string) string {
	text = f.Text(text)
	var b strings.Builder
	for i := 0; i < len(text); {
		if !begins(text, i) {
			b.WriteByte(text[i])
			i++
			continue
		}
		n := length(text[i:])
		if path := text[i : i+n]; within(path, cove.WorkspacePath) || within(path, cove.HomePath) {
			b.WriteString(path)
		} else {
			b.WriteString(Instead)
		}
		i += n
	}
	return b.String()
}

// bounds reports whether a path begins at i that is root or below it, and not one that
// only contains its letters: /workspace/data is not below /data, nor is /database. A root
// that ends with a dash is the beginning of a name.
func bounds(text string, i int, root string) bool {
	if before := text[:i]; before != "" && (isWord(before[i-1]) || before[i-1] == '/') && !strings.HasSuffix(before, "://") {
		return false
	}
	end := i + len(root)
	return end == len(text) || strings.HasSuffix(root, "-") || !isWord(text[end])
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// begins reports whether an absolute path begins at i: not in the middle of a word, nor
// in a URL.
func begins(text string, i int) bool {
	if text[i] != '/' || i+1 == len(text) || !isWord(text[i+1]) {
		return false
	}
	return i == 0 || !isWord(text[i-1]) && text[i-1] != '/'
}

// isWord reports a byte that is part of a name in a path.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-~+@%", c) >= 0 || c >= 0x80
}

// length is how many bytes at the beginning of a text belong to one path.
func length(text string) int {
	n := 0
	for n < len(text) && (isWord(text[n]) || text[n] == '/') {
		n++
	}
	for n > 1 && text[n-1] == '.' { // the end of a sentence
		n--
	}
	return n
}
