//go:build linux

package agent

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// defaultPath is searched where the environment has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// searchPath is the PATH of an environment.
func searchPath(env []string) []string {
	list := defaultPath
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			list = v
		}
	}
	return strings.Split(list, ":")
}

// lookPath finds a program as a shell does: a name with a slash is what it is,
// others are searched in the PATH of the program's own environment.
func lookPath(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", &failed{protocol.ReasonExec, unix.ENOENT, name}
	}
	if strings.Contains(name, "/") {
		return name, nil
	}
	why := unix.ENOENT
	for _, d := range searchPath(env) {
		file := path.Join(d, name)
		if !path.IsAbs(file) {
			file = path.Join(dir, d, name)
		}
		var st unix.Stat_t
		if unix.Stat(file, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		why = unix.EACCES
	}
	return "", &failed{protocol.ReasonExec, why, name}
}
