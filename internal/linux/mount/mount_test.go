package mount_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/mount"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{
		"tmpfs":    inside(tmpfs),
		"trees":    inside(resizeTree),
		"restrict": inside(restrict),
		"stacked":  inside(stacked),
		"detached": inside(detached),
		"pivot":    inside(pivot),
		"systems":  inside(systems),
		"errors":   inside(wrongs),
		"passed":   inside(passed),
		"overlay":  inside(overlay),
	})
}

// inside runs a function in its own mount namespace, on a tmpfs that has room
// for what it builds.
func inside(f func(base string, args []string) error) linuxtest.Func {
	return func(args []string) error {
		if err := mount.Private("/"); err != nil {
			return err
		}
		const base = "/tmp"
		if err := (mount.Tmpfs{Size: 64 << 20, Files: 10_000, Mode: 0o755}).Mount(base); err != nil {
			return err
		}
		return f(base, args)
	}
}

func both(t *testing.T, name string, extra uintptr) {
	t.Helper()
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.NoLeaks(t, "")
		c := linuxtest.Child{Name: name, User: user, Clone: unix.CLONE_NEWNS | extra}
		if user {
			c.Clone |= unix.CLONE_NEWUSER
		}
		linuxtest.OK(t, c)
	})
}

func TestTmpfs(t *testing.T)    { both(t, "tmpfs", 0) }
func TestRestrict(t *testing.T) { both(t, "restrict", 0) }
func TestStacked(t *testing.T)  { both(t, "stacked", 0) }
func TestDetached(t *testing.T) { both(t, "detached", 0) }
func TestPivot(t *testing.T)    { both(t, "pivot", unix.CLONE_NEWPID) }
func TestSystems(t *testing.T)  { both(t, "systems", unix.CLONE_NEWPID) }
func TestErrors(t *testing.T)   { both(t, "errors", 0) }

func mkdirs(paths ...string) error {
	for _, p := range paths {
		if err := os.MkdirAll(p, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// fill puts files into a directory until one does not fit, and returns how many
// did.
func fill(dir string) (int, error) {
	for n := range 1000 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), nil, 0o600); err != nil {
			return n, err
		}
	}
	return 0, errors.New("it never gets full")
}

// room returns how many bytes fit into one file.
func room(path string) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	page := make([]byte, os.Getpagesize())
	for n := int64(0); n < 1<<30; n += int64(len(page)) {
		if _, err := f.Write(page); err != nil {
			return n, err
		}
	}
	return 0, errors.New("it never gets full")
}

func tmpfs(base string, _ []string) error {
	page := int64(os.Getpagesize())
	dir := base + "/t"
	if err := mkdirs(dir); err != nil {
		return err
	}
	for _, c := range []struct{ size, files, fits int64 }{{10 * page, 7, 10 * page}, {10*page + 1, 1, 11 * page}, {1, 100, page}} {
		t := mount.Tmpfs{Size: c.size, Files: c.files, Mode: 0o770 | os.ModeSticky, Flags: mount.NoSetuid | mount.NoDevices | mount.NoExecute}
		if err := t.Mount(dir); err != nil {
			return err
		}
		n, err := fill(dir)
		if int64(n) != c.files || !errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("%d files in a tmpfs of %d: %w", n, c.files, err)
		}
		if got, err := room(dir + "/0"); got != c.fits || !errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("%d bytes in a tmpfs of %d: %w", got, c.size, err)
		}
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o770 || info.Mode()&os.ModeSticky == 0 {
			return fmt.Errorf("mode %v: %w", info.Mode(), err)
		}
		if err := expectFlags(dir, mount.NoSetuid|mount.NoDevices|mount.NoExecute); err != nil {
			return err
		}
		if err := mount.Detach(dir); err != nil {
			return err
		}
	}
	return nil
}

// expectFlags looks at what a mount and all below it have.
func expectFlags(path string, want mount.Flags) error {
	table, err := mount.Table()
	if err != nil {
		return err
	}
	found := 0
	for _, m := range table {
		if m.Point != path && !strings.HasPrefix(m.Point, path+"/") {
			continue
		}
		found++
		if m.Flags()&want != want {
			return fmt.Errorf("%s has %v", m.Point, m.Options)
		}
	}
	if found == 0 {
		return fmt.Errorf("nothing is mounted at %s", path)
	}
	return nil
}

// detached makes mounts that are nowhere, and puts them somewhere.
func detached(base string, _ []string) error {
	if err := mount.Probe().Descriptors; err != nil {
		return err
	}
	page := int64(os.Getpagesize())
	t, err := mount.Tmpfs{Size: 4 * page, Files: 5, Mode: 0o750, Flags: mount.NoExecute}.New()
	if err != nil {
		return err
	}
	defer t.Close()
	dir := base + "/t"
	if err := errors.Join(mkdirs(dir), mount.Attach(t, dir)); err != nil {
		return err
	}
	if n, err := fill(dir); n != 5 {
		return fmt.Errorf("%d files: %w", n, err)
	}
	if n, err := room(dir + "/0"); n != 4*page {
		return fmt.Errorf("%d bytes: %w", n, err)
	}
	if err := expectFlags(dir, mount.NoExecute); err != nil {
		return err
	}
	if err := mount.Attach(t, dir); err == nil {
		return errors.New("it was attached twice")
	}
	return trees(base)
}

func trees(base string) error {
	source, err := grow(base)
	if err != nil {
		return err
	}
	for _, recursive := range []bool{true, false} {
		tree, err := mount.OpenTree(source, recursive)
		if err != nil {
			return err
		}
		if err := mount.RestrictTree(tree, mount.ReadOnly); err != nil {
			return err
		}
		dir := base + "/tree" + strconv.FormatBool(recursive)
		if err := errors.Join(mkdirs(dir), mount.Attach(tree, dir), tree.Close()); err != nil {
			return err
		}
		if err := expectFlags(dir, mount.ReadOnly); err != nil {
			return err
		}
		if _, err := os.Stat(dir + "/one/file"); (err == nil) != recursive {
			return fmt.Errorf("what is mounted below, recursive %v: %w", recursive, err)
		}
	}
	return nil
}

// pivot moves into a root of its own and looks for a way back.
func pivot(base string, _ []string) error {
	root := base + "/root"
	if err := mkdirs(root); err != nil {
		return err
	}
	if err := (mount.Tmpfs{Size: 1 << 20, Files: 100, Mode: 0o755}).Mount(root); err != nil {
		return err
	}
	if err := mkdirs(root+"/usr", root+"/proc"); err != nil {
		return err
	}
	if err := errors.Join(mount.Bind("/usr", root+"/usr"), mount.Proc(root+"/proc")); err != nil {
		return err
	}
	if err := os.WriteFile(root+"/here", nil, 0o600); err != nil {
		return err
	}
	if err := mount.Pivot(root); err != nil {
		return err
	}
	if err := mount.Restrict("/", mount.ReadOnly); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil || dir != "/" {
		return fmt.Errorf("in %s: %w", dir, err)
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"here", "proc", "usr"}) {
		return fmt.Errorf("the root has %v", names)
	}
	if _, err := os.Stat("../../../../tmp"); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("a way up: %w", err)
	}
	table, err := mount.Table()
	if err != nil {
		return err
	}
	for _, m := range table {
		if m.Point != "/" && m.Point != "/proc" && m.Point != "/usr" && !strings.HasPrefix(m.Point, "/usr/") {
			return fmt.Errorf("%s is still mounted", m.Point)
		}
		if m.Flags()&mount.ReadOnly == 0 {
			return fmt.Errorf("%s is writable", m.Point)
		}
	}
	if err := os.WriteFile("/usr/x", nil, 0o600); !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("writing to /usr: %w", err)
	}
	return nil
}

// terminals opens as many as there may be, and one more.
func terminals(ptmx string) error {
	const most = 64
	for i := range most + 1 {
		fd, err := unix.Open(ptmx, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if (i < most) != (err == nil) || err != nil && !errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("terminal %d: %w", i+1, errors.Join(errors.New("unexpected"), err))
		}
		if err == nil {
			defer func() { _ = unix.Close(fd) }()
		}
	}
	return nil
}

// systems mounts the file systems of the kernel.
func systems(base string, _ []string) error {
	if err := mkdirs(base+"/proc", base+"/pts"); err != nil {
		return err
	}
	if err := errors.Join(mount.Proc(base+"/proc"), mount.Terminals(base+"/pts")); err != nil {
		return err
	}
	// In a pid namespace of its own the process is the first.
	if self, err := os.Readlink(base + "/proc/self"); err != nil || self != "1" {
		return fmt.Errorf("/proc/self is %s: %w", self, err)
	}
	if err := terminals(base + "/pts/ptmx"); err != nil {
		return err
	}
	file, bound := base+"/file", base+"/bound"
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.WriteFile(bound, nil, 0o600), mount.BindOne(file, bound)); err != nil {
		return err
	}
	if text, err := os.ReadFile(bound); err != nil || string(text) != "x" {
		return fmt.Errorf("a bound file reads %q: %w", text, err)
	}
	return nil
}

func wrongs(base string, _ []string) error {
	dir := base + "/plain"
	if err := mkdirs(dir); err != nil {
		return err
	}
	none := base + "/none"
	for name, err := range map[string]error{
		"private":             mount.Private(dir),
		"bind":                mount.Bind(none, dir),
		"bind one":            mount.BindOne(dir, none),
		"restrict":            mount.Restrict(dir, mount.ReadOnly),
		"restrict nothing":    mount.Restrict(none, mount.ReadOnly),
		"walk":                mount.Walk(dir, mount.ReadOnly),
		"walk nothing":        mount.Walk(none, mount.ReadOnly),
		"one":                 mount.RestrictOne(dir, mount.ReadOnly),
		"remount":             mount.Remount(dir, mount.ReadOnly),
		"remount nothing":     mount.Remount(none, mount.ReadOnly),
		"detach":              mount.Detach(dir),
		"pivot to nothing":    mount.Pivot(none),
		"pivot to plain":      mount.Pivot(dir),
		"proc":                mount.Proc(none),
		"terminals":           mount.Terminals(none),
		"tmpfs":               mount.Tmpfs{Size: 1, Files: 1}.Mount(none),
		"tmpfs without size":  mount.Tmpfs{Files: 1}.Mount(dir),
		"tmpfs without files": mount.Tmpfs{Size: 1}.Mount(dir),
	} {
		if err == nil {
			return fmt.Errorf("%s: no error", name)
		}
		if !strings.HasPrefix(err.Error(), "mount: ") {
			return fmt.Errorf("%s: it reads %w", name, err)
		}
	}
	if _, err := mount.OpenTree(none, true); err == nil {
		return errors.New("nothing was opened")
	}
	if _, err := (mount.Tmpfs{Size: 1}).New(); err == nil {
		return errors.New("a tmpfs without bounds was made")
	}
	if _, err := (mount.Tmpfs{Size: 1, Files: 1, UID: -5}).New(); err == nil {
		return errors.New("a tmpfs of nobody was made")
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := mount.Attach(f, none); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("attaching to nothing: %w", err)
	}
	if err := mount.RestrictTree(f, mount.ReadOnly); !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("restricting a plain directory: %w", err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	if mount.Attach(f, dir) == nil || mount.RestrictTree(f, 0) == nil {
		return errors.New("a closed file was taken")
	}
	return nil
}

// passed attaches what it was given by a process in another namespace.
func passed(base string, args []string) error {
	tree := os.NewFile(linuxtest.FirstFile, "tree")
	dir := base + "/t"
	if err := errors.Join(mkdirs(dir), mount.Attach(tree, dir)); err != nil {
		return err
	}
	text, err := os.ReadFile(dir + "/file")
	if err != nil || string(text) != args[0] {
		return fmt.Errorf("read %q: %w", text, err)
	}
	return expectFlags(dir, mount.NoSetuid|mount.NoDevices)
}

// TestPassedTree hands a directory of the host to a namespace that could not
// find it by its name.
func TestPassedTree(t *testing.T) {
	linuxtest.NeedRoot(t)
	linuxtest.NoLeaks(t, "")
	linuxtest.Need(t, mount.Probe().Descriptors)
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	tree, err := mount.OpenTree(dir, false)
	if errors.Is(err, unix.EPERM) {
		linuxtest.Need(t, err) // root of a user namespace, in a mount namespace of somebody else
	}
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if err := mount.RestrictTree(tree, mount.NoSetuid|mount.NoDevices); err != nil {
		t.Fatal(err)
	}
	linuxtest.OK(t, linuxtest.Child{Name: "passed", Args: []string{"hello"}, Clone: unix.CLONE_NEWNS, Files: []*os.File{tree}})
}
