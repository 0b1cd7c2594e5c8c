package landlock

import "golang.org/x/sys/unix"

// Access is a set of things to do with files.
type Access uint64

// The single rights.
const (
	Execute     Access = unix.LANDLOCK_ACCESS_FS_EXECUTE
	WriteFile   Access = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	ReadFile    Access = unix.LANDLOCK_ACCESS_FS_READ_FILE
	ReadDir     Access = unix.LANDLOCK_ACCESS_FS_READ_DIR
	RemoveDir   Access = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR
	RemoveFile  Access = unix.LANDLOCK_ACCESS_FS_REMOVE_FILE
	MakeChar    Access = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR
	MakeDir     Access = unix.LANDLOCK_ACCESS_FS_MAKE_DIR
	MakeFile    Access = unix.LANDLOCK_ACCESS_FS_MAKE_REG
	MakeSocket  Access = unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	MakePipe    Access = unix.LANDLOCK_ACCESS_FS_MAKE_FIFO
	MakeBlock   Access = unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	MakeSymlink Access = unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	Move        Access = unix.LANDLOCK_ACCESS_FS_REFER // between directories; from ABI 2 on, refused before
	Truncate    Access = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	DeviceIoctl Access = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// What rules usually allow.
const (
	ReadOnly  = Execute | ReadFile | ReadDir
	ReadWrite = ReadOnly | WriteFile | RemoveDir | RemoveFile | MakeDir | MakeFile | MakeSocket | MakePipe | MakeSymlink | Move | Truncate
	Device    = ReadFile | WriteFile | DeviceIoctl
)

const (
	allRights = ReadWrite | MakeChar | MakeBlock | DeviceIoctl
	// fileRights are those that mean something for what is no directory.
	fileRights = Execute | WriteFile | ReadFile | Truncate | DeviceIoctl
)

// Rule allows something with a file, or with a directory and all below it.
// Where there is no path to it, a descriptor of it will do.
type Rule struct {
	Path  string
	File  int
	Allow Access
}

// Ruleset says what is left to a process.
type Ruleset struct {
	Rules []Rule
	// Handled are the rights that the rules are about: others stay as they are,
	// except that [Move] is always among them. 0 means all that the kernel knows.
	Handled Access
	// Apart keeps the process from signaling processes outside, and from abstract
	// unix sockets that were not made inside.
	Apart bool
	// NoTCP refuses to bind and to connect TCP ports.
	NoTCP bool
}

// attr is struct landlock_ruleset_attr as far as we use it. A kernel that knows
// only its beginning takes the rest for as long as it is zero.
type attr struct {
	fs, net, scoped uint64
}

// attributes returns what a kernel of this ABI can refuse of all that the
// ruleset wants refused, and names what it cannot.
func (rs Ruleset) attributes(abi int) (a attr, uncovered []string) {
	a.fs = uint64(allRights)
	if rs.Handled != 0 {
		a.fs = uint64(rs.Handled | Move)
	}
	without := func(since int, name string, field *uint64, bits uint64) {
		if abi < since && *field&bits != 0 {
			*field &^= bits
			uncovered = append(uncovered, name)
		}
	}
	if rs.NoTCP {
		a.net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		without(4, "TCP ports", &a.net, a.net)
	}
	if rs.Apart {
		a.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		without(6, "signals and abstract sockets", &a.scoped, a.scoped)
	}
	if abi < 2 {
		a.fs &^= uint64(Move) // always refused then
	}
	without(3, "truncating files", &a.fs, uint64(Truncate))
	without(5, "requests to devices", &a.fs, uint64(DeviceIoctl))
	return a, uncovered
}
