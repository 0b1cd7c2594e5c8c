//go:build linux

package agent

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// usage counts what can be seen from inside. What cannot be seen is zero.
func (s *server) usage(m *protocol.Message, f protocol.File) {
	var u protocol.Usage
	var st unix.Statfs_t
	if err := unix.Statfs(f.Name, &st); err != nil {
		s.reply(m.ID, failure(err))
		return
	}
	u.Disk = int64(st.Blocks-st.Bfree) * st.Bsize //nolint:gosec // of a file system
	u.Files = max(0, int64(st.Files-st.Ffree)-1)  //nolint:gosec // of a file system, whose root is no file in it
	if f.Depth > 0 {
		t, err := count(f.Name)
		if err != nil {
			s.reply(m.ID, failure(err))
			return
		}
		u.Disk, u.Files = t.bytes, t.files
	}
	if dir, err := os.Open("/proc"); err == nil {
		names, _ := dir.Readdirnames(-1)
		_ = dir.Close()
		own, door := strconv.Itoa(os.Getpid()), ""
		if d, ok := s.link.(*doors); ok {
			door = strconv.Itoa(d.door())
		}
		for _, n := range names {
			if n[0] >= '1' && n[0] <= '9' {
				if ticks, ok := cpuTicks(n); ok {
					if n != own && n != door && ours(n) {
						u.PIDs++
					}
					u.CPU += ticks * 10_000 // a hundred ticks a second, on every Linux
				}
			}
		}
	}
	s.reply(m.ID, protocol.Reply{Body: u.Encode()})
}

// ours reports whether a process is one of the sandbox's programs. Where we are not
// the first process, there are others that came before us.
func ours(pid string) bool {
	if os.Getpid() == 1 {
		return true
	}
	var st unix.Stat_t
	return unix.Stat("/proc/"+pid, &st) == nil && int(st.Uid) == os.Geteuid()
}

// cpuTicks returns the time that a process and the children it reaped used.
func cpuTicks(pid string) (int64, bool) {
	text, err := os.ReadFile("/proc/" + pid + "/stat") //nolint:gosec // pid came from /proc
	if err != nil {
		return 0, false
	}
	// The name of a program may hold anything, also parentheses.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const first, last = 11, 15 // utime, stime, cutime, cstime
	if len(fields) < last {
		return 0, false
	}
	sum := int64(0)
	for _, field := range fields[first:last] {
		n, _ := strconv.ParseInt(field, 10, 64)
		sum += n
	}
	return sum, true
}
