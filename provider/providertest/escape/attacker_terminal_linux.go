package escape

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// typeIntoTerminal uses its own terminal, or one that it makes for itself.
func typeIntoTerminal(m mission) verdict {
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err != nil {
		return onTerminal(m)
	}
	var t tally
	key := at(byte('x'))
	for name, request := range map[string]uintptr{
		"TIOCSTI": unix.TIOCSTI, "TIOCSTI with high bits": unix.TIOCSTI | 0xdeadbeef<<32,
		"TIOCLINUX": unix.TIOCLINUX, "TIOCLINUX with high bits": unix.TIOCLINUX | 1<<63,
	} {
		t.make(call{name: name, do: sys(unix.SYS_IOCTL, 0, request, key), twin: sys(unix.SYS_IOCTL, bad, request, key)})
	}
	return t.verdict()
}

// onTerminal starts the attacker once more: a terminal belongs to whoever leads
// a session, and only a new process is sure to lead one.
func onTerminal(m mission) verdict {
	master, slave, err := newTerminal()
	if err != nil {
		return heldBy("there is no terminal: " + errnoName(err))
	}
	defer func() { _, _ = master.Close(), slave.Close() }()
	var out bytes.Buffer
	c := exec.Command("/proc/self/exe") //nolint:noctx // whoever started us bounds the time
	c.Args = []string{Name, "terminal_input", encode(m)}
	c.Stdin, c.Stdout = slave, &out
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Run(); err != nil {
		return breach("inconclusive: " + err.Error())
	}
	v, _ := ran{text: strings.TrimSpace(out.String())}.said()
	return v
}

// newTerminal makes a terminal and returns both ends.
func newTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetUint32(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(n)), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		_ = master.Close()
		return nil, nil, err
	}
	return master, slave, nil
}
