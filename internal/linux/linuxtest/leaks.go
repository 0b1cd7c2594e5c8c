//go:build linux

package linuxtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// NoLeaks compares, at the end of a test, what the process holds and what the
// host shows with what was there before: descriptors, mounts, child processes
// and control groups with this name in their path.
func NoLeaks(t testing.TB, cgroups string) {
	t.Helper()
	before := held(t.Name(), cgroups)
	t.Cleanup(func() {
		for _, what := range left(func() []string { return held(t.Name(), cgroups) }, before) {
			t.Errorf("the test left behind: %s", what)
		}
	})
}

// left returns what is there and was not before. A process that was told to end
// may take a moment.
func left(look func() []string, before []string) []string {
	deadline := time.NewTimer(5 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		more := slices.DeleteFunc(look(), func(what string) bool { return slices.Contains(before, what) })
		if len(more) == 0 {
			return nil
		}
		select {
		case <-deadline.C:
			return more
		case <-tick.C:
		}
	}
}

func held(test, cgroups string) []string {
	all := append(descriptors(), children()...)
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if !isOthers(line, test) {
			all = append(all, "mount "+strings.TrimSpace(line))
		}
	}
	if cgroups == "" {
		return all
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		// A group may go while we look.
		if err == nil && d.IsDir() && strings.Contains(filepath.Base(path), cgroups) {
			all = append(all, "cgroup "+path)
		}
		return nil
	})
	return all
}

// isOthers reports whether a mount is in the temporary directory of another test,
// of a package that is tested at the same time.
func isOthers(line, test string) bool {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return false
	}
	name, ok := strings.CutPrefix(fields[4], filepath.Join(os.TempDir(), "Test"))
	own, _, _ := strings.Cut(strings.TrimPrefix(test, "Test"), "/")
	return ok && !strings.HasPrefix(name, own)
}

func descriptors() []string {
	var all []string
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		// The runtime opens some for itself when it first needs them.
		if err == nil && !strings.Contains(to, "[eventpoll]") && !strings.Contains(to, "[eventfd]") && !strings.HasPrefix(to, "/sys/fs/cgroup/cpu") {
			all = append(all, fmt.Sprintf("descriptor %s of %s", e.Name(), to))
		}
	}
	return all
}

func children() []string {
	var all []string
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for pid := range strings.FieldsSeq(string(text)) {
			all = append(all, "process "+pid)
		}
	}
	return all
}
