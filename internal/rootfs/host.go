package rootfs

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// mostRead bounds what is read of one of the host's own files.
const mostRead = 64 << 20

// Facts says what a layer over this host depends on: its distribution, its kind
// of processor and its Python, in whose version's directories modules are.
func Facts(top string) string {
	id, version := "unknown", ""
	for line := range strings.Lines(readText(filepath.Join(top, "etc/os-release"))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"'`)
		switch name {
		case "ID":
			id = value
		case "VERSION_ID":
			version = " " + value
		}
	}
	facts := id + version + " " + runtime.GOARCH
	if to, err := os.Readlink(filepath.Join(top, "usr/bin/python3")); err == nil {
		facts += " " + filepath.Base(to)
	}
	return facts
}

// readText reads a file of the host; "" where there is none.
func readText(path string) string {
	f, err := os.Open(path) //nolint:gosec // the host's own
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, _ := io.ReadAll(io.LimitReader(f, mostRead)) // half of it is no reason to fail
	return string(text)
}

// program reports whether the host's /usr has a program. Where it keeps it
// elsewhere, sandboxes may have it too, but a layer over /usr would not matter.
func program(top, name string) bool {
	for _, dir := range []string{"usr/local/bin", "usr/bin"} {
		if info, err := os.Stat(filepath.Join(top, dir, name)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}

// module reports whether the Python in /usr has a module.
func module(top, name string) bool {
	for _, pattern := range []string{"usr/lib/python3/dist-packages", "usr/lib/python3.*/site-packages", "usr/lib64/python3.*/site-packages", "usr/local/lib/python3.*/dist-packages"} {
		found, _ := filepath.Glob(filepath.Join(top, pattern, name, "__init__.py")) // the pattern is good
		if len(found) > 0 {
			return true
		}
	}
	return false
}

// nodeVersion is the major version of the Node in /usr, 0 if nothing says it
// without running it.
func nodeVersion(top string) int {
	const define = "#define NODE_MAJOR_VERSION "
	for line := range strings.Lines(readText(filepath.Join(top, "usr/include/node/node_version.h"))) {
		if text, ok := strings.CutPrefix(line, define); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(text))
			return n
		}
	}
	return Major(installed(readText(filepath.Join(top, "var/lib/dpkg/status")), "nodejs"))
}

// installed is the version of a package that dpkg has installed.
func installed(status, name string) string {
	for paragraph := range strings.SplitSeq(status, "\n\n") {
		rest, ok := strings.CutPrefix(strings.TrimLeft(paragraph, "\n"), "Package: "+name+"\n")
		if !ok || !strings.Contains(rest, "Status: install ok installed") {
			continue
		}
		for line := range strings.Lines(rest) {
			if version, ok := strings.CutPrefix(line, "Version: "); ok {
				return strings.TrimSpace(version)
			}
		}
	}
	return ""
}

// Major is the first number of a version such as 2:20.19.2-1; 0 if there is none.
func Major(version string) int {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		version = version[:end]
	}
	n, _ := strconv.Atoi(version)
	return n
}
