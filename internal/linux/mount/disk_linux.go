package mount

import (
	"os"

	"golang.org/x/sys/unix"
)

// Disk is a file system on a block device.
type Disk struct {
	Type    string
	Source  string   // the device
	Options []string // of the file system, without values
	Flags   Flags
}

// New mounts it nowhere yet; see [Attach]. The caller closes the file, with which
// it is unmounted if nobody attached it.
func (d Disk) New() (*os.File, error) {
	fs, err := unix.Fsopen(d.Type, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, failure("open", d.Type, err)
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigSetString(fs, "source", d.Source); err != nil {
		return nil, failure("use", d.Source, err)
	}
	for _, o := range d.Options {
		if err := unix.FsconfigSetFlag(fs, o); err != nil {
			return nil, failure("set "+o+" of", d.Source, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, failure("create "+d.Type+" of", d.Source, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, int(d.Flags.attributes())) //nolint:gosec // a few low bits
	if err != nil {
		return nil, failure("mount", d.Source, err)
	}
	return os.NewFile(uintptr(fd), d.Source), nil
}
