package cove

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

const maxPathLen = 4096

// validText refuses what cannot stand in a record or be shown on a terminal.
func validText(field, value string, most int) error {
	switch {
	case len(value) > most:
		return InvalidField(field, "is %d bytes long; the most is %d", len(value), most)
	case strings.ContainsRune(value, 0):
		return InvalidField(field, "holds a NUL byte")
	case !utf8.ValidString(value):
		return InvalidField(field, "is not UTF-8")
	}
	return nil
}

// isName reports whether value is made of ASCII letters, digits and the bytes in
// more, and not empty.
func isName(value, more string) bool {
	for i := range len(value) {
		c := value[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return value != ""
}

func atMost(field string, n int) error {
	if n > maxEntries {
		return InvalidField(field, "has %d entries; the most is %d", n, maxEntries)
	}
	return nil
}

func joined[T ~string](list []T) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}

func trimFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// within reports whether the clean absolute path p is dir or below it.
func within(dir, p string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// CleanPath resolves a name that a caller gave: relative names start in the
// workspace, and the result must stay in a place that belongs to the session:
// the workspace, /tmp, /home, or one of more, such as the targets of volumes.
// It is a check on words; the sandbox resolves links itself, inside.
func CleanPath(name string, more ...string) (string, error) {
	if name == "" {
		return "", InvalidField("path", "is empty")
	}
	if len(name) > maxPathLen {
		return "", InvalidField("path", "is %d bytes long; the most is %d", len(name), maxPathLen)
	}
	if strings.ContainsRune(name, 0) {
		return "", InvalidField("path", "holds a NUL byte")
	}
	p := name
	if !path.IsAbs(p) {
		p = path.Join(WorkspacePath, p)
	}
	p = path.Clean(p)
	for _, root := range append([]string{WorkspacePath, "/tmp", "/home"}, more...) {
		if within(root, p) {
			return p, nil
		}
	}
	return "", InvalidField("path", "%s leaves the workspace; use a path below %s, /tmp or /home", fmt.Sprintf("%.200q", name), WorkspacePath)
}
