package landlock_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

func TestMain(m *testing.M) {
	linuxtest.Main(m, map[string]linuxtest.Func{"fence": fence, "naked": naked, "inherited": inherited})
}

// fence restricts itself to dir/rw and to reading dir/ro and one file, and
// tries everything.
func fence(args []string) error {
	runtime.LockOSThread()
	dir, outside := args[0], args[1]
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	report, err := landlock.Restrict(landlock.Ruleset{
		Rules: []landlock.Rule{
			{Path: dir + "/rw", Allow: landlock.ReadWrite},
			{Path: dir + "/ro", Allow: landlock.ReadOnly},
			{Path: dir + "/file", Allow: landlock.ReadWrite},
			{Path: os.DevNull, Allow: landlock.Device},
		},
		Apart: true, NoTCP: true,
	})
	if err != nil {
		return err
	}
	abi := report.ABI
	var wrong []error
	try := func(what string, allowed bool, err error) {
		if allowed != (err == nil) || !allowed && !errors.Is(err, os.ErrPermission) && !errors.Is(err, unix.EXDEV) {
			wrong = append(wrong, fmt.Errorf("%s: %w", what, errors.Join(errors.New("unexpected"), err)))
		}
	}
	try("write inside", true, os.WriteFile(dir+"/rw/new", []byte("x"), 0o600))
	try("make a directory inside", true, os.Mkdir(dir+"/rw/sub", 0o700))
	try("move inside", abi >= 2, os.Rename(dir+"/rw/new", dir+"/rw/sub/new"))
	try("symlink inside", true, os.Symlink("/", dir+"/rw/link"))
	try("pipe inside", true, unix.Mkfifo(dir+"/rw/pipe", 0o600))
	try("device inside", false, unix.Mknod(dir+"/rw/null", unix.S_IFCHR|0o666, 0x103))
	try("read what is read-only", true, read(dir+"/ro/a"))
	try("write what is read-only", false, os.WriteFile(dir+"/ro/a", nil, 0o600))
	try("remove what is read-only", false, os.Remove(dir+"/ro/a"))
	try("make in read-only", false, os.WriteFile(dir+"/ro/b", nil, 0o600))
	try("move out of read-only", false, os.Rename(dir+"/ro/a", dir+"/rw/a"))
	try("link out of read-only", false, os.Link(dir+"/ro/a", dir+"/rw/a"))
	try("write the one file", true, os.WriteFile(dir+"/file", []byte("x"), 0o600))
	try("read beside", false, read(dir+"/secret"))
	try("read through a link", false, read(dir+"/rw/link/"+dir+"/secret"))
	try("list above", false, list(dir))
	if abi >= 3 {
		try("truncate beside", false, os.Truncate(dir+"/secret", 0))
	}
	try("write to the device", true, os.WriteFile(os.DevNull, []byte("x"), 0))
	if abi >= 4 {
		_, err := net.Dial("tcp", outside)
		try("connect", false, err)
	}
	if abi >= 6 {
		parent, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		try("signal the parent", false, syscall.Kill(parent, 0))
		_, err = net.Dial("unix", args[3])
		try("connect to an abstract socket", false, err)
	}
	try("signal itself", true, syscall.Kill(os.Getpid(), 0))
	return errors.Join(wrong...)
}

func read(path string) error {
	_, err := os.ReadFile(path)
	return err
}

func list(path string) error {
	_, err := os.ReadDir(path)
	return err
}

func naked(args []string) error {
	runtime.LockOSThread()
	_, err := landlock.Restrict(landlock.Ruleset{Rules: []landlock.Rule{{Path: args[0], Allow: landlock.ReadOnly}}})
	return err
}

// tree makes files that everybody may read, as far as modes go.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir, dir + "/ro", dir + "/rw"} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"file", "secret", "ro/a"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, f), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRestrict(t *testing.T) {
	linuxtest.Need(t, landlock.Probe())
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	name := fmt.Sprintf("@cove-landlock-%d", os.Getpid())
	abstract, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	linuxtest.Users(t, func(t *testing.T, user bool) {
		linuxtest.NoLeaks(t, "")
		linuxtest.OK(t, linuxtest.Child{Name: "fence", User: user, Args: []string{tree(t), tcp.Addr().String(), strconv.Itoa(os.Getpid()), name}})
	})
}

func TestRestrictErrors(t *testing.T) {
	linuxtest.Need(t, landlock.Probe())
	linuxtest.NoLeaks(t, "")
	r := linuxtest.Run(t, linuxtest.Child{Name: "naked", User: true, Args: []string{"/"}})
	if r.State.Success() || !strings.Contains(r.Stderr, "no_new_privs must be set first") {
		t.Errorf("without no_new_privs: %s %s", r.State, r.Stderr)
	}
	for want, rule := range map[string]landlock.Rule{
		"no such file":      {Path: "/nonexistent", Allow: landlock.ReadOnly},
		"it allows nothing": {Path: os.DevNull, Allow: landlock.MakeDir},
	} {
		_, err := landlock.Restrict(landlock.Ruleset{Rules: []landlock.Rule{rule}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", rule, err, want)
		}
	}
}

func TestOlderKernels(t *testing.T) {
	rs := landlock.Ruleset{Apart: true, NoTCP: true}
	for abi, want := range map[int][]string{
		1: {"TCP ports", "signals and abstract sockets", "truncating files", "requests to devices"},
		2: {"TCP ports", "signals and abstract sockets", "truncating files", "requests to devices"},
		3: {"TCP ports", "signals and abstract sockets", "requests to devices"},
		4: {"signals and abstract sockets", "requests to devices"},
		5: {"signals and abstract sockets"},
		6: nil, 7: nil, 99: nil,
	} {
		fs, tcp, scoped, uncovered := landlock.Attributes(rs, abi)
		if d := cmp.Diff(want, uncovered); d != "" {
			t.Errorf("ABI %d: %s", abi, d)
		}
		if (fs&landlock.Move != 0) != (abi >= 2) || (fs&landlock.Truncate != 0) != (abi >= 3) || (fs&landlock.DeviceIoctl != 0) != (abi >= 5) {
			t.Errorf("ABI %d: rights %#x", abi, fs)
		}
		if (tcp != 0) != (abi >= 4) || (scoped != 0) != (abi >= 6) {
			t.Errorf("ABI %d: TCP %#x, scopes %#x", abi, tcp, scoped)
		}
	}
	if _, tcp, scoped, uncovered := landlock.Attributes(landlock.Ruleset{}, 7); tcp != 0 || scoped != 0 || uncovered != nil {
		t.Errorf("nobody asked for TCP %#x, scopes %#x, %v", tcp, scoped, uncovered)
	}
}

func TestProbe(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{unix.ENOSYS: "Linux 5.13", unix.EOPNOTSUPP: "lsm=", unix.EPERM: "container"} {
		if got := linux.RemedyOf(landlock.Missing(errno)); !strings.Contains(got, want) {
			t.Errorf("%v: the remedy %q does not mention %q", errno, got, want)
		}
	}
	linuxtest.Need(t, landlock.Probe())
	abi, err := landlock.ABI()
	if err != nil || abi < 1 {
		t.Errorf("ABI %d: %v", abi, err)
	}
}
