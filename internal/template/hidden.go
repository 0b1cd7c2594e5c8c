package template

import (
	"os"
	"path/filepath"
	"strings"
)

// HostSettings returns the directories and the files below /usr of a file tree, and
// below other places of programs, that have settings of that host, with credentials
// among them: npm's and git's of all users, pip's for one Python. What shows programs
// of the host to sandboxes shows nothing there. What is reached by links is meant by
// where it is, if that is shown.
func HostSettings(top string, places ...string) (dirs, files []string) {
	add := func(path string) {
		real, err := filepath.EvalSymlinks(filepath.Join(top, path))
		if err != nil {
			return // there is none
		}
		inside, shown := strings.CutPrefix(real, strings.TrimSuffix(top, "/"))
		shown = shown && strings.HasPrefix(inside, "/usr/")
		for _, p := range places {
			shown = shown || strings.HasPrefix(inside, p+"/")
		}
		switch info, err := os.Lstat(real); {
		case err != nil || !shown:
		case info.IsDir():
			dirs = append(dirs, inside)
		default:
			files = append(files, inside)
		}
	}
	for _, path := range []string{"/usr/etc", "/usr/local/etc", "/usr/pip.conf", "/usr/local/pip.conf"} {
		add(path)
	}
	for _, p := range places { // an environment's etc is more than settings of that host
		add(filepath.Join(p, "etc/npmrc"))
		add(filepath.Join(p, "etc/gitconfig"))
		add(filepath.Join(p, "pip.conf"))
	}
	return dirs, files
}
