package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/agent"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
	"github.com/cove-sandbox/cove/internal/template"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// moreEnv is what tests add to the environment of agents and spawners.
var moreEnv []string

// newPlan is what all sandboxes of a kit have in common.
func (k *kit) newPlan() (*fence.Plan, error) {
	h := k.host
	root, path, err := k.root()
	if err != nil {
		return nil, err
	}
	root.Stage = filepath.Join(h.cfg.Dir, "root")
	p := &fence.Plan{
		Root:   root,
		Host:   host,
		Inside: user, Become: h.become,
		Proc: true, Network: !h.cfg.weak.network, Groups: true,
		Landlock: landlock.Probe() == nil,
		Layers:   h.layers(),
		Nested:   k.template.Preloads(),
		Cover:    !h.cfg.weak.locks,
		Limits:   limits(),
		Shared:   fence.Bounds{Size: int64(sharedSize), Files: sharedFiles},
		Argv:     agent.Args(!h.cfg.weak.kernel),
		Env:      append(agent.Env(), moreEnv...),
	}
	k.path = path
	if !h.become {
		p.Root.Evidence = "/run/proc"
	}
	if h.cfg.weak.settings {
		p.Root.Binds = slices.DeleteFunc(p.Root.Binds, func(b fence.Bind) bool { return b.Source == "" })
	}
	p.Root.Shallow = h.cfg.weak.recursion
	if h.cfg.weak.recursion {
		p.Landlock = false // which would stop the same attacks
	}
	if h.cfg.weak.filter {
		return p, nil
	}
	p.Filter = seccomp.Compiled()
	return p, nil
}

// drawn is what [draw] says, or said already.
func (h *hostSide) drawn() (fence.Root, []string) {
	if h.ahead == nil {
		return draw()
	}
	<-h.ahead.drawn
	return h.ahead.root, h.ahead.path
}

// limits are those of single processes.
func limits() []fence.Limit {
	return []fence.Limit{{Resource: unix.RLIMIT_CORE, Most: coreLimit()}, {Resource: unix.RLIMIT_NOFILE, Most: openFiles()}}
}

// coreLimit is the limit on core files with which the kernel writes none and starts no
// handler of the host either. With 0 it would start one; an ordinary user whose own
// limit is 0 can give no other.
func coreLimit() uint64 {
	const none = 1
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &now) != nil {
		return none
	}
	if now.Max < none {
		now.Max = none
		if unix.Setrlimit(unix.RLIMIT_CORE, &now) != nil {
			return 0
		}
	}
	return none
}

// openFiles is how many files a first process may have open.
func openFiles() uint64 {
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &now) != nil {
		return fewFiles
	}
	// Above our own it cannot be, and where sandboxes are our own user it must be
	// below: see the agent's limit for programs.
	return min(max(now.Max/2, min(now.Max, fewFiles)), mostFiles)
}

// newRoot describes the read-only root: the programs of a host, and nothing of
// what makes it that host.
func newRoot(top, stage string) fence.Root {
	r := bareRoot(stage)
	addPrograms(&r, top)
	addSettings(&r, top)
	return r
}

// hideSettings shows nothing where the programs of a host have settings of it.
func hideSettings(r *fence.Root, top string, places ...string) {
	dirs, files := template.HostSettings(top, places...)
	for _, path := range dirs {
		r.Binds = append(r.Binds, fence.Bind{Path: path, Dir: true})
	}
	for _, path := range files {
		r.Binds = append(r.Binds, fence.Bind{Path: path})
	}
}

// bareRoot is what a root has that is no host's.
func bareRoot(stage string) fence.Root {
	return fence.Root{
		Stage: stage,
		Dirs: []fence.Dir{
			{Path: "/dev", Mode: 0o755},
			{Path: "/dev/pts", Mode: 0o755},
			{Path: "/dev/shm", Mode: 0o755},
			{Path: "/etc", Mode: 0o755},
			{Path: "/etc/ssl", Mode: 0o755},
			{Path: "/home", Mode: 0o755},
			{Path: "/mnt", Mode: 0o755},
			{Path: "/opt", Mode: 0o755},
			{Path: "/proc", Mode: 0o555},
			{Path: "/root", Mode: 0o111}, // somebody's interpreter may be below it
			{Path: "/run", Mode: 0o755},
			{Path: "/srv", Mode: 0o755},
			{Path: "/sys", Mode: 0o555},
			{Path: "/tmp", Mode: 0o755},
			{Path: "/var", Mode: 0o755},
			{Path: cove.WorkspacePath, Mode: 0o755},
		},
		Links: []fence.Link{
			{Path: "/dev/fd", To: "/proc/self/fd"},
			{Path: "/dev/ptmx", To: "pts/ptmx"},
			{Path: "/dev/stderr", To: "/proc/self/fd/2"},
			{Path: "/dev/stdin", To: "/proc/self/fd/0"},
			{Path: "/dev/stdout", To: "/proc/self/fd/1"},
			{Path: "/etc/mtab", To: "/proc/self/mounts"},
			{Path: cove.HomePath, To: cove.WorkspacePath},
			{Path: "/var/run", To: "/run"},
			{Path: "/var/tmp", To: "/tmp"},
		},
		Files: []fence.File{
			{Path: "/etc/group", Text: []byte("root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n")},
			{Path: "/etc/hostname", Text: []byte(host + "\n")},
			{Path: "/etc/hosts", Text: []byte("127.0.0.1 localhost " + host + "\n::1 localhost ip6-localhost\n")},
			{Path: "/etc/nsswitch.conf", Text: []byte("passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n")},
			{Path: "/etc/passwd", Text: []byte("root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/workspace:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n")},
			{Path: "/etc/resolv.conf", Text: []byte("nameserver " + nameServer + "\noptions timeout:2 attempts:2\n")},
			{Path: fence.EmptyFile},
		},
		Devices: []string{"full", "null", "random", "tty", "urandom", "zero"},
	}
}

// addPrograms shows the host's programs and libraries: /usr, and what stands
// beside it on hosts where /bin is no link.
func addPrograms(r *fence.Root, top string) {
	r.Binds = append(r.Binds, fence.Bind{Source: filepath.Join(top, "usr"), Path: "/usr", Dir: true})
	for _, dir := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		path := filepath.Join(top, dir)
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			if to, err := os.Readlink(path); err == nil {
				r.Links = append(r.Links, fence.Link{Path: "/" + dir, To: to})
			}
		case info.IsDir():
			r.Binds = append(r.Binds, fence.Bind{Source: path, Path: "/" + dir, Dir: true})
		}
	}
}

// settings are what programs look for in /etc and what says nothing about the
// host: small files are copied, the others shown.
var (
	shownSettings  = []string{"alternatives", "fonts", "ld.so.cache", "matplotlibrc", "ca-certificates/extracted", "pki/ca-trust/extracted", "pki/tls/certs", "ssl/cert.pem", "ssl/certs", "java-*", "perl", "python3*"}
	copiedSettings = []string{"bash.bashrc", "inputrc", "ld.so.conf", "localtime", "mime.types", "protocols", "services", "ssl/openssl.cnf", "timezone"}
)

// mostCopied bounds one copied file, and allCopied all of them: a plan is sent in
// one packet.
const (
	mostCopied = 32 << 10
	allCopied  = 64 << 10
)

func addSettings(r *fence.Root, top string) {
	etc := filepath.Join(top, "etc")
	for _, name := range settingsOf(etc) {
		path := filepath.Join(etc, name)
		info, err := os.Lstat(path)
		source := path
		if err == nil && info.Mode()&os.ModeSymlink != 0 {
			if source, err = filepath.EvalSymlinks(path); err == nil {
				info, err = os.Lstat(source)
			}
		}
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		addParents(r, "/etc/"+name)
		r.Binds = append(r.Binds, fence.Bind{Source: source, Path: "/etc/" + name, Dir: info.IsDir()})
	}
	room := allCopied
	for _, file := range copiedSettings {
		text, err := readSmall(filepath.Join(etc, file))
		if err == nil && len(text) <= room {
			room -= len(text)
			r.Files = append(r.Files, fence.File{Path: "/etc/" + file, Text: text})
		}
	}
}

// nameServer is where programs ask for names. It is in the read-only root, for
// sandboxes with and without a network: without, nothing leads there.
const nameServer = "198.18.0.1"

// settingsOf returns the settings in a directory that may be shown.
func settingsOf(etc string) []string {
	all := listed(etc)
	var found []string
	for _, pattern := range shownSettings {
		start, open := strings.CutSuffix(pattern, "*")
		if !open {
			found = append(found, pattern)
			continue
		}
		first := len(found)
		for _, name := range all {
			if strings.HasPrefix(name, start) {
				found = append(found, name)
			}
		}
		slices.Sort(found[first:])
	}
	return found
}

// listed lists a directory, in no order. It is as [readSmall] is.
func listed(dir string) []string {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	var names []string
	for part := make([]byte, 16<<10); ; {
		n, err := unix.ReadDirent(fd, part)
		if err != nil || n <= 0 {
			return names
		}
		_, _, names = unix.ParseDirent(part[:n], -1, names)
	}
}

// addParents makes the directories above a path that are not there yet.
func addParents(r *fence.Root, path string) {
	var missing []fence.Dir
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if hasDir(r, dir) {
			break
		}
		missing = append([]fence.Dir{{Path: dir, Mode: 0o755}}, missing...)
		if dir == cove.HomePath { // somebody of that name has an interpreter there
			r.Links = slices.DeleteFunc(r.Links, func(l fence.Link) bool { return l.Path == dir })
		}
	}
	r.Dirs = append(r.Dirs, missing...)
}

func hasDir(r *fence.Root, path string) bool {
	for _, d := range r.Dirs {
		if d.Path == path {
			return true
		}
	}
	return false
}

// readSmall reads a regular file that is small.
func readSmall(path string) ([]byte, error) {
	// Without an os.File, which would cost each of them twice as many calls.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > mostCopied {
		return nil, os.ErrInvalid
	}
	text := make([]byte, st.Size)
	n, err := unix.Read(fd, text)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return text[:n], nil
}
