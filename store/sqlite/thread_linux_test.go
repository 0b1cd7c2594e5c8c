package sqlite_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// onThread runs do on a thread of its own that ends with it, so that what do
// changes about the thread is gone afterwards, even when the test is killed.
func onThread(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		done <- do()
	}()
	return <-done
}

// asNobody runs do as a user whom permissions stop. Root is none.
func asNobody(do func() error) error {
	if os.Geteuid() != 0 {
		return do()
	}
	return onThread(func() error {
		// The functions of package syscall change all threads.
		for _, call := range []uintptr{syscall.SYS_SETFSGID, syscall.SYS_SETFSUID} {
			if _, _, errno := syscall.RawSyscall(call, nobody, 0, 0); errno != 0 {
				return errno
			}
		}
		return do()
	})
}

const nobody = 65534

// onDisk runs do with a small file system that nobody else sees.
func onDisk(t *testing.T, options string, do func(dir string) error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	dir, mounted := t.TempDir(), false
	err := onThread(func() error {
		if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
			return err
		}
		if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
			return err
		}
		mounted = true
		return do(dir)
	})
	if !mounted {
		t.Skipf("no small disk here: %v", err)
	}
	if err != nil {
		t.Error(err)
	}
}
