package fence

import (
	"errors"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
)

// Name is what argv[0] of a spawner is, by which an executable that is more than
// that knows what it was started for.
const Name = "cove-spawner"

// DefaultFD is where a spawner finds its socket.
const DefaultFD = 3

// Main is the spawner: it turns the plan's root into its own and builds
// sandboxes in it until its host is gone. It returns the exit code of the
// process. It must be called from the main goroutine.
func Main(socket int) int {
	// The first thread of the process is where the root is built and stays out of
	// every sandbox.
	runtime.LockOSThread()
	// Go opens what its timers need with the first of them. Opened now, a spawner
	// holds the same descriptors at its first sandbox and at its last.
	time.AfterFunc(0, func() {})
	unix.CloseOnExec(socket)
	b, err := open(socket)
	if err != nil {
		_ = send(socket, refuse(0, err).encode())
		return 1
	}
	if send(socket, (&answer{}).encode()) != nil {
		return 1
	}
	s := &spawner{socket: socket, builder: b, born: make(chan struct{}, 1)}
	go s.reap()
	s.serve()
	return 0
}

// open reads the plan and carries out what all sandboxes share.
func open(socket int) (*Builder, error) {
	text, files, err := receive(socket, make([]byte, maxPacket))
	if err != nil {
		return nil, err
	}
	if len(files) != 2 {
		return nil, protocol.ErrMalformed
	}
	p, err := decodePlan(text)
	if err != nil {
		return nil, err
	}
	b, err := NewBuilder(p, files[0], files[1])
	if err != nil {
		return nil, err
	}
	if len(b.filter) > 0 { // every sandbox inherits it
		if err = seccomp.LimitFilters(true); err != nil {
			return nil, err
		}
		b.limited = true
	}
	if b.view, err = newView(); err != nil {
		return nil, err
	}
	return b, b.settle()
}

type spawner struct {
	socket  int
	builder *Builder
	born    chan struct{} // there is a child to wait for
}

func (s *spawner) serve() {
	buf := make([]byte, maxPacket)
	for {
		text, files, err := receive(s.socket, buf)
		if err != nil {
			return
		}
		r, err := decodeRequest(text)
		if err != nil {
			closeAll(files)
			return
		}
		go s.answer(r, files)
	}
}

func (s *spawner) answer(r request, files []int) {
	defer closeAll(files)
	a := &answer{id: r.id}
	var made []int
	var err error
	switch r.kind {
	case kindBuild:
		var box Sandbox
		if box, err = s.build(&r, files); err == nil {
			a.pid = box.PID
			made = box.files()
		}
	case kindResize:
		err = Resize(files, r.places)
	case kindJob:
		var done Done
		done, err = s.builder.Tools().Do(r.job, files)
		made, a.bytes, a.pid = done.Files, done.Bytes, int(done.Count)
	case kindWays:
		if len(files) == 1 {
			made, err = OpenWays(files[0], r.ways)
		} else {
			err = protocol.ErrMalformed
		}
	case kindNest:
		var fd int
		if fd, err = s.nest(r.nest, files); err == nil {
			made = []int{fd}
		}
	default:
		err = protocol.ErrMalformed
	}
	if err != nil {
		a = refuse(r.id, err)
	}
	_ = send(s.socket, a.encode(), made...) // a host that is gone is noticed by who receives
	closeAll(made)
}

func (s *spawner) build(r *request, files []int) (Sandbox, error) {
	h := Handles{Group: -1}
	if len(files) < 1 || r.group && len(files) < 2 {
		return Sandbox{}, protocol.ErrMalformed
	}
	h.Link, files = files[0], files[1:]
	if r.group {
		h.Group, files = files[0], files[1:]
	}
	for _, v := range r.order.Volumes {
		need := 1
		if v.Mapped {
			need = 2
		}
		if len(files) < need {
			return Sandbox{}, protocol.ErrMalformed
		}
		source := VolumeHandles{Source: files[0], Users: -1}
		if v.Mapped {
			source.Users = files[1]
		}
		h.Volumes, files = append(h.Volumes, source), files[need:]
	}
	h.Tasks = files
	box, err := s.builder.Build(r.order, h)
	if err == nil {
		s.builder.Stock()
		select {
		case s.born <- struct{}{}:
		default:
		}
	}
	return box, err
}

// reap waits for sandboxes to end. It holds a thread.
func (s *spawner) reap() {
	for {
		_, err := unix.Wait4(-1, nil, 0, nil)
		if errors.Is(err, unix.ECHILD) {
			<-s.born
		}
	}
}

func refuse(id uint64, err error) *answer {
	a := &answer{id: id, fault: err.Error()}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		a.errno = errno
	}
	return a
}
