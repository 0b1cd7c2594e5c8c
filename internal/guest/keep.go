//go:build linux

package guest

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// maxNote bounds what callers have held with a program.
const maxNote = 16 << 10

// holderPatience bounds what is asked of a holder and nobody waits for.
const holderPatience = 30 * time.Second

// kept is a program that outlives this host. The connection's mu guards it.
type kept struct {
	id    uint64
	procs map[*process]bool // those that were resumed and run
	ended bool
	exit  protocol.Exited
	wall  time.Duration // 0 if it is not known

	started   time.Time
	recording *recording // nil where this process does not record it
}

func (k *kept) end(x protocol.Exited, wall time.Duration) { k.ended, k.exit, k.wall = true, x, wall }

// record is what the holder has of a program, beside its streams.
type record struct {
	Started time.Time `json:"started"`
	TTY     bool      `json:"tty,omitempty"`
	Note    []byte    `json:"note,omitempty"`
}

func validKeep(name string) bool {
	return name != "" && len(name) <= protocol.MaxKeep && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	})
}

// keepName is the name to keep a program under; "" where nobody keeps any.
func (c *Conn) keepName(cmd cove.Command) (string, error) {
	if cmd.Keep == "" || c.holder() == nil && !cmd.Record {
		return "", nil
	}
	if !validKeep(cmd.Keep) {
		return "", cove.InvalidField("keep", "%.80q is no name for a program; use up to %d letters, digits and -", cmd.Keep, protocol.MaxKeep)
	}
	if len(cmd.Note) > maxNote {
		return "", cove.InvalidField("note", "has %d bytes; the most is %d", len(cmd.Note), maxNote)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[cmd.Keep] != nil {
		return "", cove.Errorf(cove.Conflict, "a program named %s is kept already", cmd.Keep)
	}
	if len(c.kept) >= protocol.MaxKept {
		return "", cove.Errorf(cove.Exhausted, "the sandbox keeps %d programs already; forget some", protocol.MaxKept).Reason(cove.ReasonCapacity)
	}
	return cmd.Keep, nil
}

// keptEnded notes the end of a program, and returns those that wait for it.
// Called with mu held.
func (c *Conn) keptEnded(id uint64, x protocol.Exited) []*process {
	for _, k := range c.kept {
		if k.id != id || k.ended {
			continue
		}
		k.end(x, 0)
		procs := slices.Collect(maps.Keys(k.procs))
		clear(k.procs)
		return procs
	}
	return nil
}

// hold gives the streams of a program that is kept to the holder, before it is
// started: what it writes is kept from the first byte on.
func (p *process) hold(ctx context.Context, cmd cove.Command) error {
	if p.keep == "" || cmd.TTY != nil || p.recording != nil {
		return nil
	}
	out, errs := -1, -1
	for _, o := range p.outs {
		if o.stderr {
			errs = fdOf(o.file)
		} else {
			out = fdOf(o.file)
		}
	}
	in := -1
	if p.stdin != nil {
		in = fdOf(p.stdin)
	}
	if err := p.keepStreams(ctx, cmd, in, out, errs); err != nil {
		return err
	}
	for _, o := range p.outs {
		_ = o.file.Close()
	}
	p.outs = nil
	return nil
}

// holdTerminal gives the terminal of a program that is kept to the holder.
func (p *process) holdTerminal(cmd cove.Command) error {
	if p.keep == "" || cmd.TTY == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), holderPatience)
	defer cancel()
	fd := fdOf(p.stdin)
	if err := p.keepStreams(ctx, cmd, fd, fd, -1); err != nil {
		return err
	}
	p.outs = nil // it is the input as well
	return nil
}

// fdOf is the descriptor of a file that nobody else closes meanwhile.
func fdOf(f *os.File) int {
	fd := -1
	raw, err := f.SyscallConn()
	if err != nil {
		return fd
	}
	_ = raw.Control(func(of uintptr) { fd = int(of) })
	return fd
}

func (p *process) keepStreams(ctx context.Context, cmd cove.Command, in, out, errs int) error {
	note, err := json.Marshal(record{Started: p.started, TTY: cmd.TTY != nil, Note: cmd.Note})
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the program cannot be kept")
	}
	if err := p.holder.Keep(ctx, p.keep, note, in, out, errs); err != nil {
		return err
	}
	p.held = true
	return nil
}

// unhold lets go of a program that never ran.
func (p *process) unhold() {
	if p.held {
		p.held = false
		ctx, cancel := context.WithTimeout(context.Background(), holderPatience)
		defer cancel()
		_ = p.holder.Forget(ctx, p.keep)
	}
}

// later asks the holder for something that nobody waits for.
func (p *process) later(do func(ctx context.Context)) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), holderPatience)
		defer cancel()
		do(ctx)
	}()
}

// finish makes the reading from the holder end, with the program or, if this
// host has lost it, at once.
func (p *process) finish() {
	if !p.held {
		return
	}
	p.mu.Lock()
	lost, unread := p.err != nil, p.unread
	p.mu.Unlock()
	if lost {
		unread()
		return
	}
	p.later(func(ctx context.Context) {
		if p.holder.Finish(ctx, p.keep) != nil {
			unread() // nobody would tell the end
		}
	})
}

// follow delivers what the holder reads. It returns what ends it.
func (p *process) follow(cmd cove.Command) context.CancelFunc {
	if !p.held {
		return nil
	}
	p.pending.Add(1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		defer p.release()
		err := p.deliverAll(ctx, cmd)
		<-p.over
		if p.tty && p.stdin != nil {
			_ = p.stdin.Close()
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil && p.err == nil && p.why == "" {
			p.err = lost(err)
		}
	}()
	return cancel
}

// deliverAll writes to the caller until the end of the output. An error means
// that some of it is missing.
func (p *process) deliverAll(ctx context.Context, cmd cove.Command) error {
	out := output{p: p, to: orDiscard(cmd.Stdout)}
	errs := output{p: p, to: orDiscard(cmd.Stderr)}
	for c, err := range p.holder.Follow(ctx, p.keep) {
		if err != nil {
			return err
		}
		o := out
		if c.Stream == cove.Stderr {
			o = errs
		}
		if len(c.Data) == 0 {
			err = o.skip(c.Offset)
		} else {
			err = o.deliver(c.Data)
		}
		if err != nil {
			return nil // the caller wants no more
		}
	}
	return nil
}

// Kept implements [cove.Resumer].
func (c *Conn) Kept(ctx context.Context) iter.Seq2[cove.Kept, error] {
	return func(yield func(cove.Kept, error) bool) {
		c.mu.Lock()
		err := c.err
		names := slices.Sorted(maps.Keys(c.kept))
		c.mu.Unlock()
		if err != nil {
			yield(cove.Kept{}, err)
			return
		}
		for _, name := range names {
			r, in, err := c.look(ctx, name)
			if in >= 0 {
				_ = unix.Close(in)
			}
			if cove.CodeOf(err) == cove.NotFound {
				continue // forgotten meanwhile
			}
			if !yield(cove.Kept{Keep: name, Note: r.Note}, err) || err != nil {
				return
			}
		}
	}
}

func (c *Conn) look(ctx context.Context, keep string) (r record, in int, err error) {
	h := c.holder()
	if h == nil {
		return r, -1, cove.Errorf(cove.NotFound, "no programs are kept here")
	}
	rec, files, m, _, err := c.recorded(ctx, keep)
	if err != nil {
		return r, -1, err
	}
	if rec != nil {
		closeFiles(files)
		rec.Note = m.Note
		return *rec, -1, nil
	}
	note, in, err := h.Look(ctx, keep)
	if err != nil {
		return r, -1, err
	}
	if err := json.Unmarshal(note, &r); err != nil {
		if in >= 0 {
			_ = unix.Close(in)
		}
		return r, -1, cove.Wrap(cove.Internal, err, "what is kept of program %s cannot be read", keep)
	}
	return r, in, nil
}

// Resume implements [cove.Resumer].
func (c *Conn) Resume(ctx context.Context, keep string, cmd cove.Command) (cove.Process, error) {
	return c.resume(ctx, keep, cmd, c.holder())
}

// Inherit is Resume for who will be the only one that ever does: what the program
// writes waits for him as in a pipe, and is not thrown away however long he takes.
func (c *Conn) Inherit(ctx context.Context, keep string, cmd cove.Command) (cove.Process, error) {
	h := c.holder()
	if own, ok := h.(inside); ok {
		own.alone = true
		h = own
	}
	return c.resume(ctx, keep, cmd, h)
}

func (c *Conn) resume(ctx context.Context, keep string, cmd cove.Command, h Holder) (cove.Process, error) {
	if cmd.Record {
		rec, files, m, count, err := c.recorded(ctx, keep)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			return c.resumeRecorded(keep, cmd, rec, files, m, count)
		}
	}
	r, in, err := c.look(ctx, keep)
	if err != nil {
		return nil, err
	}
	p := c.program(cmd)
	p.holder = h
	p.keep, p.held, p.tty, p.started = keep, true, r.TTY, r.Started
	if cmd.Stdin != nil && in >= 0 {
		_ = unix.SetNonblock(in, true)
		p.stdin = os.NewFile(uintptr(in), "input")
	} else {
		if in >= 0 {
			_ = unix.Close(in)
		}
		cmd.Stdin = nil
	}
	return c.rejoin(keep, p, cmd)
}

// rejoin lets the streams of a program flow that lived on without a host.
func (c *Conn) rejoin(keep string, p *process, cmd cove.Command) (cove.Process, error) {
	ended, err := c.join(keep, p)
	if err != nil {
		p.held = false // it stays as it is
		p.abandon(nil)
		return nil, err
	}
	p.pump(cmd)
	if ended != nil {
		p.settle(func() {
			p.exit = ended.exit
			if ended.wall > 0 {
				p.wall = ended.wall
			}
		})
	} else if wall := cmd.Limits.Wall; wall > 0 {
		p.watchdog(wall, time.Now())
	}
	return p, nil
}

// join makes a process one of those that are told of the end of a program, or
// returns how that has ended.
func (c *Conn) join(keep string, p *process) (*kept, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	k := c.kept[keep]
	if k == nil {
		return nil, cove.Errorf(cove.NotFound, "no program named %.80s is kept", keep)
	}
	p.id, k.recording, k.started = k.id, p.recording, p.started
	if k.ended {
		ended := *k
		return &ended, nil
	}
	k.procs[p] = true
	return nil, nil //nolint:nilnil // it runs
}

// Forget implements [cove.Resumer].
func (c *Conn) Forget(ctx context.Context, keep string) error {
	h := c.holder()
	if h == nil {
		return nil
	}
	c.mu.Lock()
	if err := c.err; err != nil {
		c.mu.Unlock()
		return err
	}
	k := c.kept[keep]
	running := k != nil && !k.ended
	var procs []*process
	if running {
		procs = slices.Collect(maps.Keys(k.procs))
		if p := c.procs[k.id]; p != nil {
			procs = append(procs, p)
		}
	}
	c.mu.Unlock()
	for _, p := range procs {
		p.blame(cove.Killed)
	}
	if running {
		if err := c.plain(ctx, protocol.KindKill, protocol.Poke{Program: k.id}.Encode()); err != nil {
			return err
		}
	}
	if k != nil {
		if err := c.plain(ctx, protocol.KindForget, protocol.Poke{Program: k.id}.Encode()); err != nil {
			return err
		}
	}
	if err := h.Forget(ctx, keep); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[keep] == k {
		delete(c.kept, keep)
	}
	return nil
}

// Reconcile makes the agent and the holder agree, after another host was there
// before: what only one of them knows was being started or forgotten, and what
// ended meanwhile is finished. There is nothing to do where they are one.
func (c *Conn) Reconcile(ctx context.Context) error {
	h := c.opts.Load().Holder
	if h == nil {
		return nil
	}
	names, err := h.Names(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	known := maps.Clone(c.kept)
	ended := map[string]bool{}
	for name, k := range known {
		ended[name] = k.ended
	}
	c.mu.Unlock()
	for _, name := range names {
		switch {
		case known[name] == nil:
			err = h.Forget(ctx, name)
		case ended[name]:
			err = h.Finish(ctx, name)
		}
		if err != nil {
			return err
		}
	}
	for name := range known {
		if !slices.Contains(names, name) {
			if err := c.Forget(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}
