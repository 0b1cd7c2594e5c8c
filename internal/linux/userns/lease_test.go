package userns_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

// hold keeps what it inherited until its input ends.
func hold([]string) error {
	if _, err := os.Stdout.WriteString("up"); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// take leases all that is left of twenty users and tells how many leases.
func take(args []string) error {
	leases, err := userns.OpenLeases(userns.LeaseConfig{Dir: args[0], Count: 20})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		if _, err := leases.Take(); errors.Is(err, userns.ErrNoUsers) {
			fmt.Print(n) //nolint:forbidigo // this is the report
			return nil
		} else if err != nil {
			return err
		}
	}
}

func open(t *testing.T, cfg userns.LeaseConfig) *userns.Leases {
	t.Helper()
	cfg.Dir = t.TempDir()
	l, err := userns.OpenLeases(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLeases(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	l := open(t, userns.LeaseConfig{First: 300000, Count: 21})
	var mu sync.Mutex
	held := map[uint32]*userns.Lease{}
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			lease, err := l.Take()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, userns.ErrNoUsers):
			case err != nil:
				t.Error(err)
			case held[lease.First] != nil || lease.First < 300000 || lease.First >= 300020 || lease.First%2 != 0:
				t.Errorf("leased %+v", lease)
			default:
				held[lease.First] = lease
			}
		})
	}
	wg.Wait()
	if len(held) != 10 {
		t.Fatalf("%d leases, want 10", len(held))
	}
	if err := held[300010].Release(); err != nil {
		t.Fatal(err)
	}
	again, err := l.Take()
	if err != nil || again.First != 300010 {
		t.Fatalf("leased %+v %v, want the one that is free", again, err)
	}
	held[300010] = again
	for _, lease := range held {
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
	}
}

// TestUsersAreNotReusedAtOnce makes it unlikely that something of an old sandbox
// meets a new one under its user.
func TestUsersAreNotReusedAtOnce(t *testing.T) {
	l := open(t, userns.LeaseConfig{})
	seen := map[uint32]bool{}
	for range 100 {
		lease, err := l.Take()
		if err != nil {
			t.Fatal(err)
		}
		if seen[lease.First] || lease.First < 200000 || lease.First >= 300000 {
			t.Errorf("leased %+v", lease)
		}
		seen[lease.First] = true
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
	}
}

// TestLeaseOutlivesProcess lets another process hold a lease with us.
func TestLeaseOutlivesProcess(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	dir := t.TempDir()
	l, err := userns.OpenLeases(userns.LeaseConfig{Dir: dir, Count: 20})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := l.Take()
	if err != nil {
		t.Fatal(err)
	}
	free := func(want string) {
		t.Helper()
		if got := linuxtest.OK(t, linuxtest.Child{Name: "take", Args: []string{dir}}); got != want {
			t.Errorf("another process finds %s free leases, want %s", got, want)
		}
	}
	free("9")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	up, upW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	cmd := linuxtest.Start(t, linuxtest.Child{Name: "hold", Files: []*os.File{lease.File()}, Stdin: r}, upW, nil)
	_ = upW.Close()
	if _, err := io.ReadFull(up, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	free("9")
	_ = w.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	free("10")
}

// TestFewFilesOfLeases hands out many leases one after the other, for which there are
// few files, and then more at once than there are in turn.
func TestFewFilesOfLeases(t *testing.T) {
	dir := t.TempDir()
	l, err := userns.OpenLeases(userns.LeaseConfig{Dir: dir, Count: 10})
	if err != nil {
		t.Fatal(err)
	}
	l.Turn(3)
	for range 7 {
		lease, err := l.Take()
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := os.ReadDir(dir); len(files) != 3 || err != nil {
		t.Errorf("%d files for three leases in turn, %v", len(files), err)
	}
	seen := map[uint32]bool{}
	for range 5 {
		lease, err := l.Take()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lease.Release() })
		seen[lease.First] = true
	}
	if _, err := l.Take(); len(seen) != 5 || !errors.Is(err, userns.ErrNoUsers) {
		t.Errorf("leased are %v, and then %v", seen, err)
	}
}

// TestLeasesCannotBeWrittenTo has the holder of a lease find nothing in it, and leave nothing.
func TestLeasesCannotBeWrittenTo(t *testing.T) {
	lease, err := open(t, userns.LeaseConfig{}).Take()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lease.Release() }()
	if _, err := lease.File().WriteString("x"); err == nil {
		t.Error("what holds a lease can be written to")
	}
	if text, err := io.ReadAll(lease.File()); len(text) != 0 || err != nil {
		t.Errorf("what holds a lease has %q in it, %v", text, err)
	}
}

// TestLeasesDoNotShow reads the kernel's list of locks as sandboxes do, which see those of
// open file descriptions, of every process.
func TestLeasesDoNotShow(t *testing.T) {
	lease, err := open(t, userns.LeaseConfig{}).Take()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lease.Release() }()
	conn, err := lease.File().SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	if ctl := conn.Control(func(fd uintptr) { text, err = os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd)) }); ctl != nil || err != nil {
		t.Fatal(ctl, err)
	}
	if !strings.Contains(string(text), " FLOCK ") || strings.Contains(string(text), " OFDLCK ") {
		t.Errorf("a lease is these locks:\n%s", text)
	}
}

func TestLeaseErrors(t *testing.T) {
	for _, cfg := range []userns.LeaseConfig{{First: 1000}, {First: 1 << 31, Count: 1 << 31}, {Count: 1}} {
		if _, err := userns.OpenLeases(cfg); err == nil || !strings.Contains(err.Error(), "65536 or above") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	l, err := userns.OpenLeases(userns.LeaseConfig{Dir: t.TempDir() + "/none"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Take(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}
