package cove_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// script runs one of scripts/ and returns what it prints.
func script(t *testing.T, args ...string) string {
	t.Helper()
	out, err := try(t, args...)
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

func try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// engineDir is a directory for an engine, where one can be started.
func engineDir(t *testing.T, name string) string {
	t.Helper()
	linuxtest.NeedRoot(t)
	for _, program := range []string{name, "docker", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	dir := t.TempDir()
	if len(dir) > 65 {
		t.Skipf("%s is too long for the sockets below it", dir)
	}
	return filepath.Join(dir, "d")
}

// An engine of the tests leaves nothing: no process, mount, control group or file,
// even if it was killed under a container that runs.
func TestEngineLeavesNothing(t *testing.T) {
	if os.Getenv("COVE_TEST_DOCKER_HOST") == "" {
		t.Skip("no test of an engine was asked for")
	}
	for name, kill := range map[string]bool{"runs": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			if !kill {
				tier.Full(t, "TestEngineLeavesNothing/killed; the scripts stop the engine of each test run like this")
			}
			dir := engineDir(t, "dockerd")
			host := script(t, "scripts/docker.sh", "start", dir)
			t.Cleanup(func() { _, _ = exec.Command("scripts/docker.sh", "stop", dir).CombinedOutput() })
			docker := func(args ...string) string { return script(t, append([]string{"docker", "--host", host}, args...)...) }
			if out, err := try(t, "scripts/docker.sh", "start", dir); err == nil || !strings.Contains(out, "already") {
				t.Errorf("a second one starts in the same place: %v %s", err, out)
			}
			id := runForever(t, docker)
			pid := docker("inspect", "--format", "{{.State.Pid}}", id)
			before := remains(dir)
			if len(before) < 3 {
				t.Fatalf("this test does not find what there is: %q", before)
			}
			if kill {
				daemon, err := os.ReadFile(filepath.Join(dir, "docker.pid"))
				if err != nil {
					t.Fatal(err)
				}
				number, err := strconv.Atoi(strings.TrimSpace(string(daemon)))
				if err != nil || syscall.Kill(number, syscall.SIGKILL) != nil {
					t.Fatalf("kill %q: %v", daemon, err)
				}
			}
			script(t, "scripts/docker.sh", "stop", dir)
			if after := remains(dir); len(after) > 0 {
				t.Errorf("left: %q", after)
			}
			if state, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(state), ") Z ") {
				t.Errorf("the container's process lives: %s", state)
			}
			script(t, "scripts/docker.sh", "stop", dir) // once more does no harm
		})
	}
}

// What cannot be removed is said, and is a failure.
func TestEngineThatLeavesSomethingFails(t *testing.T) {
	dir := engineDir(t, "chattr")
	if out, err := try(t, "scripts/docker.sh", "stop", filepath.Dir(dir)); err == nil || !strings.Contains(out, "not a directory of an engine") {
		t.Errorf("a directory that is no engine's is removed: %v %s", err, out)
	}
	kept := filepath.Join(dir, "kept")
	for _, file := range []string{filepath.Join(dir, "cove-engine"), kept} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := try(t, "chattr", "+i", kept); err != nil {
		t.Skipf("no file here can be protected from root: %s", out)
	}
	t.Cleanup(func() { _, _ = exec.Command("chattr", "-i", kept).CombinedOutput() })
	out, err := try(t, "scripts/docker.sh", "stop", dir)
	if err == nil || !strings.Contains(out, "left something behind:\ndirectory "+dir) {
		t.Errorf("got %v and %q", err, out)
	}
}

// runForever starts a container of one program, which needs no image from outside.
func runForever(t *testing.T, docker func(...string) string) string {
	t.Helper()
	dir := t.TempDir()
	agent, err := os.ReadFile(os.Getenv("COVE_TEST_AGENT"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agent"), agent, 0o755); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	script(t, "tar", "--create", "--file", archive, "--directory", dir, ".")
	docker("import", archive, "tiny:test")
	return docker("run", "--detach", "--interactive", "--network", "none", "tiny:test", "/agent", "listen")
}

// remains lists what there is of an engine.
func remains(dir string) []string {
	var found []string
	if _, err := os.Lstat(dir); err == nil {
		found = append(found, dir)
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err == nil && bytes.Contains(line, []byte(dir+"/")) {
			found = append(found, f+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, " "+dir) {
			found = append(found, line)
		}
	}
	sum := sha256.Sum256([]byte(dir))
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/cove-engine-" + hex.EncodeToString(sum[:4]))
	return append(found, groups...)
}
