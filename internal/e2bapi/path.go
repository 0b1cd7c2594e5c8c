package e2bapi

import (
	"path"
	"strings"

	"github.com/cove-sandbox/cove"
)

// home is what clients call the workspace: programs find it there too, by a link.
const home = "/home/user"

// maxName bounds the name of a file.
const maxName = 4096

// inward returns the name that a client's name for a file stands for. Relative ones
// and those that begin with a tilde start at home.
func inward(name string) (string, error) {
	switch {
	case len(name) > maxName:
		return "", cove.InvalidField("path", "is %d bytes long; the most is %d", len(name), maxName)
	case strings.ContainsRune(name, 0):
		return "", cove.InvalidField("path", "holds a NUL byte")
	case name == "~" || strings.HasPrefix(name, "~/"):
		name = home + name[1:]
	case !path.IsAbs(name):
		name = home + "/" + name
	}
	return swap(path.Clean(name), home, cove.WorkspacePath), nil
}

// outward returns what a client calls a file.
func outward(name string) string { return swap(name, cove.WorkspacePath, home) }

// swap puts one directory in the place of another at the beginning of a clean name.
func swap(name, from, to string) string {
	if rest, ok := strings.CutPrefix(name, from); ok && (rest == "" || rest[0] == '/') {
		return to + rest
	}
	return name
}
