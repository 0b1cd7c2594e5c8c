package measure

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// below counts the directories in some others, at any depth.
func below(dirs []string) (int, error) {
	n := 0
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && path != dir {
				n++
			}
			if gone(err) || errors.Is(err, fs.ErrPermission) {
				return nil
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Groups returns the directories in which the control groups of what runs below
// this process are made, such as those of sandboxes that are alive now.
func Groups() ([]string, error) {
	all, err := family()
	if err != nil {
		return nil, err
	}
	return groupsOf(all)
}

// groupsOf returns the directories that hold the control groups of some
// processes, beside those of this process. It is where a provider makes them.
func groupsOf(members map[process]bool) ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	ours := groupDirs(string(own), string(mounts))
	var parents []string
	for p := range members {
		text, err := os.ReadFile(p.file("cgroup"))
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, dir := range groupDirs(string(text), string(mounts)) {
			if parent := filepath.Dir(dir); !slices.Contains(ours, dir) && !slices.Contains(parents, parent) {
				parents = append(parents, parent)
			}
		}
	}
	return parents, nil
}

// groupDirs returns the directories of a process's control groups, from its
// /proc/pid/cgroup and a mountinfo. Hierarchies that are not mounted are left
// out.
func groupDirs(membership, mounts string) []string {
	var dirs []string
	for line := range strings.Lines(membership) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		for mount := range strings.Lines(mounts) {
			if dir, ok := groupDir(mount, f[1], f[2]); ok {
				dirs = append(dirs, dir)
				break
			}
		}
	}
	return dirs
}

// groupDir returns where a group is, if a line of mountinfo is its hierarchy:
// that of the controllers, or the unified one where there are none.
func groupDir(mount, controllers, group string) (string, bool) {
	before, after, ok := strings.Cut(strings.TrimSpace(mount), " - ")
	f, tail := strings.Fields(before), strings.Fields(after)
	if !ok || len(f) < 5 || len(tail) < 3 {
		return "", false
	}
	switch {
	case controllers == "" && tail[0] == "cgroup2":
	case controllers != "" && tail[0] == "cgroup" && hasAll(strings.Split(tail[2], ","), strings.Split(controllers, ",")):
	default:
		return "", false
	}
	rel, err := filepath.Rel(f[3], group)
	if err != nil || strings.HasPrefix(rel, "..") {
		return "", false
	}
	return filepath.Join(f[4], rel), true
}

func hasAll(list, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(list, w) })
}
