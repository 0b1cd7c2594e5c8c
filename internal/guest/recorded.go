//go:build linux

package guest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// RecordHolder is a [Holder] that also holds the pipes of programs whose output this
// process reads itself, and the tapes that it puts it on.
type RecordHolder interface {
	Holder
	// HoldRecord holds copies of descriptors, by names. They stay the caller's.
	HoldRecord(ctx context.Context, keep string, note []byte, files map[string]int) error
	// Record returns them, the caller's to close; NotFound where it holds none.
	Record(ctx context.Context, keep string) (note []byte, files map[string]int, err error)
}

// The names of the descriptors.
const (
	recordIn      = "in"
	recordOut     = "out"
	recordErr     = "err"
	recordOutTape = "out-tape" // with the marks
	recordErrTape = "err-tape"
)

// recording is a program whose output is recorded by this process.
type recording struct {
	p         *process
	out, errs *output
	unnamed   bool // the agent does not know yet that it is kept

	mu    sync.Mutex
	count uint64 // of the last mark
	held  bool   // by the holder
}

// record prepares the recording of a program that is started.
func (p *process) record(cmd cove.Command) error {
	if !cmd.Record || p.keep == "" || p.relayed {
		return nil
	}
	if cmd.TTY != nil || p.stdin == nil || len(p.outs) != 2 {
		return cove.InvalidField("record", "is for programs with an input and two outputs of their own")
	}
	r := &recording{p: p}
	for _, o := range p.outs {
		t, err := newTape()
		if err != nil {
			r.close()
			return pipeFault(err)
		}
		o.tape = t
		if o.stderr {
			r.errs = o
		} else {
			r.out = o
		}
	}
	p.recording = r
	return nil
}

// close frees the tapes.
func (r *recording) close() {
	for _, o := range []*output{r.out, r.errs} {
		if o != nil && o.tape != nil {
			_ = o.tape.file.Close()
		}
	}
}

// Mark implements [cove.Recorder].
func (c *Conn) Mark(ctx context.Context, keep string, m cove.Mark) error {
	if len(m.Note) > maxNote {
		return cove.InvalidField("note", "has %d bytes; the most is %d", len(m.Note), maxNote)
	}
	c.mu.Lock()
	err, k := c.err, c.kept[keep]
	var r *recording
	if k != nil {
		r = k.recording
	}
	c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case k == nil:
		return cove.Errorf(cove.NotFound, "no program named %.80s is recorded", keep)
	case r != nil:
		return c.mark(ctx, keep, r, m)
	case !c.link.Relayed() || c.version < protocol.Marks:
		return cove.Errorf(cove.Unsupported, "the sandbox's agent is of an older version and records no programs")
	}
	note, err := json.Marshal(record{Started: k.started, Note: m.Note})
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the state of a program cannot be written down")
	}
	return c.plain(ctx, protocol.KindMark, protocol.Mark{Program: k.id, Keep: keep, Note: note, Out: m.Stdout, Err: m.Stderr}.Encode())
}

func (c *Conn) mark(ctx context.Context, keep string, r *recording, m cove.Mark) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if err := r.out.tape.writeMark(r.count, m); err != nil {
		return cove.Wrap(cove.Unavailable, err, "the state of a program cannot be written down")
	}
	if !r.held {
		if err := c.holdRecord(ctx, keep, r); err != nil {
			return err
		}
		r.held = true
	}
	r.out.tape.free(m.Stdout)
	r.errs.tape.free(m.Stderr)
	return nil
}

// holdRecord makes a program outlive this process. The caller holds mu.
func (c *Conn) holdRecord(ctx context.Context, keep string, r *recording) error {
	h, ok := c.opts.Load().Holder.(RecordHolder)
	if !ok {
		return cove.Errorf(cove.Unsupported, "nothing holds the programs of this sandbox")
	}
	if r.unnamed {
		if err := c.plain(ctx, protocol.KindMark, protocol.Mark{Program: r.p.id, Keep: keep}.Encode()); err != nil {
			return err
		}
		r.unnamed = false
	}
	note, err := json.Marshal(record{Started: r.p.started})
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the program cannot be kept")
	}
	files := map[string]int{
		recordIn: fdOf(r.p.stdin), recordOut: fdOf(r.out.file), recordErr: fdOf(r.errs.file),
		recordOutTape: fdOf(r.out.tape.file), recordErrTape: fdOf(r.errs.tape.file),
	}
	for _, fd := range files {
		if fd < 0 {
			return cove.Errorf(cove.NotFound, "the program has ended")
		}
	}
	return h.HoldRecord(ctx, keep, note, files)
}

// record copies the output of a recorded program. It ends with the program, or with this
// process's part in it: what is in the pipe then is the next one's.
func (o *output) record() {
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	at, err := o.tape.size()
	if err == nil {
		err = o.replay(at, buf[:])
	}
	raw, rerr := o.file.SyscallConn()
	if err != nil || rerr != nil {
		return
	}
	for {
		var b []byte
		var got error
		err := raw.Read(func(fd uintptr) bool {
			b, got = o.tape.take(int(fd), at, buf[:])
			return !errors.Is(got, unix.EAGAIN)
		})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			o.finish(at, buf[:])
			return
		}
		if err != nil || got != nil {
			return
		}
		at += int64(len(b))
		if o.deliver(b) != nil {
			return
		}
	}
}

// replay delivers what an earlier process read and did not mark.
func (o *output) replay(end int64, buf []byte) error {
	for at := o.from; at < end; {
		n, err := o.tape.file.ReadAt(buf[:min(int64(len(buf)), end-at)], tapeHead+at)
		if n == 0 {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
		at += int64(n)
		if err := o.deliver(buf[:n]); err != nil {
			return err
		}
	}
	return nil
}

// finish delivers what is in the pipe of a program that has ended.
func (o *output) finish(at int64, buf []byte) {
	o.p.mu.Lock()
	lost := o.p.err != nil
	o.p.mu.Unlock()
	if lost {
		return
	}
	left := 0
	_ = withFD(o.file, func(fd int) { left, _ = unix.IoctlGetInt(fd, unix.TIOCINQ) })
	for left > 0 {
		var b []byte
		var got error
		err := withFD(o.file, func(fd int) { b, got = o.tape.take(fd, at, buf[:min(len(buf), left)]) })
		if err != nil || got != nil {
			return
		}
		at, left = at+int64(len(b)), left-len(b)
		if o.deliver(b) != nil {
			return
		}
	}
}

// recorded returns what the holder has of a recorded program; nil where that is none.
func (c *Conn) recorded(ctx context.Context, keep string) (r *record, files map[string]*os.File, m cove.Mark, count uint64, err error) {
	h, ok := c.opts.Load().Holder.(RecordHolder)
	if !ok {
		return nil, nil, m, 0, nil
	}
	note, fds, err := h.Record(ctx, keep)
	if cove.CodeOf(err) == cove.NotFound {
		return nil, nil, m, 0, nil
	}
	if err != nil {
		return nil, nil, m, 0, err
	}
	files = map[string]*os.File{}
	for name, fd := range fds {
		_ = unix.SetNonblock(fd, true)
		files[name] = os.NewFile(uintptr(fd), name)
	}
	r = &record{}
	err = json.Unmarshal(note, r)
	for _, name := range []string{recordIn, recordOut, recordErr, recordOutTape, recordErrTape} {
		if files[name] == nil {
			err = errors.Join(err, os.ErrNotExist)
		}
	}
	if err == nil {
		count, m, err = (&tape{file: files[recordOutTape]}).readMark()
	}
	if err != nil {
		closeFiles(files)
		return nil, nil, m, 0, cove.Wrap(cove.Internal, err, "what is kept of program %s cannot be read", keep)
	}
	return r, files, m, count, nil
}

func closeFiles(files map[string]*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// resumeRecorded is Resume for a program that is recorded. It takes over the files.
func (c *Conn) resumeRecorded(keep string, cmd cove.Command, r *record, files map[string]*os.File, m cove.Mark, count uint64) (cove.Process, error) {
	p := c.program(cmd)
	p.keep, p.started, p.stdin = keep, r.Started, files[recordIn]
	rec := &recording{
		p: p, count: count, held: true,
		out:  &output{p: p, file: files[recordOut], to: orDiscard(cmd.Stdout), tape: &tape{file: files[recordOutTape], freed: m.Stdout}, from: m.Stdout},
		errs: &output{p: p, file: files[recordErr], to: orDiscard(cmd.Stderr), stderr: true, tape: &tape{file: files[recordErrTape], freed: m.Stderr}, from: m.Stderr},
	}
	p.recording, p.outs = rec, []*output{rec.out, rec.errs}
	if cmd.Stdin == nil {
		cmd.Stdin = never{}
	}
	return c.rejoin(keep, p, cmd)
}

// never is an input from which nothing comes, and which leaves the program's open.
type never struct{}

// Read implements [io.Reader].
func (never) Read([]byte) (int, error) { return 0, os.ErrClosed }

// Rename gives a program that the agent holds another name, for a caller that has it
// recorded from here on.
func (c *Conn) Rename(ctx context.Context, keep, to string) error {
	if c.version < protocol.Marks {
		return cove.Errorf(cove.Unsupported, "the sandbox's agent is of an older version and gives programs no other name")
	}
	c.mu.Lock()
	k := c.kept[keep]
	c.mu.Unlock()
	if k == nil || !validKeep(to) {
		return cove.Errorf(cove.NotFound, "no program named %.80s is kept", keep)
	}
	if err := c.plain(ctx, protocol.KindMark, protocol.Mark{Program: k.id, Keep: to}.Encode()); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kept, keep)
	c.kept[to] = k
	return nil
}
