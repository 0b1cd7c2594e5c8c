package local

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// zygoteSource is what an interpreter is given that waits outside of all sandboxes
// with modules imported, and forks others into them.
//
//go:embed nest/zygote.py
var zygoteSource []byte

// hatchCode has it read its source: what a program is called with stays to be seen
// in all that it forks.
const hatchCode = `with open(0, "rb", closefd=False) as f: s = f.read()
exec(compile(s, "<cove>", "exec"))`

// Times and bounds of zygotes.
const (
	hatchTime   = 60 * time.Second // for all imports
	forkTime    = 10 * time.Second // for one fork
	zygoteRest  = 10 * time.Minute // without a fork
	zygoteRetry = time.Minute      // after one could not be started
)

// zygote is an interpreter that waits outside of all sandboxes.
type zygote struct {
	conn  *net.UnixConn
	pidfd int

	mu sync.Mutex // one fork at a time
}

// nursery has the zygotes of a kit.
type nursery struct {
	mu  sync.Mutex
	all map[string]*hatching // by what they are; guarded by mu
}

// hatching is a zygote, or one on its way.
type hatching struct {
	ready chan struct{} // closed when z or err is set
	z     *zygote
	idle  *time.Timer // ends z when it is not used

	// Guarded by the nursery's mu once it is ready.
	err   error // why there is none
	since time.Time
}

// StartPreloaded implements [cove.SparePreloader]. The interpreter is forked from
// one that has imported the modules already, so that all share the memory of these.
// Only spares get such: nobody is in there who could be in the way of a process that
// still has rights.
func (s *spare) StartPreloaded(ctx context.Context, cmd cove.Command, r cove.Resources, modules []string) (cove.Process, error) {
	conn, ok := s.conn.(*guest.Conn)
	if !ok || !isPython(cmd.Argv) || !s.made.kit.nested() {
		return nil, cove.Errorf(cove.Unsupported, "nothing is imported ahead for this program")
	}
	return s.startIn(ctx, cmd, r, func(ctx context.Context, cmd cove.Command) (cove.Process, error) {
		return conn.Take(ctx, cmd, func(ctx context.Context, p guest.Planted) (int, *os.File, error) {
			pid, begin, err := s.plant(ctx, cmd.Argv, p, modules)
			if err != nil && cove.CodeOf(err) != cove.Conflict {
				return 0, nil, cove.Wrap(cove.Unsupported, err, "no interpreter can be forked into a sandbox: %s", err)
			}
			return pid, begin, err
		})
	})
}

// isPython reports whether a command runs a piece of code with nothing of its user's
// around it.
func isPython(argv []string) bool {
	return len(argv) == 4 && strings.HasPrefix(argv[0], "python3") && argv[1] == "-I" && argv[2] == "-c"
}

// nested reports whether interpreters can be forked into the kit's sandboxes.
func (k *kit) nested() bool {
	plan, err := k.planned()
	return err == nil && plan.Nested
}

// plant forks an interpreter into the spare, which begins when a byte is written to the
// file. While it still has rights, nobody can claim the spare.
func (s *spare) plant(ctx context.Context, argv []string, p guest.Planted, modules []string) (int, *os.File, error) {
	m := s.made
	if slices.Contains(p.Files[:], -1) {
		return 0, nil, errors.New("it needs all three streams")
	}
	h, err := m.kit.zygote(ctx, argv, p.Env, modules)
	if err != nil {
		return 0, nil, err
	}
	wait, begin, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = wait.Close() }()
	pid, err := s.fork(ctx, h, argv[3], p, wait)
	if err != nil {
		_ = begin.Close()
		return 0, nil, err
	}
	return pid, begin, nil
}

// fork has a zygote fork an interpreter into the spare, which waits for a byte of a file.
func (s *spare) fork(ctx context.Context, h *hatching, code string, p guest.Planted, wait *os.File) (int, error) {
	m := s.made
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used {
		return 0, usedUp()
	}
	entry, files, err := m.entry(ctx, p)
	for _, fd := range files {
		defer func() { _ = unix.Close(fd) }()
	}
	if err != nil {
		return 0, err
	}
	order := struct {
		fence.Entry

		Env  []string `json:"env"`
		Code string   `json:"code"`
		Wait int      `json:"wait"` // which of the files it reads before it begins
	}{entry, p.Env, code, 3 + len(files)}
	pid, err := h.z.fork(ctx, order, slices.Concat(p.Files[:], files, []int{int(wait.Fd())}))
	if err != nil {
		m.kit.nursery.fail(h, err)
	}
	return pid, err
}

// entry is the way into the sandbox. The files come after the three streams, and are
// the caller's to close also with an error.
func (m *made) entry(ctx context.Context, p guest.Planted) (e fence.Entry, files []int, err error) {
	plan, err := m.kit.planned()
	if err != nil {
		return e, nil, err
	}
	at := fence.EntryFiles{Process: 3, Ruleset: -1, Group: -1}
	m.killing.Lock()
	process, err := unix.FcntlInt(uintptr(m.process), unix.F_DUPFD_CLOEXEC, 0)
	m.killing.Unlock()
	if err != nil {
		return e, nil, os.NewSyscallError("fcntl", err)
	}
	files = append(files, process)
	if plan.Landlock {
		done, err := m.crew().do(ctx, fence.Job{Kind: fence.JobWalls, Bare: plan.Layers}, process)
		if err != nil {
			return e, files, err
		}
		files = append(files, done.Files...)
		at.Ruleset = 4
	}
	tasks, err := m.tasks()
	for _, t := range tasks {
		at.Tasks = append(at.Tasks, 3+len(files))
		files = append(files, t)
	}
	if err != nil {
		return e, files, err
	}
	limits := []fence.Rlimit{programFiles(p.Processes)}
	if p.Processes > 0 {
		most := uint64(p.Processes) + m.agentThreads()
		limits = append(limits, fence.Rlimit{Resource: unix.RLIMIT_NPROC, Soft: most, Hard: most})
	}
	return plan.Entry(at, limits...), files, nil
}

// programFiles is the agent's own limit for programs.
func programFiles(processes int) fence.Rlimit {
	const usual = 1024
	most := openFiles()
	soft := min(usual, most)
	return fence.Rlimit{Resource: unix.RLIMIT_NOFILE, Soft: soft, Hard: max(soft, linux.OpenFiles(processes, most/2))}
}

// tasks are descriptors of what lets a process into the control groups by writing to
// it.
func (m *made) tasks() (fds []int, err error) {
	if m.group == nil {
		return nil, nil
	}
	open, err := m.group.Tasks()
	for _, f := range open {
		fd, dup := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		_ = f.Close()
		if dup == nil {
			fds = append(fds, fd)
		}
		err = errors.Join(err, dup)
	}
	if dir, ok := m.group.FD(); ok && err == nil {
		var fd int
		if fd, err = unix.Openat(dir, "cgroup.procs", unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
			fds = append(fds, fd)
		}
	}
	return fds, err
}

// agentThreads is how many threads the agent has, which the kernel counts with the
// processes of programs.
func (m *made) agentThreads() uint64 {
	const guess = 8
	list, err := os.ReadDir("/proc/" + strconv.Itoa(m.pid) + "/task")
	if err != nil || len(list) == 0 {
		return guess
	}
	return uint64(len(list))
}

// zygote returns the one of a kit for a program, its variables and modules.
func (k *kit) zygote(ctx context.Context, argv, env, modules []string) (*hatching, error) {
	_, spawner, err := k.builders()
	if err != nil {
		return nil, err
	}
	if spawner == nil {
		return nil, errors.New("this process makes its sandboxes itself")
	}
	env = slices.Sorted(slices.Values(env))
	key := strings.Join(slices.Concat([]string{string(spawner.id), argv[0]}, env, modules), "\x00")
	h, mine := k.nursery.find(key)
	if mine {
		h.z, h.err = hatch(context.WithoutCancel(ctx), spawner.Spawner, argv, env, modules)
		k.nursery.hatched(key, h)
	}
	select {
	case <-h.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	k.nursery.mu.Lock()
	defer k.nursery.mu.Unlock()
	if h.err != nil {
		return nil, h.err
	}
	h.idle.Reset(zygoteRest)
	return h, nil
}

// find returns what is known of a zygote; mine says that the caller has to hatch it.
// One that could not be had is tried again after a while.
func (n *nursery) find(key string) (h *hatching, mine bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h = n.all[key]; h != nil && !h.over() {
		return h, false
	}
	if h != nil && h.err == nil {
		h.stop() // somebody killed it
	}
	if n.all == nil {
		n.all = map[string]*hatching{}
	}
	h = &hatching{ready: make(chan struct{}), since: time.Now()}
	n.all[key] = h
	return h, true
}

// over reports whether it is time for another one. The caller holds mu.
func (h *hatching) over() bool {
	select {
	case <-h.ready:
		return h.err == nil && h.z.ended() || h.err != nil && time.Since(h.since) > zygoteRetry
	default:
		return false
	}
}

// hatched takes what came of one that somebody had to hatch. The kit may have let go
// of it meanwhile.
func (n *nursery) hatched(key string, h *hatching) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.err == nil {
		h.idle = time.AfterFunc(zygoteRest, h.z.end)
		if n.all[key] != h {
			h.stop()
			h.err = errors.New("the root of the template was let go")
		}
	}
	close(h.ready)
}

// fail ends a zygote that did not do what it should.
func (n *nursery) fail(h *hatching, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h.stop()
	h.err, h.since = err, time.Now()
}

func (h *hatching) stop() {
	h.idle.Stop()
	h.z.end()
}

// close ends all zygotes of a kit.
func (n *nursery) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, h := range n.all {
		select {
		case <-h.ready:
			if h.z != nil {
				h.stop()
			}
		default: // who hatches it ends it
		}
		delete(n.all, key)
	}
}

// hatch starts a zygote and waits until it has imported all.
func hatch(ctx context.Context, spawner *fence.Spawner, argv, env, modules []string) (_ *zygote, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	defer func() { _ = unix.Close(fds[1]) }()
	f := os.NewFile(uintptr(fds[0]), "zygote")
	c, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		return nil, err
	}
	z := &zygote{conn: c.(*net.UnixConn), pidfd: -1} //nolint:forcetypeassert // of a unix socket
	defer func() {
		if err != nil {
			z.end()
		}
	}()
	source, err := textFile(zygoteSource)
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.Close() }()
	// A thread of a library could not be forked, and would keep it from entering
	// anything.
	env = append(slices.Clone(env), "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MPLCONFIGDIR=/tmp")
	if z.pidfd, err = spawner.Nest(ctx, fence.Nest{Argv: []string{argv[0], argv[1], argv[2], hatchCode}, Env: env}, int(source.Fd()), fds[1]); err != nil {
		return nil, err
	}
	_ = z.conn.SetDeadline(time.Now().Add(hatchTime))
	for _, v := range []any{fence.Humble(), modules} {
		if err := z.send(v); err != nil {
			return nil, err
		}
	}
	said, err := z.receive()
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(said, "!") {
		return nil, errors.New(said[1:])
	}
	return z, nil
}

// textFile is a file in memory that begins with a text.
func textFile(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("source", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "source")
	if _, err = f.Write(text); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// fork has an order carried out and returns the number of the interpreter inside.
func (z *zygote) fork(ctx context.Context, order any, files []int) (int, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	by := time.Now().Add(forkTime)
	if d, ok := ctx.Deadline(); ok && d.Before(by) {
		by = d
	}
	_ = z.conn.SetDeadline(by)
	if err := z.send(order, files...); err != nil {
		return 0, err
	}
	said, err := z.receive()
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(said)
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("it was refused: %.200s", strings.TrimPrefix(said, "!"))
	}
	return pid, nil
}

func (z *zygote) send(v any, files ...int) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, _, err = z.conn.WriteMsgUnix(text, unix.UnixRights(files...), nil)
	return err
}

func (z *zygote) receive() (string, error) {
	buf := make([]byte, 64<<10)
	n, err := z.conn.Read(buf)
	if err == nil && n == 0 {
		err = errors.New("it has ended")
	}
	return string(buf[:n]), err
}

// ended reports whether it is gone.
func (z *zygote) ended() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.pidfd < 0 {
		return true
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(z.pidfd), Events: unix.POLLIN}}, 0) //nolint:gosec // a descriptor
	return err == nil && n > 0
}

// end ends a zygote. What it forked lives on.
func (z *zygote) end() {
	_ = z.conn.Close() // which ends a fork that somebody waits for
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.pidfd >= 0 {
		_ = unix.PidfdSendSignal(z.pidfd, unix.SIGKILL, nil, 0)
		_ = unix.Close(z.pidfd)
		z.pidfd = -1
	}
}
