package escape

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// gate32 makes a system call without arguments by its 32-bit number, through
// the gate that 32-bit programs use. Implemented in assembler.
func gate32(number uint32) int32

// calls32 asks for its own process: a harmless question, which shows that the
// gate is open and that a filter with 64-bit numbers reads others than are meant.
func calls32(mission) (v verdict) {
	defer func() {
		if recover() != nil {
			v = heldBy("the kernel has no 32-bit gate")
		}
	}()
	const getpid = 20
	if got := gate32(getpid); int(got) == os.Getpid() {
		return breach("the 32-bit gate is open")
	} else {
		return heldBy("the 32-bit gate answers " + strconv.Itoa(int(got)))
	}
}

func callsX32(mission) verdict {
	const x32 = 0x40000000
	var t tally
	t.make(call{name: "getpid by its x32 number", do: sys(x32 | unix.SYS_GETPID)})
	return t.verdict()
}

// machineCalls are those that only this architecture has.
func machineCalls() []call {
	return []call{
		{name: "iopl", do: sys(unix.SYS_IOPL, 3), twin: sys(unix.SYS_IOPL, 99)},
		{name: "ioperm", do: sys(unix.SYS_IOPERM, 0x80, 1, 1), twin: sys(unix.SYS_IOPERM, 1<<20, 1, 1)},
		{name: "modify_ldt", do: sys(unix.SYS_MODIFY_LDT, 0, 0, 0), twin: sys(unix.SYS_MODIFY_LDT, 99)},
	}
}
