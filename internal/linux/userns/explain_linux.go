package userns

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
)

// facts are the settings that are known to stand in the way.
type facts struct {
	sysctlOff bool // Debian's switch
	noneLeft  bool // the number of namespaces is bounded by 0
	appArmor  bool // Ubuntu's restriction
	filtered  bool // a seccomp filter is over us
	container bool // we look like being in one
}

// gather reads the settings from the file tree at root.
func gather(root string) facts {
	is := func(path, value string) bool {
		text, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // names of our own
		return err == nil && strings.TrimSpace(string(text)) == value
	}
	there := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	status, _ := os.ReadFile(filepath.Join(root, "proc/self/status")) //nolint:gosec // names of our own
	return facts{
		sysctlOff: is("proc/sys/kernel/unprivileged_userns_clone", "0"),
		noneLeft:  is("proc/sys/user/max_user_namespaces", "0"),
		appArmor:  is("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
		filtered:  strings.Contains(string(status), "\nSeccomp:\t2"),
		container: there(".dockerenv") || there("run/.containerenv") || there("run/systemd/container"),
	}
}

// missing explains what the kernel said at one step.
func (f facts) missing(step int, errno syscall.Errno) error {
	feature := []string{"user namespaces", "mapping users", "mounting in a user namespace", "a /proc of its own"}[step]
	m := &linux.Missing{Feature: feature, Err: errno}
	m.Why, m.Remedy = f.cause(step, errno)
	return m
}

const appArmorRemedy = "give the cove executable an AppArmor profile with the rule userns, or run: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"

func (f facts) cause(step int, errno syscall.Errno) (why, remedy string) {
	switch {
	case errno == notTried:
		return "it was not tried, since what comes before it failed", "see the cause of that"
	case step == stepProc && errno == unix.EPERM:
		return "every /proc that we can see has parts masked, as in a container, and the kernel shows no more in a new one",
			"run the container with --security-opt systempaths=unconfined (Docker) or --security-opt unmask=ALL (Podman)"
	case f.appArmor && (errno == unix.EPERM || errno == unix.EACCES):
		return "AppArmor takes all privileges in user namespaces from ordinary programs (kernel.apparmor_restrict_unprivileged_userns is 1)", appArmorRemedy
	case step == stepCreate:
		return f.causeCreate(errno)
	case f.container && f.filtered:
		return "the container that we are in forbids it", "run the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
	}
	return "a security module or the container around us forbids it", "look for denials in the kernel's log"
}

func (f facts) causeCreate(errno syscall.Errno) (why, remedy string) {
	switch {
	case f.noneLeft:
		return "the host allows none (user.max_user_namespaces is 0)", "run: sysctl -w user.max_user_namespaces=10000"
	case errno == unix.ENOSPC || errno == unix.EUSERS:
		return "this user has as many as the host allows", "raise user.max_user_namespaces and the other max_*_namespaces in /proc/sys/user"
	case f.sysctlOff:
		return "the host keeps them for root (kernel.unprivileged_userns_clone is 0)", "run: sysctl -w kernel.unprivileged_userns_clone=1"
	case errno == unix.EINVAL || errno == unix.ENOSYS:
		return "the kernel was built without some of the namespaces", "use a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS and CONFIG_UTS_NS"
	case f.filtered:
		return "a seccomp filter forbids it, as those of containers do", "run the container with --security-opt seccomp=unconfined, or with a profile that allows clone with namespaces"
	}
	return "a security module, or being in a chroot, forbids it", "run cove outside the chroot, and look for denials in the kernel's log"
}
