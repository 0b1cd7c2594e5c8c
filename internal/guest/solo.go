//go:build linux

package guest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/solo"
)

// soloPatience is how long a program that was killed may take to be reported,
// before everything around it is ended.
const soloPatience = 2 * time.Second

// Solo is a host's connection to a sandbox that is there for one program: its
// first process is not an agent but that of package solo. The program can be
// started once, without a terminal, and everything ends with it. Methods are safe
// for concurrent use.
//
// What keeps the program from starting is told by Wait.
type Solo struct {
	link  *os.File
	files solo.Limit
	end   func(ctx context.Context) error
	look  func() error // nil: there is no watch
	done  chan struct{}

	mu     sync.Mutex
	opts   Options
	used   bool
	closed bool
	lost   bool  // done is closed
	cause  error // why we ended it; nil if we did not
}

// NewSolo takes over a link of type SOCK_SEQPACKET to such a process. openFiles is
// the process's own limit, and end ends all that is in the sandbox and returns when
// it is gone. Look is called again and again while the program runs, and ends it with
// the error that it returns; nil looks at nothing.
func NewSolo(link int, openFiles uint64, opts Options, end func(ctx context.Context) error, look func() error) *Solo {
	_ = unix.SetNonblock(link, true)
	s := &Solo{link: os.NewFile(uintptr(link), "link"), files: programFiles(openFiles), end: end, look: look, done: make(chan struct{})}
	s.Adopt(opts)
	return s
}

// programFiles is what the agent gives to programs: the usual limit, which they
// can raise to half of the first process's own.
func programFiles(most uint64) solo.Limit {
	const usual = 1024
	soft := min(usual, most)
	return solo.Limit{Resource: unix.RLIMIT_NOFILE, Soft: soft, Hard: max(soft, most/2)}
}

// Adopt is [Conn.Adopt].
func (s *Solo) Adopt(opts Options) {
	if opts.Dir == "" {
		opts.Dir = cove.WorkspacePath
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts = opts
}

// Done is closed when the process is gone without having told how its program
// ended, and by Close.
func (s *Solo) Done() <-chan struct{} { return s.done }

// Close ends the connection, and with it all that is in the sandbox. It is
// idempotent.
func (s *Solo) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.link.Close()
	s.over()
	return nil
}

func (s *Solo) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lost {
		s.lost = true
		close(s.done)
	}
}

// Start runs the program, under the contract of [cove.Sandbox] but for what is
// said of the type.
func (s *Solo) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	opts := s.opts
	s.mu.Unlock()
	req, err := opts.request(cmd)
	if err != nil {
		return nil, err
	}
	if cmd.TTY != nil {
		return nil, cove.Errorf(cove.Unsupported, "a sandbox for one program has no terminal")
	}
	if err := s.use(); err != nil {
		return nil, err
	}
	p := newProcess(cmd, opts.OutOfMemory)
	p.id, p.poke = 1, func(ctx context.Context, kind protocol.Kind, to protocol.Poke) error { return s.poke(ctx, p, kind, to) }
	streams, err := p.connect(&cmd, &req)
	if err != nil {
		p.abandon(streams)
		return nil, err
	}
	return s.send(p, cmd, &req, streams)
}

// use takes the one start.
func (s *Solo) use() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return cove.Errorf(cove.NotFound, "the sandbox is gone")
	}
	if s.used {
		return cove.Errorf(cove.Unsupported, "the sandbox was made for one program, which has been started")
	}
	s.used = true
	return nil
}

// send hands the order over. It takes over the streams.
func (s *Solo) send(p *process, cmd cove.Command, req *protocol.Start, streams []*protocol.Stream) (cove.Process, error) {
	files := s.files
	files.Hard = max(files.Soft, linux.OpenFiles(int(req.Processes), files.Hard))
	o := solo.Order{Argv: req.Argv, Env: req.Env, Dir: req.Dir, Limits: []solo.Limit{files}}
	if req.Processes > 0 {
		most := uint64(req.Processes) + 1 // the first process
		o.Limits = append(o.Limits, solo.Limit{Resource: unix.RLIMIT_NPROC, Soft: most, Hard: most})
	}
	text, chdir, err := o.Encode()
	if err != nil {
		p.abandon(streams)
		return nil, cove.Wrap(cove.Invalid, err, "the program cannot be described")
	}
	p.started = time.Now()
	if len(text) > protocol.MaxBody {
		p.abandon(streams)
		return p.refused(cmd, syscall.E2BIG), nil
	}
	err = s.hand(text, req.Stdio, streams)
	if err != nil {
		p.abandon(streams)
		if errors.Is(err, os.ErrClosed) {
			return nil, cove.Errorf(cove.NotFound, "the sandbox is gone")
		}
		return nil, lost(err)
	}
	for _, t := range streams {
		t.Close()
	}
	p.run(cmd)
	go s.listen(p, cmd, chdir)
	if s.look != nil {
		go s.attend(p)
	}
	return p, nil
}

// hand passes an order and streams on. Where the program has no stream, it gets
// nothing to read and nobody who listens.
func (s *Solo) hand(text []byte, stdio protocol.Stdio, streams []*protocol.Stream) error {
	order, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("memfd_create", err)
	}
	defer func() { _ = unix.Close(order) }()
	for rest := text; len(rest) > 0; {
		n, err := unix.Write(order, rest)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("write", err)
		}
		rest = rest[max(n, 0):]
	}
	null := -1
	files, next := [3]int{}, 0
	for i, bit := range []protocol.Stdio{protocol.Stdin, protocol.Stdout, protocol.Stderr} {
		switch {
		case stdio&bit != 0:
			files[i] = streams[next].FD()
			next++
		case bit == protocol.Stderr && stdio&protocol.Merged != 0:
			files[i] = files[1]
		default:
			if null < 0 {
				if null, err = unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
					return &os.PathError{Op: "open", Path: os.DevNull, Err: err}
				}
				defer func() { _ = unix.Close(null) }()
			}
			files[i] = null
		}
	}
	raw, err := s.link.SyscallConn()
	if err != nil {
		return err
	}
	var said error
	if err := raw.Control(func(fd uintptr) { said = solo.Send(int(fd), order, len(text), files) }); err != nil {
		return err
	}
	return said
}

// listen waits for the one report.
func (s *Solo) listen(p *process, cmd cove.Command, chdir int) {
	b := make([]byte, solo.ReportSize+1)
	n, err := s.link.Read(b)
	if errors.Is(err, unix.ECONNRESET) {
		// The process ended before it read a signal. The kernel returns the error
		// before the report, which is still in the queue.
		n, err = s.link.Read(b)
	}
	r, ok := solo.DecodeReport(b[:max(n, 0)], chdir)
	if err != nil || !ok {
		s.gone(p, err)
		return
	}
	switch r.Stage {
	case solo.StageNone:
		p.exited(protocol.Exited{Status: r.Status, CPU: r.CPU, MaxRSS: r.MaxRSS})
	case solo.StageExec:
		p.exited(protocol.Exited{Status: uint32(complain(cmd, r.Errno)) << 8}) //nolint:gosec // 126 or 127
	case solo.StageDir:
		p.settle(func() { p.err = fault(protocol.Reply{Reason: protocol.ReasonDir, Errno: uint32(r.Errno)}, cmd.Dir) }) //nolint:gosec // errnos are small
	case solo.StageStart:
		p.settle(func() { p.err = fault(protocol.Reply{Errno: uint32(r.Errno)}, "") }) //nolint:gosec // errnos are small
	}
}

// soloGap is how often a program is looked at.
const soloGap = 50 * time.Millisecond

// attend looks at the program until it has ended, and ends it where it must.
func (s *Solo) attend(p *process) {
	tick := time.NewTicker(soloGap)
	defer tick.Stop()
	for {
		select {
		case <-p.over:
			return
		case <-tick.C:
		}
		cause := s.look()
		if cause == nil {
			continue
		}
		s.mu.Lock()
		s.cause = cause
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), killPatience)
		defer cancel()
		_ = s.end(ctx) // the end of the link tells, or the caller that destroys the sandbox
		return
	}
}

// Cause is why the sandbox was ended from here, once Done is closed; nil if it was not.
func (s *Solo) Cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// gone is the end of a program whose end nobody told.
func (s *Solo) gone(p *process, err error) {
	s.mu.Lock()
	closed, cause := s.closed, s.cause
	s.mu.Unlock()
	p.mu.Lock()
	ours := p.why != ""
	p.mu.Unlock()
	switch {
	case ours:
		p.exited(protocol.Exited{Status: killStatus})
	case closed:
		p.lost(err, true)
	case cause != nil:
		p.lost(cause, false)
	case p.starved != nil && p.starved():
		p.blame(cove.OutOfMemory)
		p.exited(protocol.Exited{Status: killStatus})
	default:
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		p.lost(lost(err), false)
	}
	s.over()
}

// poke does something to the program.
func (s *Solo) poke(ctx context.Context, p *process, kind protocol.Kind, to protocol.Poke) error {
	sig := to.Signal
	if kind == protocol.KindKill {
		sig = byte(unix.SIGKILL)
	}
	_, err := s.link.Write([]byte{sig})
	if kind != protocol.KindKill {
		if err != nil {
			return cove.Wrap(cove.NotFound, err, "the program has ended")
		}
		return nil
	}
	if err == nil { // so that what it used is told
		late := time.NewTimer(soloPatience)
		defer late.Stop()
		select {
		case <-p.over:
		case <-late.C:
		case <-ctx.Done():
		}
	}
	return s.end(ctx)
}

var errSolo = cove.Errorf(cove.Unsupported, "the sandbox was made for one program, and can do nothing else")

// Dial is not to be had.
func (s *Solo) Dial(context.Context, int) (net.Conn, error) { return nil, errSolo }

// Usage is not known inside.
func (s *Solo) Usage(context.Context) (cove.Usage, error) { return cove.Usage{}, nil }

// Files cannot be reached.
func (s *Solo) Files() cove.Files { return noFiles{} }
