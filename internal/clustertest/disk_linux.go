package clustertest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// diskSize is how much fits on the disk of a node.
const diskSize = 256 << 20

// disk is a small disk that only the processes of a space have.
type disk struct {
	space *space
	dir   string
}

// newDisk makes one at a folder that is there.
func newDisk(s *space, dir string) (d *disk, err error) {
	s.run(func() { err = syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", diskSize)) })
	if err != nil {
		err = fmt.Errorf("mount a disk at %s: %w", dir, err)
	}
	return &disk{space: s, dir: dir}, err
}

func (d *disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// fill takes all that is free, until nothing is.
func (d *disk) fill() (err error) {
	d.space.run(func() {
		var f *os.File
		if f, err = os.OpenFile(d.ballast(), os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return
		}
		defer func() { _ = f.Close() }() // it has only to be there
		var size int64
		for step := int64(diskSize); step >= 4096; {
			if syscall.Fallocate(int(f.Fd()), 0, size, step) != nil {
				step /= 2
				continue
			}
			size += step
		}
	})
	return err
}

// free gives it back.
func (d *disk) free() (err error) {
	d.space.run(func() { err = os.Remove(d.ballast()) })
	return err
}
