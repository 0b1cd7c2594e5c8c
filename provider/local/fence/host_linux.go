package fence

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrEnded says that a spawner is gone. Another can be launched.
var ErrEnded = errors.New("the spawner of sandboxes has ended")

// Spawner is the host's end of a spawner. Methods are safe for concurrent use.
type Spawner struct {
	socket *os.File
	raw    syscall.RawConn
	pidfd  int         // of its process
	child  *os.Process // nil if it is another's child

	mu    sync.Mutex
	next  uint64
	calls map[uint64]chan reply // nil when it is over
	done  chan struct{}         // the spawner is gone, or was left
	left  bool                  // it lives on without us
}

// reply is an answer with what came with it.
type reply struct {
	answer
	files []int
}

// Launch starts a spawner from an executable that calls [Main] when its argv[0]
// is [Name], and waits until its root stands. The descriptors are as in
// [NewBuilder]; the caller may close them afterwards.
func Launch(p *Plan, executable, proc int) (*Spawner, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	child, err := start(p, executable, fds[1])
	_ = unix.Close(fds[1])
	if err != nil {
		_ = unix.Close(fds[0])
		return nil, err
	}
	err = greet(fds[0], p, executable, proc)
	pidfd := -1
	if err == nil {
		pidfd, err = unix.PidfdOpen(child.Pid, 0)
		err = os.NewSyscallError("pidfd_open", err)
	}
	if err != nil {
		_ = unix.Close(fds[0])
		_ = child.Kill() // whatever it is, it is of no use
		_, _ = child.Wait()
		return nil, err
	}
	return newSpawner(fds[0], pidfd, child)
}

// Rejoin takes up a spawner that an earlier process left: the descriptors are
// what [Spawner.Link] gave it, and the spawner's from now on.
func Rejoin(socket, process int) (*Spawner, error) {
	return newSpawner(socket, process, nil)
}

func newSpawner(socket, pidfd int, child *os.Process) (*Spawner, error) {
	_ = unix.SetNonblock(socket, true)
	s := &Spawner{socket: os.NewFile(uintptr(socket), "spawner"), pidfd: pidfd, child: child, calls: map[uint64]chan reply{}, done: make(chan struct{})}
	// Answers to an earlier process may come yet, and are none of ours.
	s.next = uint64(rand.Uint32()) << 31 //nolint:gosec // no secret
	var err error
	if s.raw, err = s.socket.SyscallConn(); err != nil {
		_ = s.socket.Close()
		s.reap()
		return nil, err
	}
	go s.listen()
	return s, nil
}

// Link returns descriptors of the connection and of the process, which the caller
// closes. While anybody has the first, the spawner lives.
func (s *Spawner) Link() (socket, process int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		return -1, -1, ErrEnded
	}
	if process, err = unix.FcntlInt(uintptr(s.pidfd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return -1, -1, os.NewSyscallError("fcntl", err)
	}
	var said error
	err = s.raw.Control(func(fd uintptr) { socket, said = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, said); err != nil {
		_ = unix.Close(process)
		return -1, -1, err
	}
	return socket, process, nil
}

// Leave lets go of a spawner that somebody else has a link to. It lives on.
func (s *Spawner) Leave() {
	s.mu.Lock()
	s.left = true
	s.mu.Unlock()
	_ = s.socket.Close()
	<-s.done
}

func start(p *Plan, executable, socket int) (*os.Process, error) {
	// In a session of its own: what is typed at the host's terminal is not for it.
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Setsid: true}
	if !p.Become {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	dup, err := unix.FcntlInt(uintptr(socket), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	link := os.NewFile(uintptr(dup), "spawner")
	defer func() { _ = link.Close() }()
	return os.StartProcess("/proc/self/fd/"+strconv.Itoa(executable), []string{Name}, &os.ProcAttr{
		Dir: "/", Env: p.Env, Files: []*os.File{null, null, null, link}, Sys: attr,
	})
}

// patience is how long a spawner may take to build its root, and to end by
// itself.
var patience = 20 * time.Second

// errSilent is said of an executable that is something else, most likely.
var errSilent = errors.New("what was started as the spawner of sandboxes says nothing")

// greet sends the plan and hears whether the root stands.
func greet(socket int, p *Plan, executable, proc int) error {
	wait := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	if err := send(socket, p.encode(), executable, proc); errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return errors.Join(ErrEnded, err)
	} else if err != nil {
		return err
	}
	text, files, err := receive(socket, make([]byte, maxPacket))
	if errors.Is(err, unix.EAGAIN) {
		return errSilent
	} else if err != nil {
		return errors.Join(ErrEnded, err)
	}
	closeAll(files)
	a, err := decodeAnswer(text)
	if err != nil {
		return err
	}
	return a.err()
}

func (a *answer) err() error {
	if a.fault == "" {
		return nil
	}
	return &Fault{Step: a.fault, Errno: a.errno}
}

// Close ends the spawner, and waits until it has. The sandboxes it made live for
// as long as their links.
func (s *Spawner) Close() error {
	late := time.AfterFunc(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pidfd >= 0 {
			_ = unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
		}
	})
	defer late.Stop()
	err := s.socket.Close()
	<-s.done
	if errors.Is(err, os.ErrClosed) {
		return nil // it had ended before
	}
	return err
}

// Done is closed when the spawner has ended.
func (s *Spawner) Done() <-chan struct{} { return s.done }

// Build is [Builder.Build] in the spawner. When ctx ends first, what was made is
// let go; it ends as soon as the caller closes its end of the link.
func (s *Spawner) Build(ctx context.Context, o Order, h Handles) (Sandbox, error) {
	r := request{kind: kindBuild, order: o, group: h.Group >= 0}
	files := []int{h.Link}
	if r.group {
		files = append(files, h.Group)
	}
	for _, v := range h.Volumes {
		files = append(files, v.Source)
		if v.Users >= 0 {
			files = append(files, v.Users)
		}
	}
	a, err := s.call(ctx, &r, append(files, h.Tasks...))
	if err != nil {
		return Sandbox{}, err
	}
	box, ok := sandboxOf(a.files, o.Handles)
	if !ok {
		closeAll(a.files)
		return Sandbox{}, ErrEnded
	}
	box.PID = a.pid
	return box, nil
}

// Do is [Tools.Do] in the spawner. When ctx ends first, the job may go on.
func (s *Spawner) Do(ctx context.Context, j Job, files []int) (Done, error) {
	a, err := s.call(ctx, &request{kind: kindJob, job: j}, files)
	if err != nil {
		closeAll(a.files)
		return Done{}, err
	}
	return Done{Files: a.files, Bytes: a.bytes, Count: int64(a.pid)}, nil
}

// Resize is [Resize] in the spawner.
func (s *Spawner) Resize(ctx context.Context, handles []int, to Places) error {
	a, err := s.call(ctx, &request{kind: kindResize, places: to}, handles)
	closeAll(a.files)
	return err
}

// OpenWays is [OpenWays] in the spawner.
func (s *Spawner) OpenWays(ctx context.Context, process int, w Ways) ([]int, error) {
	a, err := s.call(ctx, &request{kind: kindWays, ways: w}, []int{process})
	if err == nil && len(a.files) != w.count() {
		err = ErrEnded
	}
	if err != nil {
		closeAll(a.files)
		return nil, err
	}
	return a.files, nil
}

// Nest starts a program beside the sandboxes. The files become its standard input
// and its descriptor 3, and stay the caller's. The pidfd is the caller's to close.
func (s *Spawner) Nest(ctx context.Context, n Nest, input, socket int) (pidfd int, err error) {
	a, err := s.call(ctx, &request{kind: kindNest, nest: n}, []int{input, socket})
	if err == nil && len(a.files) != 1 {
		err = ErrEnded
	}
	if err != nil {
		closeAll(a.files)
		return -1, err
	}
	return a.files[0], nil
}

// call sends a request and waits for the answer.
func (s *Spawner) call(ctx context.Context, r *request, files []int) (reply, error) {
	s.mu.Lock()
	if s.calls == nil {
		s.mu.Unlock()
		return reply{}, ErrEnded
	}
	s.next++
	r.id = s.next
	ch := make(chan reply, 1)
	s.calls[r.id] = ch
	s.mu.Unlock()
	if err := s.write(r.encode(), files); err != nil {
		s.forget(r.id)
		return reply{}, errors.Join(ErrEnded, err)
	}
	select {
	case a := <-ch:
		return a, a.err()
	case <-s.done:
	case <-ctx.Done():
	}
	if !s.forget(r.id) { // it comes after all, or came
		s.drop(ch)
	}
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	return reply{}, ErrEnded
}

// drop closes what an answer brings that nobody waits for any more.
func (s *Spawner) drop(ch <-chan reply) {
	select {
	case a := <-ch:
		closeAll(a.files)
		return
	case <-s.done:
	}
	select { // the last answers come before the end
	case a := <-ch:
		closeAll(a.files)
	default:
	}
}

// forget reports whether the answer had not come yet.
func (s *Spawner) forget(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waits := s.calls[id]
	delete(s.calls, id)
	return waits
}

func (s *Spawner) write(b []byte, files []int) error {
	var said error
	err := s.raw.Write(func(fd uintptr) bool {
		said = send(int(fd), b, files...)
		return !errors.Is(said, unix.EAGAIN)
	})
	return errors.Join(err, said)
}

// listen hands out answers until the spawner is gone.
func (s *Spawner) listen() {
	buf := make([]byte, maxPacket)
	for {
		a, err := s.read(buf)
		if err != nil {
			break
		}
		s.mu.Lock()
		ch := s.calls[a.id]
		delete(s.calls, a.id)
		s.mu.Unlock()
		if ch == nil {
			closeAll(a.files)
			continue
		}
		ch <- a
	}
	s.mu.Lock()
	s.calls = nil
	left := s.left
	s.mu.Unlock()
	_ = s.socket.Close()
	switch {
	case !left:
		s.reap()
	case s.child != nil:
		go s.reap() // for as long as we are its parent
	default:
		_ = unix.Close(s.pidfd)
	}
	close(s.done)
}

// reap waits for the end of the process.
func (s *Spawner) reap() {
	if s.child != nil {
		_, _ = s.child.Wait()
	}
	for s.child == nil {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(s.pidfd), Events: unix.POLLIN}}, -1) //nolint:gosec // a descriptor
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = unix.Close(s.pidfd)
	s.pidfd = -1
}

func (s *Spawner) read(buf []byte) (r reply, err error) {
	var text []byte
	var said error
	err = s.raw.Read(func(fd uintptr) bool {
		text, r.files, said = receive(int(fd), buf)
		return !errors.Is(said, unix.EAGAIN)
	})
	if err = errors.Join(err, said); err != nil {
		return r, err
	}
	if r.answer, err = decodeAnswer(text); err != nil {
		closeAll(r.files)
	}
	return r, err
}
