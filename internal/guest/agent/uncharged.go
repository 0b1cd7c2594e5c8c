//go:build linux

package agent

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/uncharged"
)

// How often it is looked whether the kernel keeps more than before, and how long the
// host may take to hear that the sandbox ends.
const (
	unchargedGap = 50 * time.Millisecond
	excessTime   = time.Second
)

// watchKernel has us end the sandbox when its programs have the kernel keep too much
// of what no control group is charged for. We must be the first process of it.
func (s *server) watchKernel() {
	s.begun = make(chan struct{}, 1)
	go func() {
		<-s.begun
		w, err := uncharged.Open("/proc", "/proc/self")
		if err != nil {
			return // there is no /proc, which the host knows
		}
		for {
			if unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == unix.ECHILD {
				<-s.begun
			}
			rest(unchargedGap)
			if e, found := w.Look(); found {
				s.exceed(e)
			}
		}
	}()
}

// exceed ends everything, and tells the host why.
func (s *server) exceed(e uncharged.Excess) {
	x := protocol.Excess{Kind: protocol.Locks, Count: e.Count, Most: e.Most}
	if e.Kind == uncharged.Sockets {
		x.Kind = protocol.Sockets
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		_ = s.link.Send(&protocol.Message{Kind: protocol.KindExcess, Body: x.Encode()}) // a host that is gone finds the end
	}()
	late := time.NewTimer(excessTime)
	select {
	case <-told:
	case <-late.C:
	}
	s.end()
	os.Exit(1)
}

// wakeWatch says that there is a program. It does not wait.
func wakeWatch(watch chan struct{}) {
	select {
	case watch <- struct{}{}:
	default: // it knows already, or there is none
	}
}
