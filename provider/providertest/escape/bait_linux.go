package escape

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// bait puts a device and a setuid program of root into a directory, as only root
// can.
func bait(dir string) error {
	if os.Geteuid() != 0 {
		return unix.EPERM
	}
	program, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		return err
	}
	id, device := filepath.Join(dir, "id"), filepath.Join(dir, "device")
	return errors.Join(
		os.WriteFile(id, program, 0o755), os.Chmod(id, 0o755|os.ModeSetuid),
		// What makes loop devices: nobody is given that, whatever devices he is given.
		unix.Mknod(device, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 237))), os.Chmod(device, 0o666),
	)
}
