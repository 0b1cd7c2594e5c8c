package mount_test

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/mount"
)

// grow makes a directory with mounts below it, blanks in their names, and binds
// all that elsewhere.
func grow(base string) (string, error) {
	source, target := base+"/a b", base+"/shown"
	if err := mkdirs(source, target); err != nil {
		return "", err
	}
	small := mount.Tmpfs{Size: 1 << 20, Files: 100, Mode: 0o777}
	for _, dir := range []string{source, source + "/one", source + "/one/two\t", source + `/three\`} {
		if err := mkdirs(dir); err != nil {
			return "", err
		}
		if err := small.Mount(dir); err != nil {
			return "", err
		}
		if err := os.WriteFile(dir+"/file", []byte("x"), 0o666); err != nil {
			return "", err
		}
	}
	return target, mount.Bind(source, target)
}

func restrict(base string, _ []string) error {
	for name, how := range map[string]func(string, mount.Flags) error{"at once": mount.Restrict, "one by one": mount.Walk} {
		dir := base + "/" + name
		if err := mkdirs(dir); err != nil {
			return err
		}
		target, err := grow(dir)
		if err != nil {
			return err
		}
		if err := how(target, mount.ReadOnly|mount.NoSetuid|mount.NoDevices); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := expectFlags(target, mount.ReadOnly|mount.NoSetuid|mount.NoDevices); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, sub := range []string{"", "/one", "/one/two\t", `/three\`} {
			for _, err := range []error{
				os.WriteFile(target+sub+"/file", nil, 0), os.WriteFile(target+sub+"/new", nil, 0o600), os.Remove(target + sub + "/file"), os.Chmod(target+sub+"/file", 0),
			} {
				if !errors.Is(err, unix.EROFS) {
					return fmt.Errorf("%s: writing to %q: %w", name, sub, err)
				}
			}
			// The source is still what it was.
			if err := os.WriteFile(dir+"/a b"+sub+"/file", []byte("y"), 0o600); err != nil {
				return err
			}
		}
	}
	return one(base)
}

// one restricts a mount and not what is below it.
func one(base string) error {
	for name, how := range map[string]func(string, mount.Flags) error{"new": mount.RestrictOne, "old": mount.Remount} {
		dir := base + "/alone " + name
		if err := mkdirs(dir); err != nil {
			return err
		}
		target, err := grow(dir)
		if err != nil {
			return err
		}
		if err := how(target, mount.ReadOnly); err != nil {
			return err
		}
		if err := os.WriteFile(target+"/file", nil, 0o600); !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("%s: writing: %w", name, err)
		}
		if err := os.WriteFile(target+"/one/file", nil, 0o600); err != nil {
			return fmt.Errorf("%s: writing below: %w", name, err)
		}
	}
	return nil
}

// stacked has a mount that another one hides. Walking cannot reach it, and must
// say so.
func stacked(base string, _ []string) error {
	small := mount.Tmpfs{Size: 1 << 20, Files: 100, Mode: 0o777}
	dir := base + "/t"
	if err := mkdirs(dir); err != nil {
		return err
	}
	if err := errors.Join(small.Mount(dir), os.Mkdir(dir+"/sub", 0o755), small.Mount(dir+"/sub"), small.Mount(dir+"/sub")); err != nil {
		return err
	}
	if err := mount.Walk(dir, mount.ReadOnly); err == nil || !strings.Contains(err.Error(), "stays without") {
		return fmt.Errorf("a hidden mount was forgotten: %w", err)
	}
	if err := mount.Restrict(dir, mount.ReadOnly); err != nil {
		return err
	}
	return expectFlags(dir, mount.ReadOnly)
}
