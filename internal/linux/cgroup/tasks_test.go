package cgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTasks: a process puts itself into the group, by the files alone.
func TestTasks(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			m := manager(t, kind.only)
			g := group(t, m, "one")
			files, err := g.Tasks()
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				for _, f := range files {
					_ = f.Close()
				}
			}()
			if kind.only == 2 {
				if len(files) != 0 {
					t.Errorf("%d files of version 1", len(files))
				}
				return
			}
			if len(files) == 0 {
				t.Skip("this host has no version 1")
			}
			var script strings.Builder
			for i := range files {
				fmt.Fprintf(&script, "echo 0 >&%d; ", i+3)
			}
			cmd := exec.Command("sh", "-c", script.String()+"cat /proc/self/cgroup")
			cmd.ExtraFiles = files
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(out), name(t)+"/one\n"); n < len(files) {
				t.Errorf("in %d of %d groups: %s", n, len(files), out)
			}
		})
	}
}

func TestTasksOfNothing(t *testing.T) {
	m := manager(t, 0)
	g := group(t, m, "one")
	files, err := g.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		_ = f.Close()
	}
	if len(files) == 0 {
		t.Skip("this host has no version 1")
	}
	if err := g.Remove(context.Background()); err != nil {
		t.Fatal(err)
	}
	if files, err := g.Tasks(); !errors.Is(err, os.ErrNotExist) || files != nil {
		t.Errorf("a group that is gone: %v, %v", files, err)
	}
}
