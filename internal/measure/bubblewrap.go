package measure

import (
	"context"
	"os/exec"

	"github.com/cove-sandbox/cove"
)

// Bubblewrap returns the command line that gives `true` what a sandbox of ours
// has, as far as bubblewrap can: namespaces, a root made of the host's /usr,
// read-only, its own /proc, /dev, /tmp and /workspace, another user, no
// capability and an empty environment. It has no seccomp filter, no landlock,
// no limits and no agent.
func Bubblewrap() []string {
	return []string{
		"bwrap", "--unshare-all", "--die-with-parent",
		"--ro-bind", "/usr", "/usr",
		"--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin", "/sbin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--ro-bind-try", "/etc/ssl/certs", "/etc/ssl/certs",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/workspace",
		"--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin",
		"--cap-drop", "ALL", "--chdir", "/workspace", "--", program,
	}
}

// Bwrap runs `true` in bubblewrap. The error says that it is not installed, or
// what it says itself where it does not work.
func Bwrap(ctx context.Context) (Contender, error) {
	argv := Bubblewrap()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return Contender{}, cove.Errorf(cove.Unavailable, "bubblewrap is not installed").Remedy("run apt-get install bubblewrap as root, or what your system has for it")
	}
	argv[0] = path
	c := Command("bwrap --unshare-all … true", []string{"PATH=/usr/bin:/bin"}, argv...)
	if _, err := c.once(ctx); err != nil {
		return c, cove.Wrap(cove.Unavailable, err, "bubblewrap does not work here").Remedy("see cove doctor: what keeps it from working often keeps us too")
	}
	return c, nil
}
