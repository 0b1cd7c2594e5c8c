package mount

// The ways of kernels without mount_setattr.
var (
	Walk    = walk
	Remount = func(path string, f Flags) error {
		m, err := top(path)
		if err != nil {
			return err
		}
		return remount(m, f)
	}
)
