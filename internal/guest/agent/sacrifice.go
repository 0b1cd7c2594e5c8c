//go:build linux

package agent

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The kernel's scale for who is killed first when memory runs out.
const (
	mostScore = 1000
	programs  = 500 // above the agent
)

// sacrifice makes the kernel kill programs before us. The zero value does nothing.
type sacrifice struct {
	fd         int // of our score, or 0
	own, ahead []byte
}

// newSacrifice is for a process that can still look into itself. Where it cannot
// be done the kernel chooses by size alone, and programs are mostly larger.
func newSacrifice() (s sacrifice) {
	fd, err := unix.Open("/proc/self/oom_score_adj", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return s
	}
	var b [16]byte
	n, _ := unix.Pread(fd, b[:], 0)
	own := strings.TrimSpace(string(b[:max(n, 0)]))
	ahead := aheadOf(own)
	if ahead == "" {
		_ = unix.Close(fd)
		return s
	}
	return sacrifice{fd: fd, own: []byte(own), ahead: []byte(ahead)}
}

// aheadOf is the score of programs, given what the agent's own is.
func aheadOf(own string) string {
	n, err := strconv.Atoi(strings.TrimSpace(own))
	if err != nil {
		return ""
	}
	return strconv.Itoa(min(n+programs, mostScore))
}

// during runs what forks: a child is born with the score that its parent has.
// Afterwards it would be too late, since it has children of its own by then.
func (s *sacrifice) during(fork func() error) error {
	if s.fd == 0 {
		return fork()
	}
	_, _ = unix.Pwrite(s.fd, s.ahead, 0)
	err := fork()
	_, _ = unix.Pwrite(s.fd, s.own, 0)
	return err
}
