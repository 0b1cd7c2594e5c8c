//go:build linux

package microsandbox

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// command is a call of msb that is over when ctx is, with all it started: the program
// may be a script around another.
func command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // the operator's own program
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !passed(name)
	})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// passed reports whether msb gets a variable of ours. Ours hold the keys of all
// providers and of Cove itself; and with some of msb's own it would make its machines
// at a cloud.
func passed(name string) bool {
	switch strings.ToUpper(name) {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
		"MSB_HOME", "MSB_PATH", "MSB_LIBKRUNFW_PATH", "DOCKER_CONFIG", "RUST_LOG", "RUST_BACKTRACE",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR":
		return true
	}
	return strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_")
}
