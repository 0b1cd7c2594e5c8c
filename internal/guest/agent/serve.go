//go:build linux

package agent

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/forkexec"
)

// Bounds on what runs at once.
const (
	maxPrograms = 1024
	maxFileOps  = 128
	maxKills    = 2 * maxPrograms // by its time limit and by its owner
)

// server answers one host.
type server struct {
	link  protocol.Link
	null  int
	slots chan struct{} // one for each file operation
	kills chan struct{} // one for each program that is being ended
	files forkexec.Limit
	offer sacrifice    // guarded by forks
	user  int          // who programs are; 0 is who we are
	room  room         // for what is kept of programs
	out   atomic.Int32 // connections on their way out
	in    atomic.Int32 // and those that the host made

	berths berths
	lists  confinements
	begun  chan struct{} // that there is a program; nil where the kernel is not watched

	// highest is the largest id of the hosts so far; only who receives looks at it.
	highest uint64
	greeted bool // by any host; likewise

	// forks is held while a program is started: a child that is not known
	// otherwise is one that was left to us. Take it before procs.
	forks sync.Mutex

	// procs guards the fields below.
	procs    sync.Mutex
	programs map[uint64]*program
	ended    []end // of whom the host has not heard
	family   family
	kept     map[string]*kept
	pressure pressure
}

func newServer(link protocol.Link) (*server, error) {
	if os.Getpid() != 1 {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f, err := newFamily()
	if err != nil {
		return nil, err
	}
	return &server{
		link: link, null: null, slots: make(chan struct{}, maxFileOps), kills: make(chan struct{}, maxKills), files: openFiles(),
		programs: map[uint64]*program{}, family: f, kept: map[string]*kept{},
	}, nil
}

// serve answers until the host is gone or says that it is over. Children are
// reaped on the first thread, and started from another: orphans come to the
// first one, and are told from those we started by that.
func (s *server) serve() {
	runtime.LockOSThread()
	go func() {
		for s.next() {
		}
		s.end()
		s.family.finish()
	}()
	s.attend()
}

// next answers one message, and reports whether there may be more.
func (s *server) next() bool {
	m, err := s.link.Receive()
	if err != nil {
		return false
	}
	if m.Kind == protocol.KindShutdown {
		s.end()
		s.reply(m.ID, protocol.Reply{})
		return false
	}
	s.handle(m)
	return true
}

// end kills all that is left, before our descriptors are closed: programs must not take that
// for the end of their input. For a process 1 the kernel finds all of them.
func (s *server) end() {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	const rounds = 100 // orphans of what was killed appear with us
	for range rounds {
		all, err := forkexec.Children(os.Getpid())
		if err != nil || len(all) == 0 {
			return
		}
		_ = forkexec.KillTree(context.Background(), all...)
		s.sweep()
	}
}

// handle answers one request, at once or from a goroutine of its own.
func (s *server) handle(m *protocol.Message) {
	s.highest = max(s.highest, m.ID)
	switch m.Kind { //nolint:exhaustive // the others are files, or none of ours
	case protocol.KindHello:
		s.hello(m)
	case protocol.KindLeave:
		s.left(nil)
	case protocol.KindKept:
		s.listMore(m)
	case protocol.KindForget:
		s.forget(m)
	case protocol.KindPing:
		s.reply(m.ID, protocol.Reply{})
	case protocol.KindStart:
		s.berths.clear()
		s.start(m)
	case protocol.KindTake:
		s.take(m)
	case protocol.KindHold:
		s.berths.clear()
		s.hold(m)
	case protocol.KindMark:
		s.mark(m)
	case protocol.KindFollow:
		s.follow(m)
	case protocol.KindLook:
		s.look(m)
	case protocol.KindShut:
		s.shut(m)
	case protocol.KindListen:
		s.listen(m)
	case protocol.KindBound:
		s.bound(m)
	case protocol.KindSignal:
		s.signal(m)
	case protocol.KindResize:
		s.resize(m)
	default:
		s.later(m)
		return
	}
	for _, st := range m.Streams {
		st.Close()
	}
}

// later runs what may take long.
func (s *server) later(m *protocol.Message) {
	// What ends programs must not wait for files, nor be refused because of them.
	slots, do := s.slots, s.file
	switch m.Kind { //nolint:exhaustive // the others are about files
	case protocol.KindKill:
		slots, do = s.kills, s.kill
	case protocol.KindTag:
		do = s.tag
	}
	select {
	case slots <- struct{}{}:
	default:
		s.reply(m.ID, protocol.Reply{Reason: protocol.ReasonBusy})
		closeStreams(m)
		return
	}
	go func() {
		defer func() { <-slots }()
		defer closeStreams(m)
		do(m)
	}()
}

func closeStreams(m *protocol.Message) {
	for _, st := range m.Streams {
		st.Close()
	}
}

// hello answers a host. The second one finds nothing of the first but what is
// kept.
func (s *server) hello(m *protocol.Message) {
	g := protocol.Greeting{Version: protocol.Version, PID: os.Getpid(), Proc: forkexec.Probe() == nil, Confines: confines()}
	answer := func() {
		// No end may be told in between: the host would not know whose it is.
		s.procs.Lock()
		defer s.procs.Unlock()
		s.listKept(&g, 0)
		s.reply(m.ID, protocol.Reply{Body: g.Encode()})
	}
	if !s.greeted {
		s.greeted = true
		answer()
		return
	}
	g.Highest = s.highest
	s.left(answer)
}

func (s *server) reply(id uint64, r protocol.Reply, streams ...*protocol.Stream) {
	// A host that is gone is noticed by whoever receives.
	err := s.link.Send(&protocol.Message{Kind: protocol.KindReply, ID: id, Body: r.Encode(), Streams: streams})
	if errors.Is(err, protocol.ErrNoRoom) {
		r = protocol.Reply{Reason: protocol.ReasonBusy}
		_ = s.link.Send(&protocol.Message{Kind: protocol.KindReply, ID: id, Body: r.Encode()})
	}
}

// malformed answers a request that does not decode: the host has a bug.
func (s *server) malformed(m *protocol.Message) {
	s.reply(m.ID, protocol.Reply{Errno: uint32(unix.EBADMSG), Reason: protocol.ReasonUnknown})
}

// failed is an error with a reason that an errno cannot give.
type failed struct {
	reason protocol.Reason
	errno  syscall.Errno
	text   string
}

func (f *failed) Error() string { return f.errno.Error() + " " + f.text }

// failure turns an error into a reply.
func failure(err error) protocol.Reply {
	if err == nil {
		return protocol.Reply{}
	}
	if f, ok := errors.AsType[*failed](err); ok {
		return protocol.Reply{Errno: uint32(f.errno), Reason: f.reason, Text: f.text} //nolint:gosec // errnos are small
	}
	r := protocol.Reply{Errno: uint32(unix.EIO)}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errno != 0 {
		r.Errno = uint32(errno) //nolint:gosec // errnos are small
	}
	if p, ok := errors.AsType[*os.PathError](err); ok {
		r.Text = p.Path
	}
	return r
}
