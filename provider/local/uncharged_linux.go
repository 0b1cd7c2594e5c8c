package local

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux/uncharged"
)

// mostBlind is how often in a row nothing may be seen: of a process on its way out nothing
// can be.
const mostBlind = 20

// lookAtKernel is the watch over what the kernel keeps for the one program of a
// sandbox, which has no agent to look.
func (m *made) lookAtKernel() error {
	m.killing.Lock()
	defer m.killing.Unlock()
	if m.process < 0 {
		return nil
	}
	if m.watch == nil {
		w, err := watchOf(m.process)
		if m.blind++; err != nil && m.blind < mostBlind {
			return nil
		}
		if err != nil {
			return cove.Wrap(cove.Unavailable, err, "the kernel memory of sandbox %s cannot be counted", m.name).
				Remedy("let cove read /proc of its own sandboxes")
		}
		m.watch = w
	}
	e, found := m.watch.Look()
	if !found {
		return nil
	}
	return guest.TooMuch(e.Kind == uncharged.Sockets, e.Count, e.Most)
}

// watchOf opens the watch for the first process of a sandbox.
func watchOf(process int) (*uncharged.Watch, error) {
	pid, err := pidOf(process)
	if err != nil {
		return nil, err
	}
	of := "/proc/" + strconv.Itoa(pid)
	return uncharged.Open(of+"/root/proc", of)
}

// pidOf is the number of the process that a pidfd names.
func pidOf(process int) (int, error) {
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(process))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\nPid:")
	word, _, _ := strings.Cut(rest, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(word))
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("its first process: %w", unix.ESRCH)
	}
	return pid, nil
}

// watches is what looks at what the kernel keeps for a sandbox without an agent; nil
// where nothing of it can be seen.
func (m *made) watches() func() error {
	p, err := m.kit.planned()
	if err != nil || !p.Proc || m.host.cfg.weak.kernel {
		return nil
	}
	return m.lookAtKernel
}
