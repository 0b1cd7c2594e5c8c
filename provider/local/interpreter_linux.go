package local

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove/provider/local/fence"
)

// interpreters are the programs that a sandbox should have even where the host
// keeps them outside of /usr.
var interpreters = []string{"python3", "node"}

// addInterpreters shows the interpreters that are not in /usr and that lookPath
// finds, each with the tree it was installed in, and returns the directories to
// search for them.
func addInterpreters(r *fence.Root, top string, lookPath func(string) (string, error)) (path []string) {
	for _, name := range interpreters {
		if inUsr(top, name) {
			continue
		}
		found, err := lookPath(name)
		if err != nil {
			continue
		}
		real, ok := realInterpreter(found, name)
		if !ok {
			continue
		}
		prefix := filepath.Dir(filepath.Dir(real))
		if !installation(real) || hasDir(r, prefix) {
			continue
		}
		addParents(r, prefix)
		r.Binds = append(r.Binds, fence.Bind{Source: prefix, Path: prefix, Dir: true})
		path = append(path, filepath.Dir(real))
	}
	return path
}

// installation reports whether the tree around a program is one that was
// installed, and nothing else: a whole top of the host is more than that, and so
// is somebody's home or the hidden place in it where his own things are.
func installation(program string) bool {
	bin := filepath.Dir(program)
	prefix := filepath.Dir(bin)
	if filepath.Base(bin) != "bin" || filepath.Dir(prefix) == "/" || strings.HasPrefix(filepath.Base(prefix), ".") {
		return false
	}
	if home, err := os.UserHomeDir(); err == nil && (home == prefix || strings.HasPrefix(home, prefix+"/")) {
		return false
	}
	entries, err := os.ReadDir(prefix)
	return err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return e.IsDir() && strings.HasPrefix(e.Name(), ".") // as homes have
	})
}

func inUsr(top, name string) bool {
	for _, dir := range []string{"usr/local/bin", "usr/bin"} {
		if executable(filepath.Join(top, dir, name)) {
			return true
		}
	}
	return false
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// realInterpreter follows links, and looks behind the scripts that version
// managers put into the PATH: those take a quarter of a second to find out what
// stands in a file.
func realInterpreter(path, name string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	if !isScript(real) {
		return real, executable(real)
	}
	dir := filepath.Dir(real)
	if filepath.Base(dir) != "shims" {
		return "", false
	}
	for _, candidate := range managed(filepath.Dir(dir), name) {
		if real, err := filepath.EvalSymlinks(candidate); err == nil && executable(real) && !isScript(real) {
			return real, true
		}
	}
	return "", false
}

// managed returns where a version manager may have installed a program: the
// version that is set for everywhere first, then the newest by name.
func managed(home, name string) []string {
	var list []string
	if text, err := readSmall(filepath.Join(home, "version")); err == nil {
		for version := range strings.FieldsSeq(string(text)) {
			if filepath.IsLocal(version) {
				list = append(list, filepath.Join(home, "versions", version, "bin", name))
			}
		}
	}
	for _, pattern := range []string{filepath.Join(home, "versions", "*", "bin", name), filepath.Join(home, "installs", "*", "*", "bin", name)} {
		found, _ := filepath.Glob(pattern) // the pattern is good
		slices.Reverse(found)
		list = append(list, found...)
	}
	return list
}

func isScript(path string) bool {
	f, err := os.Open(path) //nolint:gosec // found in the operator's own PATH
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	var head [2]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && bytes.Equal(head[:], []byte("#!"))
}

// lookPath finds a program as the operator's own shell does.
func lookPath(name string) (string, error) { return exec.LookPath(name) }
