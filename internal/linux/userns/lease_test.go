package userns_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// take leases all that is left of ten users and tells how many.
func take(args []string) error {
	leases, err := userns.OpenLeases(userns.LeaseConfig{File: args[0], Count: 10})
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
	cfg.File = filepath.Join(t.TempDir(), "users")
	l, err := userns.OpenLeases(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLeases(t *testing.T) {
	linuxtest.NoLeaks(t, "")
	l := open(t, userns.LeaseConfig{First: 300000, Count: 103, Size: 10})
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
			case held[lease.First] != nil || lease.First < 300000 || lease.First >= 300100 || lease.First%10 != 0 || lease.Count != 10:
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
	if err := held[300050].Release(); err != nil {
		t.Fatal(err)
	}
	again, err := l.Take()
	if err != nil || again.First != 300050 {
		t.Fatalf("leased %+v %v, want the one that is free", again, err)
	}
	held[300050] = again
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
		if seen[lease.First] || lease.First < 200000 || lease.First >= 300000 || lease.Count != 1 {
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
	file := filepath.Join(t.TempDir(), "users")
	l, err := userns.OpenLeases(userns.LeaseConfig{File: file, Count: 10})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := l.Take()
	if err != nil {
		t.Fatal(err)
	}
	free := func(want string) {
		t.Helper()
		if got := linuxtest.OK(t, linuxtest.Child{Name: "take", Args: []string{file}}); got != want {
			t.Errorf("another process finds %s free users, want %s", got, want)
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

// TestLeasesOfTwoSizesShareAFile has sandboxes of two kinds on one machine.
func TestLeasesOfTwoSizesShareAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users")
	seen := map[uint32]bool{}
	for size, want := range map[uint32]int{1: 4, 2: 3} {
		l, err := userns.OpenLeases(userns.LeaseConfig{File: file, First: 300000, Count: 10, Size: size})
		if err != nil {
			t.Fatal(err)
		}
		for range want {
			lease, err := l.Take()
			if errors.Is(err, userns.ErrNoUsers) {
				continue // what is left lies apart
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = lease.Release() })
			for id := range lease.Count {
				if id += lease.First; seen[id] {
					t.Errorf("user %d is leased twice", id)
				}
				seen[id] = true
			}
		}
	}
}

// TestHolderKeepsALease has a lease outlive who took it by a file that nobody can
// write to.
func TestHolderKeepsALease(t *testing.T) {
	l := open(t, userns.LeaseConfig{Count: 1})
	lease, err := l.Take()
	if err != nil {
		t.Fatal(err)
	}
	holder, err := lease.Holder()
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Take(); !errors.Is(err, userns.ErrNoUsers) {
		t.Errorf("what a holder has is leased again: %v", err)
	}
	if _, err := holder.WriteString("x"); err == nil {
		t.Error("a holder can be written to")
	}
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := l.Take()
	if err != nil {
		t.Fatal("what nobody holds is not leased:", err)
	}
	_ = again.Release()
}

func TestLeaseErrors(t *testing.T) {
	for _, cfg := range []userns.LeaseConfig{{First: 1000}, {First: 1 << 31, Count: 1 << 31}, {Count: 5, Size: 6}} {
		if _, err := userns.OpenLeases(cfg); err == nil || !strings.Contains(err.Error(), "65536 or above") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	l, err := userns.OpenLeases(userns.LeaseConfig{File: t.TempDir() + "/none/users"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Take(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}
