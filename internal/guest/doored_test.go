//go:build linux

package guest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/agent"
	"github.com/cove-sandbox/cove/internal/linux/forkexec"
	"github.com/cove-sandbox/cove/internal/linux/linuxtest"
)

// playDoor is a door into the sandbox of a process, as a user.
func playDoor(args []string) error {
	runtime.LockOSThread()
	f, err := os.Open("/proc/" + args[0] + "/ns/net")
	if err != nil {
		return err
	}
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("setns: %w", err)
	}
	uid, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
		return errno
	}
	if code := agent.Door(); code != 0 {
		return fmt.Errorf("door ended with %d", code)
	}
	return nil
}

// house is a sandbox whose agent listens.
type house struct {
	t    testing.TB
	cmd  *exec.Cmd
	errs *strings.Builder
	opts guest.Options
	net  cove.Network // its way out, if it has one
}

// build makes one, as root; it ends with the test.
func build(t testing.TB, change ...func(*stage)) *house {
	t.Helper()
	linuxtest.NeedRoot(t)
	linuxtest.Need(t, forkexec.Probe())
	linuxtest.Need(t, canEnter(true))
	on := stage{Top: t.TempDir(), User: true, Listen: true}
	for _, c := range change {
		c(&on)
	}
	args, err := json.Marshal(on)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, errs: &strings.Builder{}, opts: guest.Options{
		Dir: cove.WorkspacePath, Env: map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home", "LC_ALL": "C.UTF-8"},
	}}
	h.cmd = linuxtest.Start(t, linuxtest.Child{Name: "agent", Args: []string{string(args)}, Clone: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET}, nil, h.errs)
	return h
}

// duplex are the two pipes of a door, as engines have them.
type duplex struct {
	io.Reader
	io.WriteCloser

	in  *os.File
	cmd *exec.Cmd
}

func (d *duplex) Close() error {
	_ = d.in.Close()
	return d.WriteCloser.Close()
}

// door opens one as a user, and returns the host's end of it.
func (h *house) door(uid int) *duplex {
	h.t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := h.doorOn(uid, theirIn, theirOut)
	_, _ = theirIn.Close(), theirOut.Close()
	return &duplex{Reader: out, WriteCloser: in, in: out, cmd: cmd}
}

// doorOn starts one with streams.
func (h *house) doorOn(uid int, in, out *os.File) *exec.Cmd {
	h.t.Helper()
	return linuxtest.Start(h.t, linuxtest.Child{Name: "door", Args: []string{strconv.Itoa(h.cmd.Process.Pid), strconv.Itoa(uid)}, Stdin: in}, out, io.Discard)
}

// host connects through a door.
func (h *house) host(ctx context.Context) (*guest.Conn, *duplex, error) {
	h.t.Helper()
	d := h.door(0)
	tr, err := guest.Door(ctx, d)
	if err != nil {
		return nil, d, err
	}
	c, err := guest.Connect(ctx, tr, h.opts)
	return c, d, err
}

// street is what outlives the providers of one test.
type street struct {
	t *testing.T

	mu    sync.Mutex
	boxes map[cove.ID]*house
}

// doored is the least that makes a provider of agents that listen.
type doored struct {
	cove.Provider
	*street

	open map[cove.ID]*doorBox
}

func (p *doored) Name() string { return "doored" }

func (p *doored) Probe(context.Context) (cove.Capabilities, error) {
	return cove.Capabilities{
		Ready: true, Isolation: cove.Isolation{Boundary: cove.BoundaryNamespaces},
		Workspaces: map[cove.WorkspaceKind]cove.Quota{cove.WorkspaceMemory: {}},
		Networks:   []cove.NetworkMode{cove.NetworkOpen}, Templates: []string{"base"},
		Powers: []cove.Power{cove.PowerTerminal, cove.PowerDial, cove.PowerAttach, cove.PowerResume},
	}, nil
}

func (p *doored) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	b, err := p.create(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (p *doored) create(ctx context.Context, id cove.ID, spec cove.Spec, change ...func(*stage)) (*doorBox, error) {
	p.mu.Lock()
	taken := p.boxes[id] != nil
	p.mu.Unlock()
	if taken {
		return nil, cove.Errorf(cove.Conflict, "%s is there already", id)
	}
	h := build(p.t, change...)
	maps.Copy(h.opts.Env, spec.Env)
	p.mu.Lock()
	p.boxes[id] = h
	p.mu.Unlock()
	return p.enter(ctx, id, h)
}

func (p *doored) enter(ctx context.Context, id cove.ID, h *house) (*doorBox, error) {
	c, d, err := h.host(ctx)
	if err != nil {
		return nil, err
	}
	b := &doorBox{Conn: c, id: id, p: p, h: h, d: d}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[id] = b
	return b, nil
}

func (p *doored) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	p.mu.Lock()
	h, b := p.boxes[id], p.open[id]
	p.mu.Unlock()
	switch {
	case h == nil:
		return nil, cove.Errorf(cove.NotFound, "no %s is here", id)
	case b != nil:
		return b, nil
	}
	b, err := p.enter(ctx, id, h)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (p *doored) List(context.Context) iter.Seq2[cove.ID, error] {
	return func(yield func(cove.ID, error) bool) {
		p.mu.Lock()
		ids := slices.Collect(maps.Keys(p.boxes))
		p.mu.Unlock()
		for _, id := range ids {
			if !yield(id, nil) {
				return
			}
		}
	}
}

func (p *doored) Remove(ctx context.Context, id cove.ID) error {
	b, err := p.Attach(ctx, id)
	if cove.CodeOf(err) == cove.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return b.Destroy(ctx)
}

// Close leaves all sandboxes to the next provider.
func (p *doored) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.open {
		b.Leave()
		_ = b.d.cmd.Wait()
	}
	clear(p.open)
	return nil
}

type doorBox struct {
	*guest.Conn

	id   cove.ID
	p    *doored
	h    *house
	d    *duplex
	once sync.Once
}

func (b *doorBox) ID() cove.ID               { return b.id }
func (b *doorBox) Isolation() cove.Isolation { return cove.Isolation{} }

func (b *doorBox) Destroy(ctx context.Context) error {
	b.once.Do(func() {
		if b.Shutdown(ctx) != nil {
			_ = b.h.cmd.Process.Kill()
		}
		_ = b.h.cmd.Wait()
		_ = b.d.cmd.Wait()
		b.p.mu.Lock()
		defer b.p.mu.Unlock()
		delete(b.p.boxes, b.id)
		delete(b.p.open, b.id)
	})
	return nil
}

var _ cove.Sandbox = (*doorBox)(nil)
