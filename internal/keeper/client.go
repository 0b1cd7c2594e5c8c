//go:build linux

package keeper

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// What is said of a keeper, to be found with errors.Is.
var (
	ErrNone    = errors.New("there is no keeper")
	ErrGone    = errors.New("the keeper is gone")
	ErrUnknown = errors.New("the keeper holds nothing of that name")
	ErrTaken   = errors.New("the keeper holds something of that name")
	ErrFull    = errors.New("the keeper has no room for more")
	ErrBusy    = errors.New("the keeper serves another server")
	ErrVersion = errors.New("the keeper was started by another version and speaks another protocol")
)

// answerTime is how long a keeper may take for an answer. Then it is taken for
// dead.
var answerTime = 20 * time.Second

// leaveTime bounds the wait for one that ends.
const leaveTime = 5 * time.Second

// Client is a server's connection to its keeper. Methods are safe for concurrent
// use.
type Client struct {
	conn *net.UnixConn
	done chan struct{} // the keeper is gone, or the connection closed
	// exited is closed when a keeper that we started has ended; nil for others.
	exited <-chan struct{}

	mu    sync.Mutex
	calls []chan result // guarded by mu; in the order of their requests
	over  bool          // guarded by mu
}

// result is an answer with what came with it.
type result struct {
	answer

	files []int
}

// Connect connects to the keeper of a directory; ErrNone where there is none.
func Connect(ctx context.Context, dir string) (*Client, error) {
	place, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = place.Close() }()
	conn, err := net.DialUnix("unixpacket", nil, address(place))
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	if _, err := peerOf(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c, err := greet(ctx, conn)
	if errors.Is(err, ErrGone) {
		return nil, ErrNone // it was about to end
	}
	return c, err
}

// Evict kills the keeper of a directory, and waits until it is gone. It is for
// one that cannot be talked to.
func Evict(ctx context.Context, dir string) error {
	place, err := openDir(dir)
	if err != nil {
		return err
	}
	defer func() { _ = place.Close() }()
	conn, err := net.DialUnix("unixpacket", nil, address(place))
	if err != nil {
		return errors.Join(ErrNone, err)
	}
	defer func() { _ = conn.Close() }()
	peer, err := peerOf(conn)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(int(peer.Pid), 0)
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	for ctx.Err() == nil {
		const pause = 100                                                                                                                        // milliseconds
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, pause); n > 0 || err != nil && !errors.Is(err, unix.EINTR) { //nolint:gosec // a descriptor
			return err
		}
	}
	return ctx.Err()
}

// Launch starts a keeper for a directory from an executable that calls [Main]
// when its argv[0] is [Name], and connects to it. The arguments are dir and args.
func Launch(ctx context.Context, dir, executable string, env []string, args ...string) (*Client, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "keeper")
	exited, err := start(executable, append([]string{Name, dir}, args...), env, theirs)
	err = errors.Join(err, theirs.Close())
	if err != nil {
		return nil, errors.Join(err, unix.Close(fds[0]))
	}
	_ = unix.SetNonblock(fds[0], true)
	conn, err := connOf(fds[0])
	if err != nil {
		return nil, err
	}
	c, err := greet(ctx, conn)
	if err != nil {
		return nil, err
	}
	c.exited = exited
	return c, nil
}

func start(executable string, argv, env []string, link *os.File) (<-chan struct{}, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	p, err := os.StartProcess(executable, argv, &os.ProcAttr{
		Dir: "/", Env: env, Files: []*os.File{null, null, null, link},
		// What is typed at the server's terminal is not for it.
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	go func() { // for as long as we are its parent
		_, _ = p.Wait()
		close(exited)
	}()
	return exited, nil
}

// greet says hello. It takes over the connection.
func greet(ctx context.Context, conn *net.UnixConn) (*Client, error) {
	c := &Client{conn: conn, done: make(chan struct{})}
	go c.listen()
	a, err := c.call(ctx, &request{kind: kindHello, protocol: Protocol}, nil)
	// One that does not understand hello is another one, too.
	if err == nil && a.protocol != Protocol || errors.Is(err, protocol.ErrMalformed) {
		err = ErrVersion
	}
	if err != nil {
		c.hangUp()
		return nil, err
	}
	return c, nil
}

// Done is closed when the keeper is gone, or the client closed.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close leaves the keeper, which ends if it holds nothing, and otherwise goes on.
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	a, err := c.call(ctx, &request{kind: kindBye}, nil)
	closeAll(a.files)
	c.hangUp()
	<-c.done
	if err == nil && a.text == ending && c.exited != nil {
		select {
		case <-c.exited:
		case <-ctx.Done():
		}
	}
	return nil
}

func (c *Client) hangUp() { _ = c.conn.Close() }

// listen hands out answers until the keeper is gone.
func (c *Client) listen() {
	in := newReceiver(c.conn)
	for {
		text, files, err := in.next()
		if err != nil {
			break
		}
		a, err := decodeAnswer(text)
		c.mu.Lock()
		if err != nil || len(c.calls) == 0 {
			c.mu.Unlock()
			closeAll(files)
			break
		}
		ch := c.calls[0]
		c.calls = c.calls[1:]
		c.mu.Unlock()
		ch <- result{a, files}
	}
	c.hangUp()
	c.mu.Lock()
	c.over = true
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	for _, ch := range calls {
		close(ch)
	}
	close(c.done)
}

// call sends a request and waits for the answer, whose descriptors are the
// caller's.
func (c *Client) call(ctx context.Context, r *request, files []int) (result, error) {
	if err := ctx.Err(); err != nil {
		return result{}, err
	}
	ch := make(chan result, 1)
	if err := c.post(r, files, ch); err != nil {
		return result{}, err
	}
	return c.await(ctx, ch)
}

// await waits for the answer to what was posted.
func (c *Client) await(ctx context.Context, ch chan result) (result, error) {
	late := time.NewTimer(answerTime)
	defer late.Stop()
	select {
	case a, ok := <-ch:
		if !ok {
			return result{}, ErrGone
		}
		return a, a.err()
	case <-late.C:
		c.hangUp() // it hangs; who holds nothing open for us is of no use
	case <-ctx.Done():
	}
	go func() { closeAll((<-ch).files) }() // it comes, or the end does
	if err := ctx.Err(); err != nil {
		return result{}, err
	}
	return result{}, ErrGone
}

// post sends a request, in whose order answers come.
func (c *Client) post(r *request, files []int, ch chan result) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return ErrGone
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(answerTime))
	if err := send(c.conn, r.encode(), files); err != nil {
		// A packet goes as a whole or not at all.
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) {
			c.hangUp()
			return errors.Join(ErrGone, err)
		}
		return err
	}
	c.calls = append(c.calls, ch)
	return nil
}

func (a *answer) err() error {
	switch a.code {
	case codeDone:
		return nil
	case codeUnknown:
		return ErrUnknown
	case codeTaken:
		return ErrTaken
	case codeFull:
		return ErrFull
	case codeBusy:
		return ErrBusy
	case codeVersion:
		return ErrVersion
	case codeFailed:
		return errors.New(a.text)
	case codeWrong:
	}
	return protocol.ErrMalformed
}

// plain is a call whose answer holds nothing.
func (c *Client) plain(ctx context.Context, r *request, files ...int) error {
	a, err := c.call(ctx, r, files)
	closeAll(a.files)
	return err
}

// Holding is what is held of a sandbox.
type Holding struct {
	Note []byte // at most [MaxNote]
	// Farewell is a packet that is sent on the descriptor "link" when a server is
	// gone, whether it left or died. None is sent when it is empty.
	Farewell []byte
	Files    map[string]int // descriptors by their names
}

// Close closes the descriptors.
func (h *Holding) Close() {
	closeAll(slices.Collect(maps.Values(h.Files)))
	h.Files = nil
}

// Put has a sandbox held, instead of what is held of it, if anything is. The
// descriptors stay the caller's.
func (c *Client) Put(ctx context.Context, sandbox string, h Holding) error {
	wait, err := c.PutSoon(ctx, sandbox, h)
	if err != nil {
		return err
	}
	return wait(ctx)
}

// PutSoon is [Client.Put] for one who does not wait: what he asked for is on its
// way, and comes before all that he asks for afterwards, also if he dies. wait
// tells what became of it, and must be called.
func (c *Client) PutSoon(ctx context.Context, sandbox string, h Holding) (wait func(context.Context) error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &request{kind: kindPut, sandbox: sandbox, farewell: string(h.Farewell)}
	var files []int
	for name, fd := range h.Files {
		r.names, files = append(r.names, name), append(files, fd)
	}
	if len(h.Note) <= inlineNote {
		r.note = string(h.Note)
	} else {
		note, err := noteFile(h.Note)
		if err != nil {
			return nil, err
		}
		defer func() { _ = note.Close() }()
		r, files = withFile(r, noteName), append(files, int(note.Fd()))
	}
	ch := make(chan result, 1)
	if err := c.post(r, files, ch); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		a, err := c.await(ctx, ch)
		closeAll(a.files)
		return err
	}, nil
}

// List returns the names of what is held.
func (c *Client) List(ctx context.Context) ([]string, error) {
	a, err := c.call(ctx, &request{kind: kindList}, nil)
	closeAll(a.files)
	return a.names, err
}

// Get returns what is held; the descriptors are the caller's to close.
func (c *Client) Get(ctx context.Context, sandbox string) (Holding, error) {
	a, err := c.call(ctx, &request{kind: kindGet, sandbox: sandbox}, nil)
	if err == nil && len(a.names) != len(a.files) {
		err = protocol.ErrMalformed
	}
	if err != nil {
		closeAll(a.files)
		return Holding{}, err
	}
	h := Holding{Note: []byte(a.note), Farewell: []byte(a.farewell), Files: map[string]int{}}
	for i, name := range a.names {
		h.Files[name] = a.files[i]
	}
	if fd, large := h.Files[noteName]; large {
		delete(h.Files, noteName)
		if h.Note, err = readNote(fd); err != nil {
			h.Close()
			return Holding{}, err
		}
	}
	return h, nil
}

// Drop lets go of a sandbox and of its programs. An unknown name is no error.
func (c *Client) Drop(ctx context.Context, sandbox string) error {
	return c.plain(ctx, &request{kind: kindDrop, sandbox: sandbox})
}

// Streams are those of a program, of which any may be missing: -1.
type Streams struct {
	In       int // written to
	Out, Err int // read from
}

// Keep begins to read the output of a program, and holds its input open. The
// descriptors stay the caller's.
func (c *Client) Keep(ctx context.Context, sandbox, program string, note []byte, s Streams) error {
	r := &request{kind: kindKeep, sandbox: sandbox, program: program, note: string(note)}
	var files []int
	for _, f := range []struct {
		name string
		fd   int
	}{{inName, s.In}, {outName, s.Out}, {errName, s.Err}} {
		if f.fd >= 0 {
			r.names, files = append(r.names, f.name), append(files, f.fd)
		}
	}
	return c.plain(ctx, r, files...)
}

// Programs returns the names of a sandbox's programs that are kept.
func (c *Client) Programs(ctx context.Context, sandbox string) ([]string, error) {
	a, err := c.call(ctx, &request{kind: kindPrograms, sandbox: sandbox}, nil)
	closeAll(a.files)
	return a.names, err
}

// Look returns the note of a program and its input, which the caller closes; -1
// if that is closed.
func (c *Client) Look(ctx context.Context, sandbox, program string) (note []byte, input int, err error) {
	a, err := c.call(ctx, &request{kind: kindLook, sandbox: sandbox, program: program}, nil)
	if err == nil && (len(a.files) != len(a.names) || len(a.files) > 1) {
		err = protocol.ErrMalformed
	}
	if err != nil {
		closeAll(a.files)
		return nil, -1, err
	}
	if len(a.files) == 0 {
		return []byte(a.note), -1, nil
	}
	return []byte(a.note), a.files[0], nil
}

// Follow yields the output of a program from an offset on, until it is finished
// and all of it was read. Where output was dropped, the offset of a chunk lies
// beyond the end of the one before, and a caller that follows from the first byte on gets before
// it, for each stream of which some is missing, a chunk without data whose Offset is how
// many bytes that is; a keeper of an older build tells only the offset. An error is the
// last that is yielded.
func (c *Client) Follow(ctx context.Context, sandbox, program string, offset int64) iter.Seq2[cove.Chunk, error] {
	return func(yield func(cove.Chunk, error) bool) {
		a, err := c.call(ctx, &request{kind: kindFollow, sandbox: sandbox, program: program, offset: offset}, nil)
		if err == nil && len(a.files) != 1 {
			err = protocol.ErrMalformed
		}
		if err != nil {
			closeAll(a.files)
			yield(cove.Chunk{}, err)
			return
		}
		_ = unix.SetNonblock(a.files[0], true)
		chunks(ctx, os.NewFile(uintptr(a.files[0]), "follow"))(yield)
	}
}

// Shut closes the keeper's end of a program's input.
func (c *Client) Shut(ctx context.Context, sandbox, program string) error {
	return c.plain(ctx, &request{kind: kindShut, sandbox: sandbox, program: program})
}

// Finish says that a program has ended: what is in its pipes still counts, what
// others write there later does not.
func (c *Client) Finish(ctx context.Context, sandbox, program string) error {
	return c.plain(ctx, &request{kind: kindFinish, sandbox: sandbox, program: program})
}

// Forget frees what is kept of a program. An unknown name is no error.
func (c *Client) Forget(ctx context.Context, sandbox, program string) error {
	return c.plain(ctx, &request{kind: kindForget, sandbox: sandbox, program: program})
}
