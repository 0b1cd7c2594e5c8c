package loop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux"
)

const control = "/dev/loop-control"

// Probe reports as [linux.Missing] why this process cannot make devices.
func Probe() error {
	// Opening it would load the driver.
	if err := unix.Access(control, unix.R_OK|unix.W_OK); err != nil {
		return missing(err)
	}
	return nil
}

func missing(err error) error {
	m := &linux.Missing{Feature: "loop devices", Err: err}
	switch {
	case errors.Is(err, os.ErrPermission):
		m.Why, m.Remedy = "this user may not use "+control, "run cove as root; in a container, give it the devices"
	default:
		m.Why, m.Remedy = "there is no "+control, "load the module loop; in a container, give it "+control+" and the devices /dev/loop*"
	}
	return m
}

// Device is a block device that shows the bytes of a file.
type Device struct {
	file *os.File
	path string
}

// Path is where the device is.
func (d *Device) Path() string { return d.path }

// Close lets go of the device, which stays for as long as something of it is
// mounted.
func (d *Device) Close() error { return d.file.Close() }

// maxTries bounds the race for a free device.
const maxTries = 64

// Attach makes a device of a file that can be written to. The file may be closed
// afterwards.
func Attach(backing *os.File) (*Device, error) {
	c, err := os.OpenFile(control, os.O_RDWR, 0)
	if err != nil {
		return nil, missing(err)
	}
	defer func() { _ = c.Close() }()
	for range maxTries {
		n, err := unix.IoctlRetInt(int(c.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("loop device: find a free one: %w", err)
		}
		d, err := attach("/dev/loop"+strconv.Itoa(n), backing)
		if errors.Is(err, unix.EBUSY) {
			continue // somebody else was faster
		}
		return d, err
	}
	return nil, fmt.Errorf("loop device: find a free one: %w", unix.EBUSY)
}

func attach(path string, backing *os.File) (*Device, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // a name that the kernel gave
	if err != nil {
		return nil, fmt.Errorf("loop device: %w", err)
	}
	// Direct input and output keep the bytes from being in memory twice. Where the
	// file cannot, the kernel leaves it.
	c := &unix.LoopConfig{Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO}} //nolint:gosec // a descriptor
	if err := unix.IoctlLoopConfigure(int(f.Fd()), c); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("loop device: %w", &os.PathError{Op: "configure", Path: path, Err: err})
	}
	return &Device{f, path}, nil
}

// Attached reports whether any device of this machine shows a file, which is
// named by its path without links.
func Attached(path string) bool {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range files {
		text, err := os.ReadFile(f) //nolint:gosec // of the kernel
		if err != nil {
			continue // it went meanwhile
		}
		if name := strings.TrimSuffix(string(text), "\n"); name == path || name == path+" (deleted)" {
			return true
		}
	}
	return false
}
