package config

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/cove-sandbox/cove"
)

// Host is what defaults depend on.
type Host interface {
	// ReadFile returns a file of the kernel, or the beginning of a long one.
	ReadFile(name string) ([]byte, error)
	Hostname() (string, error)
}

type thisMachine struct{}

// ReadFile reads a few lines. Every process does it at its start, and an
// os.File, which could also wait, would take three times as many calls.
func (thisMachine) ReadFile(name string) ([]byte, error) {
	fd, err := syscall.Open(filepath.Clean(name), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = syscall.Close(fd) }()
	text := make([]byte, 512)
	n, err := syscall.Read(fd, text)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: name, Err: err}
	}
	return text[:n], nil
}

func (thisMachine) Hostname() (string, error) { return os.Hostname() }

// machineMemory returns the memory of the machine, or of the container that we
// run in where that is less; 0 where nobody knows.
func machineMemory(h Host) cove.Bytes {
	total := meminfoTotal(h)
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := h.ReadFile(name)
		if err != nil {
			continue
		}
		// "max" and v1's huge number both mean no limit and drop out here.
		n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err == nil && n > 0 && (total == 0 || cove.Bytes(n) < total) {
			total = cove.Bytes(n)
		}
	}
	return total
}

func meminfoTotal(h Host) cove.Bytes {
	data, err := h.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		text, ok := strings.CutPrefix(line, "MemTotal:")
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
		if err != nil || n < 0 {
			return 0
		}
		return cove.Bytes(n) * cove.KiB
	}
	return 0
}

// systemHome is the COVE_HOME of root, whose own directory is no place for a
// server's state.
const systemHome = "/var/lib/cove"

func defaultHome(root bool, env func(string) (string, bool)) (string, error) {
	if root {
		return systemHome, nil
	}
	// The XDG rules say that a relative path is to be ignored.
	if state, ok := env("XDG_STATE_HOME"); ok && filepath.IsAbs(state) {
		return filepath.Join(state, "cove"), nil
	}
	if home, ok := env("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "cove"), nil
	}
	return "", cove.InvalidField("COVE_HOME", "is not set and there is no HOME to derive it from; set it to a directory that belongs to you")
}

// Home returns the COVE_HOME that the environment names, or the default one. Flags
// and files may say otherwise.
func Home(env func(string) (string, bool), root bool) (string, error) {
	if dir, ok := env("COVE_HOME"); ok && dir != "" {
		return dir, nil
	}
	return defaultHome(root, env)
}
