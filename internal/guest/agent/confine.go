//go:build linux

package agent

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/forkexec"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

// minLandlock is the first version of landlock that lets files be moved between
// directories.
const minLandlock = 2

// programDirs are directories that hold programs and little else. A program under a
// list cannot read them, except for what is on the list: otherwise it could have the
// ELF loader, which it may execute, load any of them.
var programDirs = []string{
	"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/games", "/usr/libexec",
	"/usr/local/bin", "/usr/local/sbin", "/usr/local/games", "/usr/local/libexec",
}

// multiCall are executables that are many programs: a list cannot hold one of these
// programs and not the others.
var multiCall = []string{"busybox", "coreutils", "toybox"}

// confines reports whether programs can be kept to a list: the kernel has landlock,
// the sandbox's user cannot change the programs, and each is a file of its own.
var confines = sync.OnceValue(func() bool {
	if forkexec.Probe() != nil { // without /proc, paths cannot be resolved
		return false
	}
	if abi, err := landlock.ABI(); err != nil || abi < minLandlock {
		return false
	}
	for _, dir := range programDirs {
		if unix.Access(dir, unix.W_OK) == nil {
			return false
		}
	}
	for _, name := range []string{"/bin/ls", "/usr/bin/cat"} {
		if real, err := realPath(name); err == nil && slices.Contains(multiCall, path.Base(real)) {
			return false
		}
	}
	return true
})

// confinement is what a list means in this sandbox. Programs lie in directories that
// nothing in the sandbox can change, so it is the same for every start.
type confinement struct {
	dirs    []string        // where names are found
	execute []landlock.Rule // the files that may be executed
	filter  seccomp.Program
}

// confinements are those of the lists that were asked for last.
type confinements struct {
	mu  sync.Mutex
	all map[string]*confinement
}

// mostLists bounds how many are remembered: a session has one list.
const mostLists = 4

// of finds or makes the confinement for a list under a PATH.
func (c *confinements) of(list *protocol.Programs, env []string) (*confinement, error) {
	if !confines() {
		return nil, &failed{protocol.ReasonUnknown, unix.EOPNOTSUPP, "landlock"}
	}
	dirs := searchPath(env)
	key := fmt.Sprintf("%q", []any{list.Names, list.Helpers, list.Offline, dirs})
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.all[key]; one != nil {
		return one, nil
	}
	one, err := newConfinement(list, dirs)
	if err != nil {
		return nil, err
	}
	if c.all == nil || len(c.all) >= mostLists {
		c.all = map[string]*confinement{}
	}
	c.all[key] = one
	return one, nil
}

func newConfinement(list *protocol.Programs, dirs []string) (*confinement, error) {
	filter, err := listFilter(list.Offline)
	if err != nil {
		return nil, err
	}
	c := &confinement{filter: filter, dirs: slices.DeleteFunc(dirs, func(dir string) bool { return !path.IsAbs(dir) || !trusted(dir) })}
	x := executables{seen: map[string]bool{}, dirs: c.dirs}
	for _, name := range append([]string{"bash", "sh"}, list.Names...) { // shells run lines, also those of system(3)
		if file, err := c.find(name); err == nil {
			x.add(file, 0)
		}
	}
	c.execute = x.rules()
	for _, helper := range list.Helpers {
		if trusted(helper) {
			c.execute = append(c.execute, landlock.Rule{Path: helper, Allow: landlock.Execute | landlock.ReadFile})
		}
	}
	return c, nil
}

// open makes the ruleset of one start: what is mounted at the workspace, whose files can
// be read, may be another file system than at the last one. The caller closes it.
func (c *confinement) open() (*forkexec.Confinement, error) {
	rules := slices.Concat(c.execute, []landlock.Rule{{Path: "/", Allow: landlock.Move}}, readable("/"))
	fd, _, err := landlock.Open(landlock.Ruleset{Rules: rules, Handled: landlock.Execute | landlock.ReadFile})
	if err != nil {
		return nil, err
	}
	return &forkexec.Confinement{Ruleset: fd, Filter: c.filter}, nil
}

// find is the file that a name on the list stands for, or a path leads to.
func (c *confinement) find(name string) (string, error) {
	why := unix.ENOENT
	dirs := c.dirs
	if path.IsAbs(name) {
		dirs, name = []string{path.Dir(name)}, path.Base(name)
		if !trusted(dirs[0]) {
			return "", &failed{protocol.ReasonExec, unix.EACCES, name}
		}
	}
	for _, dir := range dirs {
		file := path.Join(dir, name)
		var st unix.Stat_t
		if strings.Contains(name, "/") || unix.Stat(file, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil && trusted(file) {
			return file, nil
		}
		why = unix.EACCES
	}
	return "", &failed{protocol.ReasonExec, why, name}
}

// trusted reports whether the sandbox's user cannot change a file or directory of the
// sandbox itself.
func trusted(name string) bool {
	real, err := realPath(name)
	if err != nil {
		return false
	}
	for at := real; ; at = path.Dir(at) {
		if unix.Access(at, unix.W_OK) == nil {
			return false
		}
		if at == "/" {
			return true
		}
	}
}

// realPath is a path without symbolic links.
func realPath(name string) (string, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buf)
	if err != nil {
		return "", err
	}
	if real := string(buf[:n]); path.IsAbs(real) {
		return real, nil
	}
	return "", unix.ENOENT
}

// maxNames bounds how many entries of one directory get a rule; others stay unreadable.
const maxNames = 4096

// names are the entries of a directory; none if it cannot be listed.
func names(dir string) []string {
	f, err := os.Open(dir) //nolint:gosec // we run as the sandbox's user
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	all, _ := f.Readdirnames(maxNames) // what was read until an error counts
	return all
}

// readable are the rules by which files below a directory can be read, except for
// programs.
func readable(dir string) []landlock.Rule {
	var rules []landlock.Rule
	for _, name := range names(dir) {
		at := path.Join(dir, name)
		var st unix.Stat_t
		if unix.Lstat(at, &st) != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK || slices.Contains(programDirs, at) {
			continue
		}
		if slices.ContainsFunc(programDirs, func(p string) bool { return strings.HasPrefix(p, at+"/") }) {
			rules = append(rules, readable(at)...)
			continue
		}
		rules = append(rules, landlock.Rule{Path: at, Allow: landlock.ReadFile})
	}
	return rules
}

// listFilter refuses the making of files that landlock cannot keep from being
// executed, because they are in no file system, and with offline the network.
func listFilter(offline bool) (seccomp.Program, error) {
	p := seccomp.Policy{
		Rules:   []seccomp.Rule{{Calls: []string{"memfd_create"}, Else: seccomp.Fail(unix.ENOSYS)}},
		Default: seccomp.Allow, Newer: seccomp.Allow,
	}
	if offline {
		p.Rules = append(p.Rules, seccomp.Rule{
			Calls: []string{"socket"},
			Cases: []seccomp.Case{{When: []seccomp.Check{{Arg: 0, In: []uint32{unix.AF_INET, unix.AF_INET6}}}, Then: seccomp.Fail(unix.EACCES)}},
			Else:  seccomp.Allow,
		})
	}
	return p.Compile()
}
