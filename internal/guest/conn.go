//go:build linux

package guest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// Options says what the host knows of a sandbox and its agent does not.
type Options struct {
	// Dir is where relative names start; "" means the workspace.
	Dir string
	// Env is what every program gets; a command's own variables come on top.
	Env map[string]string
	// Processes is how many processes and threads there may be beside the agent;
	// 0 is no bound. It holds where the sandbox has a user, or a user namespace,
	// for itself.
	Processes int
	// OutOfMemory is asked about a program that was killed by nobody we know:
	// whether the kernel did it for want of memory. It must be quick, and may use the
	// connection; nil means that nobody can tell.
	OutOfMemory func() bool
	// Holder keeps programs with a name beyond this process. nil means that the
	// agent does, with frames and since version 4, and otherwise that none is kept.
	Holder Holder
	// Memory is what the sandbox has, of which an agent that keeps programs takes no
	// more than a part for what they write; 0 means that nobody knows.
	Memory cove.Bytes
	// Shared says that the file system of the workspace has other files, too: what is
	// in use is counted file by file.
	Shared bool
}

// Transport carries the protocol. Make one with [Descriptors] or [Framed].
type Transport struct{ link protocol.Link }

// Descriptors is the transport over a socket of type SOCK_SEQPACKET, which it
// takes over: streams are passed descriptors.
func Descriptors(fd int) (Transport, error) {
	l, err := protocol.NewHostDescriptors(fd)
	if err != nil {
		return Transport{}, cove.Wrap(cove.Internal, err, "the socket to the sandbox's agent cannot be used")
	}
	return Transport{l}, nil
}

// Framed is the transport over any reliable stream of bytes, which it takes
// over: streams share it.
func Framed(rw io.ReadWriteCloser) Transport { return Transport{protocol.NewHostFramed(rw)} }

// Conn is a host's connection to the agent of one sandbox. Methods are safe for
// concurrent use.
//
// When the agent is gone, calls fail with Unavailable, and programs whose end
// was not seen have no Result. After [Conn.Close] they fail with NotFound, and
// programs that ran are Killed.
type Conn struct {
	link protocol.Link
	opts atomic.Pointer[Options]

	ended context.Context //nolint:containedctx // it is done when the connection has ended, and streams end with it
	end   context.CancelFunc

	still  atomic.Bool  // the agent is stopped
	unsent atomic.Int32 // messages that wait for it

	// Set by the answer to hello.
	pid     int
	version uint64 // that the agent speaks
	lists   bool   // the agent can keep programs to a list

	more uint64 // the last program that a greeting named, if there are more

	mu     sync.Mutex
	next   uint64
	hello  uint64 // the id of a call whose answer is a greeting
	calls  map[uint64]chan answer
	procs  map[uint64]*process
	kept   map[string]*kept
	ways   map[uint64]*Ways
	closed bool
	left   bool
	err    error // why the connection has ended
}

// answer is a reply with what was attached to it.
type answer struct {
	protocol.Reply

	streams []*protocol.Stream
}

// Connect greets an agent. It takes over the transport, also when it fails.
func Connect(ctx context.Context, t Transport, opts Options) (*Conn, error) {
	ended, end := context.WithCancel(context.Background())
	c := &Conn{
		link: t.link, ended: ended, end: end,
		// An agent can outlive a host: what it still has to say to an earlier
		// one must not look like an answer to this one.
		next:  uint64(rand.Uint32()) << 24, //nolint:gosec // no secret
		calls: map[uint64]chan answer{}, procs: map[uint64]*process{}, kept: map[string]*kept{},
	}
	c.Adopt(opts)
	go c.receive()
	err := c.greet(ctx, protocol.KindHello, nil)
	for err == nil && c.more > 0 {
		err = c.greet(ctx, protocol.KindKept, protocol.Poke{Program: c.more}.Encode())
	}
	if err != nil {
		c.fail(err)
		return nil, err
	}
	return c, nil
}

// greet is a call whose answer is a greeting, or the rest of one.
func (c *Conn) greet(ctx context.Context, kind protocol.Kind, body []byte) error {
	c.mu.Lock()
	c.hello = c.next + 1
	c.mu.Unlock()
	_, err := c.call(ctx, kind, body)
	return err
}

// greeted takes the answer to hello. It is called by who receives, so that no
// news of a program overtakes it.
func (c *Conn) greeted(r protocol.Reply) error {
	// The version first: another one may have another form.
	version, err := protocol.GreetingVersion(r.Body)
	if err == nil && (version < protocol.Oldest || version > protocol.Version) {
		return cove.Errorf(cove.Unavailable, "the sandbox's agent speaks version %d and this host speaks %d to %d; make the sandbox anew", version, protocol.Oldest, protocol.Version)
	}
	g, err := protocol.DecodeGreeting(r.Body)
	if err != nil || !r.OK() {
		return lost(cmp.Or(err, protocol.ErrMalformed))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.more == 0 {
		c.pid, c.version, c.lists, c.next = g.PID, g.Version, g.Confines, max(c.next, g.Highest)
	}
	last := c.more
	for _, k := range g.Kept {
		if !validKeep(k.Keep) || k.Program <= last || c.kept[k.Keep] != nil || len(c.kept) >= protocol.MaxKept {
			return lost(protocol.ErrMalformed)
		}
		last = k.Program
		one := &kept{id: k.Program, procs: map[*process]bool{}}
		if k.Ended {
			one.end(k.Exited, time.Duration(max(k.Wall, 0))*time.Microsecond)
		}
		c.kept[k.Keep] = one
	}
	if g.More && last == c.more {
		return lost(protocol.ErrMalformed) // there would be no end
	}
	c.more = 0
	if g.More {
		c.more = last
	}
	return nil
}

// Adopt gives the connection other options: it is for an agent that waited for
// its sandbox's owner. Programs that run already stay as they were started, and
// are looked at with the new options when they end.
func (c *Conn) Adopt(opts Options) {
	if opts.Dir == "" {
		opts.Dir = cove.WorkspacePath
	}
	c.opts.Store(&opts)
}

// Done is closed when the connection has ended, for whatever reason.
func (c *Conn) Done() <-chan struct{} { return c.ended.Done() }

// PID is the agent's number inside the sandbox.
func (c *Conn) PID() int { return c.pid }

// Policy says how far the sandbox holds [cove.Command.Programs].
func (c *Conn) Policy() cove.Enforcement {
	if c.lists {
		return cove.Hard
	}
	return cove.Soft
}

// Close ends the connection, and with it the agent and all programs; an agent that
// listens stays, with what is kept. Call it before ending the sandbox, so that
// programs are Killed and not lost. It is idempotent.
func (c *Conn) Close() error {
	c.closing()
	c.fail(errGone())
	return nil
}

// closing notes that the end is our own: an agent that is seen to go, be it before
// or after, is not lost.
func (c *Conn) closing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.err != nil && !c.left {
		c.err = errGone()
	}
}

func errGone() error { return cove.Errorf(cove.NotFound, "the sandbox is gone") }

// Leave ends the connection, and nothing else: the agent and the programs that
// are kept live on for whoever holds the link, too. Others end with the link, or
// when the agent learns that its host is gone ([Farewell]). It is idempotent.
func (c *Conn) Leave() {
	c.mu.Lock()
	c.left = true
	c.mu.Unlock()
	c.fail(cove.Errorf(cove.Unavailable, "this host has left the sandbox, which lives on").Remedy("try again when the server is back"))
}

func (c *Conn) hasLeft() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// Lose ends the connection and the agent for a reason of ours that nobody wanted:
// calls fail with it, and so do programs whose end was not seen.
func (c *Conn) Lose(cause error) { c.fail(cause) }

// Link returns a descriptor of the link. Who holds it keeps the agent alive, and
// can connect to it again when this connection was left.
func (c *Conn) Link() (int, error) {
	l, ok := c.link.(interface{ Dup() (int, error) })
	if !ok {
		return -1, cove.Errorf(cove.Unsupported, "this transport cannot be held by another process")
	}
	return l.Dup()
}

// Farewell is a packet for the link that tells an agent that its host is gone.
func Farewell() []byte { return protocol.Farewell() }

// Still says that the sandbox is paused, or not any more: an agent that takes no
// messages meanwhile is not gone.
func (c *Conn) Still(paused bool) {
	c.still.Store(paused)
	if l, ok := c.link.(interface{ Still(paused bool) }); ok {
		l.Still(paused)
	}
}

// Ping reports whether the agent answers.
func (c *Conn) Ping(ctx context.Context) error {
	return c.plain(ctx, protocol.KindPing, nil)
}

// Bound has the agent watch over the memory of the sandbox, for one whose kernel
// does not: while more than so much is in use, it kills the largest process, and a
// program that it killed is OutOfMemory. It holds for all hosts, until another
// bound is set; 0 lifts it. Files in memory count. The watch is no wall: what a program
// takes between two looks it has.
func (c *Conn) Bound(ctx context.Context, memory cove.Bytes) error {
	if c.version < protocol.Doors || memory < 0 {
		return cove.Errorf(cove.Unsupported, "this agent does not watch over the memory")
	}
	return c.plain(ctx, protocol.KindBound, protocol.Bound{Memory: uint64(memory)}.Encode())
}

// Shutdown asks the agent to end everything, and waits until it has.
func (c *Conn) Shutdown(ctx context.Context) error {
	c.closing()
	err := c.plain(ctx, protocol.KindShutdown, nil)
	_ = c.Close()
	return err
}

// plain is a call whose answer holds nothing.
func (c *Conn) plain(ctx context.Context, kind protocol.Kind, body []byte) error {
	a, err := c.call(ctx, kind, body)
	if err != nil {
		return err
	}
	return fault(a.Reply, "")
}

// call sends a request and waits for the answer. It takes over the streams.
func (c *Conn) call(ctx context.Context, kind protocol.Kind, body []byte, streams ...*protocol.Stream) (answer, error) {
	id, ch, err := c.begin(ctx, nil)
	if err != nil {
		for _, s := range streams {
			s.Close()
		}
		return answer{}, err
	}
	return c.finish(ctx, id, ch, kind, body, streams)
}

// begin registers a call, and a program under the same id.
func (c *Conn) begin(ctx context.Context, p *process) (uint64, chan answer, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	c.next++
	ch := make(chan answer, 1)
	c.calls[c.next] = ch
	if p != nil {
		p.id = c.next
		c.procs[p.id] = p
		if p.keep != "" {
			c.kept[p.keep] = &kept{id: p.id, procs: map[*process]bool{}, recording: p.recording, started: p.started}
		}
	}
	return c.next, ch, nil
}

// mostUnsent bounds the messages that wait for a paused sandbox to go on.
const mostUnsent = 1024

// send sends a message. To a paused sandbox that may take as long as the pause, and
// goes on when the caller has left.
func (c *Conn) send(ctx context.Context, m *protocol.Message) error {
	if !c.still.Load() {
		return c.link.Send(m)
	}
	if c.unsent.Add(1) > mostUnsent {
		c.unsent.Add(-1)
		closeAll(m.Streams)
		return protocol.ErrNoRoom
	}
	sent := make(chan error, 1)
	go func() {
		defer c.unsent.Add(-1)
		sent <- c.link.Send(m)
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return nil // which is what the caller gets
	}
}

func (c *Conn) finish(ctx context.Context, id uint64, ch chan answer, kind protocol.Kind, body []byte, streams []*protocol.Stream) (answer, error) {
	err := c.send(ctx, &protocol.Message{Kind: kind, ID: id, Body: body, Streams: streams})
	if errors.Is(err, protocol.ErrNoRoom) {
		err = fault(protocol.Reply{Reason: protocol.ReasonBusy}, "")
	} else {
		if err != nil {
			c.fail(lost(err))
		}
		select {
		case a := <-ch:
			return a, nil
		case <-ctx.Done():
			err = ctx.Err()
		case <-c.ended.Done():
			err = c.over()
		}
	}
	c.mu.Lock()
	delete(c.calls, id)
	c.mu.Unlock()
	select {
	case a := <-ch: // it came after all
		return a, nil
	default:
		return answer{}, err
	}
}

// receive hands on what the agent says, until it is gone or talks nonsense. It
// must never wait for anybody.
func (c *Conn) receive() {
	for {
		m, err := c.link.Receive()
		if err == nil {
			err = c.take(m)
		}
		if err != nil {
			if _, ours := errors.AsType[*cove.Error](err); !ours {
				err = lost(err)
			}
			c.fail(err)
			return
		}
	}
}

func (c *Conn) take(m *protocol.Message) error {
	if m.Kind == protocol.KindReply {
		r, err := protocol.DecodeReply(m.Body)
		c.mu.Lock()
		ch := c.calls[m.ID]
		delete(c.calls, m.ID)
		hello := m.ID == c.hello
		c.mu.Unlock()
		if err == nil && ch != nil && hello {
			err = c.greeted(r)
		}
		if err == nil && ch != nil {
			ch <- answer{r, m.Streams}
			return nil
		}
		for _, s := range m.Streams {
			s.Close()
		}
		return err
	}
	if m.Kind == protocol.KindAccepted {
		return c.accepted(m)
	}
	if m.Kind == protocol.KindExcess {
		return excess(m)
	}
	x, err := protocol.DecodeExited(m.Body)
	if err != nil || m.Kind != protocol.KindExited || len(m.Streams) > 0 {
		for _, s := range m.Streams {
			s.Close()
		}
		return protocol.ErrMalformed
	}
	c.mu.Lock()
	p := c.procs[m.ID]
	delete(c.procs, m.ID)
	resumed := c.keptEnded(m.ID, x)
	c.mu.Unlock()
	if p != nil {
		p.exited(x)
	}
	for _, p := range resumed {
		p.exited(x)
	}
	return nil
}

// fail ends the connection. The first reason stays, unless we close it.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	if c.closed && !c.left {
		err = errGone()
	}
	c.err = err
	procs := slices.Collect(maps.Values(c.procs))
	for _, k := range c.kept {
		procs = slices.AppendSeq(procs, maps.Keys(k.procs))
	}
	c.procs = nil
	closed, left := c.closed, c.left
	c.mu.Unlock()
	c.end()
	if left {
		_ = c.link.Leave()
	} else {
		_ = c.link.Close()
	}
	for _, p := range procs {
		// Whose host leaves is killed, unless it is kept.
		p.lost(err, closed || left && p.keep == "")
	}
}

// drop forgets a program that never ran.
func (c *Conn) drop(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.procs, p.id)
	if k := c.kept[p.keep]; k != nil && k.id == p.id {
		delete(c.kept, p.keep)
	}
}
