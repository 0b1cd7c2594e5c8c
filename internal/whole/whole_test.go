//go:build linux

package whole_test

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/whole"
)

// The tests' own executable is both programs.
func TestMain(m *testing.M) {
	switch os.Getenv("WHOLE_TEST") {
	case "lean":
		image, err := os.ReadFile("/proc/self/exe")
		if err == nil {
			err = whole.Program{Image: image, ID: os.Getenv("WHOLE_ID")}.Exec(os.Args[1], append([]string{"name"}, os.Args[2:]...), []string{"WHOLE_TEST=whole"})
		}
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1)
	case "whole":
		exe, _ := os.Readlink("/proc/self/exe")
		_, _ = os.Stdout.WriteString(strings.Join(append(os.Args, exe), "\n"))
		os.Exit(7)
	}
	os.Exit(m.Run())
}

func lean(t *testing.T, dir, id string) (args []string, exe string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", dir, "a", "b c")
	cmd.Env = []string{"WHOLE_TEST=lean", "WHOLE_ID=" + id}
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(string(out), "\n")
	return lines[:len(lines)-1], lines[len(lines)-1]
}

func TestExec(t *testing.T) {
	id, other := hex.EncodeToString([]byte("identity")), hex.EncodeToString([]byte("another1"))
	own := t.TempDir()
	if err := os.Chmod(own, 0o700); err != nil {
		t.Fatal(err)
	}
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(own, "cove-"+id)
	for _, c := range []struct {
		name, dir, id string
		kept          bool
	}{
		{"the first time", own, id, true},
		{"from the copy", own, id, true},
		{"another build", own, other, true},
		{"and back", own, id, true},
		{"no directory", filepath.Join(own, "missing"), id, false},
		{"a file", file, id, false},
		{"of everybody", shared, id, false},
		{"nowhere", "", id, false},
	} {
		args, exe := lean(t, c.dir, c.id)
		if strings.Join(args, "|") != "name|a|b c" {
			t.Errorf("%s: arguments %q", c.name, args)
		}
		if got := exe == filepath.Join(c.dir, "cove-"+c.id); got != c.kept {
			t.Errorf("%s: executed %s", c.name, exe)
		}
	}
	// One copy is kept, and nothing else.
	entries, err := os.ReadDir(own)
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(file) {
		t.Errorf("%v, %v", entries, err)
	}
	// What is not whole is made again.
	if err := os.Chmod(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 100); err != nil {
		t.Fatal(err)
	}
	if _, exe := lean(t, own, id); exe != file {
		t.Errorf("executed %s", exe)
	}
}
