package cgroup_test

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

// flat opens a manager whose first group is made at once.
func flat(t *testing.T, only int, first string) *cgroup.Manager {
	t.Helper()
	linuxtest.NeedRoot(t)
	m, err := cgroup.Open(cgroup.Config{Name: name(t), Only: only, First: first})
	linuxtest.Need(t, err)
	return m
}

func listed(t *testing.T, m *cgroup.Manager) []string {
	t.Helper()
	names, err := m.List()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestFirst: a group that is there before anybody asks for it is one like all
// others, and has nothing around it.
func TestFirst(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			linuxtest.NoLeaks(t, prefix)
			m := flat(t, kind.only, "one")
			if d := cmp.Diff(manager(t, kind.only).Support(), m.Support(), cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) })); d != "" {
				t.Errorf("support (-around +flat):\n%s", d)
			}
			one := group(t, m, "one")
			two := group(t, m, "two")
			if _, err := m.Create("one"); !errors.Is(err, os.ErrExist) {
				t.Errorf("a name that is taken: %v", err)
			}
			sh := join(t, one, `echo up; read -r x`)
			sh.hear(t, "up\n")
			if empty, err := one.Empty(); empty || err != nil {
				t.Errorf("nobody is in the group: %v", err)
			}
			if m.Support().Memory == nil {
				if err := two.Set(cgroup.Limits{Memory: 64 << 20}); err != nil {
					t.Error(err)
				}
			}
			// Another process comes, whose first group is another, and finds them.
			again := flat(t, kind.only, "three")
			if d := cmp.Diff([]string{"one", "three", "two"}, listed(t, again)); d != "" {
				t.Error(d)
			}
			left, err := again.Group("one")
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(left.Kill(t.Context()), left.Remove(t.Context())); err != nil {
				t.Error(err)
			}
			// Nobody got this one.
			if err := again.Close(); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff([]string{"two"}, listed(t, m)); d != "" {
				t.Error(d)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFirstNames(t *testing.T) {
	for _, first := range []string{"a/b", "..", "memory.max"} {
		if _, err := cgroup.Open(cgroup.Config{Name: name(t), First: first}); err == nil {
			t.Errorf("%q was taken for a name", first)
		}
	}
}
