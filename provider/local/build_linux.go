package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
	"github.com/cove-sandbox/cove/internal/linux/uncharged"
	"github.com/cove-sandbox/cove/internal/linux/userns"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// made is a sandbox without a spec: what a spare is, and a sandbox becomes.
type made struct {
	host    *hostSide
	kit     *kit              // it was made with; nil for what an earlier process made
	env     map[string]string // of its template
	digest  string            // of its template
	name    cove.ID           // of its control group
	lease   *userns.Lease
	group   *cgroup.Group // nil where there are none
	pid     int
	killing sync.Mutex
	process int         // a pidfd, guarded by killing once it is made; -1 when all is gone
	handles []int       // to resize its places by, if it has no spec yet
	shelf   *shelf      // nil where there are no layers
	disk    *disk       // the workspace, if it is on disk
	maker   *maker      // who has the rights over it; nil if we have
	ours    bool        // our own child
	room    *fence.Room // what it is in, where we built it; nil when it was left
	solo    bool        // there is no agent, but a process for one program
	link    int         // to the first process, until it is connected; or -1
	limits  cgroup.Limits
	hungry  func() bool      // what [made.famine] returns
	starved int64            // how often the kernel had killed for want of memory when we came
	held    *held            // where the keeper has it; nil if it does not
	watch   *uncharged.Watch // of one without an agent, guarded by killing; nil before the first look
	blind   int              // how often there was none, guarded by killing
}

// wish is what a sandbox is to have.
type wish struct {
	template string // "" is the base
	places   fence.Places
	handles  bool // it has no spec yet
	volumes  []cove.Volume
	disk     bool              // the workspace is on disk
	solo     bool              // it is for one program
	limit    func(*made) error // gives it its limits; nil: not yet
}

// make builds a sandbox. With an error nothing of it is left.
func (h *hostSide) make(ctx context.Context, id cove.ID, w wish) (*made, error) {
	m, err := h.makeOnce(ctx, id, w)
	if errors.Is(err, fence.ErrEnded) && ctx.Err() == nil {
		// Somebody killed the spawner; another one can do it. All is made anew:
		// there may be an agent at the other end of the old link.
		m, err = h.makeOnce(ctx, id, w)
	}
	return m, err
}

func (h *hostSide) makeOnce(ctx context.Context, id cove.ID, w wish) (_ *made, err error) {
	m, err := h.begin(id, w)
	if err != nil {
		return nil, err
	}
	h.live.add(id)
	defer func() {
		if err != nil {
			err = errors.Join(err, m.drop(context.WithoutCancel(ctx)))
		}
	}()
	order := fence.Order{Places: w.places, Handles: w.handles, Solo: w.solo}
	if h.leases != nil {
		if m.lease, err = h.leases.Take(); err != nil {
			return nil, unleased(err)
		}
		order.Outside = m.lease.First
	}
	volumes, err := h.openVolumes(w.volumes, m.lease)
	if err != nil {
		return nil, err
	}
	defer volumes.close()
	if w.disk {
		if m.disk, err = h.disks.make(ctx, id, w.places.Workspace, order.Outside); err != nil {
			return nil, err
		}
		defer m.disk.close()
		volumes.volumes = append(volumes.volumes, m.disk.show)
		volumes.handles = append(volumes.handles, fence.VolumeHandles{Source: int(m.disk.file.Fd()), Users: -1})
	}
	order.Volumes = volumes.volumes
	to := fence.Handles{Group: -1, Volumes: volumes.handles}
	if groups, _ := h.control(); groups != nil {
		tasks, err := m.openGroup(groups, &to)
		for _, f := range tasks {
			defer func() { _ = f.Close() }()
		}
		if err != nil {
			return nil, err
		}
	}
	if w.limit != nil {
		if err := w.limit(m); err != nil {
			return nil, err
		}
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, cove.Wrap(cove.Exhausted, os.NewSyscallError("socketpair", err), "the host has no descriptor left for a sandbox").Reason(cove.ReasonCapacity)
	}
	m.link, to.Link = fds[0], fds[1]
	err = m.build(ctx, order, to)
	_ = unix.Close(fds[1])
	if err != nil {
		return nil, err
	}
	return m, nil
}

// unleased says why a sandbox has no user.
func unleased(err error) error {
	if errors.Is(err, userns.ErrNoUsers) {
		return cove.Wrap(cove.Exhausted, err, "there is no user left for another sandbox").Reason(cove.ReasonCapacity)
	}
	return cove.Wrap(cove.Unavailable, err, "the users of sandboxes cannot be kept apart").Remedy("let root write to %s", filepath.Dir(userns.MachineDir))
}

// openGroup makes the control group and opens what lets a process into it.
func (m *made) openGroup(groups *cgroup.Manager, to *fence.Handles) ([]*os.File, error) {
	g, err := groups.Create(string(m.name))
	if errors.Is(err, os.ErrExist) {
		return nil, cove.Wrap(cove.Conflict, err, "sandbox %s exists already", m.name)
	}
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the control group of a sandbox cannot be made").Remedy("run cove doctor")
	}
	m.group = g
	tasks, err := g.Tasks()
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the control group of a sandbox cannot be entered")
	}
	for _, f := range tasks {
		to.Tasks = append(to.Tasks, int(f.Fd()))
	}
	if fd, ok := g.FD(); ok {
		to.Group = fd
	}
	return tasks, nil
}

// build has the order carried out, by us or by the spawner.
func (m *made) build(ctx context.Context, o fence.Order, h fence.Handles) error {
	box, err := m.order(ctx, o, h)
	if err != nil && m.kit.giveUpProc(err) {
		box, err = m.order(ctx, o, h)
	}
	if err != nil {
		return m.kit.explain(err)
	}
	m.host.tried.Store(true)
	m.pid, m.process, m.handles = box.PID, box.Process, box.Handles
	if box.Store >= 0 {
		m.shelf = newShelf(m.crew(), m.group, box, o.Outside, o.Places.Workspace)
	}
	return nil
}

func (m *made) order(ctx context.Context, o fence.Order, h fence.Handles) (fence.Sandbox, error) {
	direct, spawner, err := m.kit.builders()
	if err != nil {
		return fence.Sandbox{}, err
	}
	if direct != nil {
		m.ours = true
		box, room, err := direct.BuildIn(o, h)
		m.room = room
		return box, err
	}
	if !m.host.become {
		m.maker = spawner
	}
	box, err := spawner.Build(ctx, o, h)
	if errors.Is(err, fence.ErrEnded) {
		select { // so that the next order finds another one
		case <-spawner.Done():
		case <-ctx.Done():
		}
	}
	return box, err
}

// crew is who has the rights over it.
func (m *made) crew() crew { return crew{m.host, m.maker} }

// giveUpProc reports whether it makes sense to try again without a /proc: in a
// container that masks parts of its own, the kernel gives nobody a new one. It
// stays so for as long as we live, and Probe says so.
func (k *kit) giveUpProc(err error) bool {
	h := k.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if k.plan == nil || !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), "mount /proc") {
		return false
	}
	if !k.plan.Proc {
		return true // another order gave it up meanwhile
	}
	h.known.Store(nil) // there is more to say now
	plan := *k.plan
	plan.Proc, plan.Root.Evidence = false, ""
	k.plan = &plan
	k.letGo()
	return true
}

// letGo ends the builders; the next order makes new ones. Callers hold mu.
func (k *kit) letGo() []error {
	h := k.host
	if k.idle != nil {
		k.idle.Stop()
		k.idle = nil
	}
	var errs []error
	k.nursery.close()
	if k.spawner != nil {
		delete(h.makers, k.spawner.id)
		if k.spawner.kept.Load() > 0 && !h.closed {
			h.remember(k.spawner) // what it made needs it
		} else {
			errs = append(errs, k.spawner.end())
		}
	}
	if k.direct != nil {
		errs = append(errs, k.direct.Close())
	}
	k.spawner, k.direct = nil, nil
	return errs
}

// builders returns one of the two.
func (k *kit) builders() (*fence.Builder, *maker, error) {
	h := k.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, closedError()
	}
	if err := k.draw(); err != nil {
		return nil, nil, err
	}
	if k.direct != nil {
		return k.direct, nil, nil
	}
	if k.spawner != nil {
		select {
		case <-k.spawner.Done(): // somebody killed it; its sandboxes live on
			k.spawner = nil
		default:
			return nil, k.spawner, nil
		}
	}
	var err error
	if h.cfg.Once && h.become {
		if k.direct, err = fence.NewBuilder(k.plan, int(h.executable.Fd()), int(h.proc.Fd())); err != nil {
			return nil, nil, cove.Wrap(cove.Internal, err, "the builder of sandboxes cannot be made")
		}
		if h.ahead != nil && k.isBase() {
			k.direct.Use(h.ahead.room)
			h.ahead = nil
		} else {
			k.direct.Stock()
		}
		return k.direct, nil, nil
	}
	if k.spawner, err = k.launch(); err != nil {
		return nil, nil, k.explain(err)
	}
	return nil, k.spawner, nil
}

// draw makes the plan, once. Callers hold mu.
func (k *kit) draw() error {
	if k.plan != nil {
		return nil
	}
	p, err := k.newPlan()
	if err == nil {
		k.plan = p
	}
	return err
}

// planned returns the plan as it is now.
func (k *kit) planned() (*fence.Plan, error) {
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	err := k.draw()
	return k.plan, err
}

// explain gives the cause and the remedy of a sandbox that could not be built.
func (h *hostSide) explain(err error) error {
	if _, ok := errors.AsType[*cove.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if said, ok := explainVolume(err); ok {
		return said
	}
	why := h.missing()
	switch {
	// A host that allows none says the same as one that has no more.
	case isFull(err) && (why == nil || h.tried.Load()):
		return cove.Wrap(cove.Exhausted, err, "the host has no room for another sandbox: %s", err).Reason(cove.ReasonCapacity).
			Remedy("end some sandboxes; see the limits in /proc/sys/user and in ulimit -a")
	case why != nil:
		return cove.Wrap(cove.Unavailable, err, "provider %s cannot make sandboxes here: %s", name, why).Remedy("%s", remedyOf(why))
	}
	return cove.Wrap(cove.Unavailable, err, "provider %s cannot make sandboxes here: %s", name, err).Remedy("run cove doctor, which says what is missing")
}

// isFull reports whether an error says that something is used up.
func isFull(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}, func(full error) bool {
		return errors.Is(err, full)
	})
}

// missing returns the first thing that a user needs and this host refuses.
func (h *hostSide) missing() error {
	if h.become {
		return nil
	}
	r := userns.Probe()
	for _, err := range []error{r.Create, r.Map, r.Mount} {
		if _, ok := errors.AsType[*linux.Missing](err); ok {
			return err
		}
	}
	return nil
}

// end ends the sandbox and waits until nothing of it is left. The connection, if
// there is one, is closed before.
func (m *made) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var errs []error
	if m.link >= 0 {
		errs = append(errs, unix.Close(m.link))
		m.link = -1
	}
	if err := m.kill(ctx); err != nil {
		return err // what is still used stays
	}
	if m.room != nil {
		m.room.Leave() // beside what follows
		m.room = nil
	}
	m.closeHandles()
	if m.shelf != nil {
		m.shelf.close()
	}
	if m.group != nil {
		if err := m.group.Remove(ctx); err != nil {
			return cove.Wrap(cove.Unavailable, errors.Join(append(errs, err)...), "the control group of sandbox %s cannot be removed", m.name)
		}
		m.group = nil
	}
	if m.held != nil {
		errs = append(errs, m.held.drop(ctx))
		m.held = nil
		m.maker.letGo()
	}
	if m.disk != nil {
		if err := m.disk.remove(ctx); err != nil {
			return cove.Wrap(cove.Unavailable, errors.Join(append(errs, err)...), "the workspace of sandbox %s cannot be removed", m.name)
		}
		m.disk = nil
	}
	if m.lease != nil {
		errs = append(errs, m.lease.Release())
		m.lease = nil
	}
	m.host.live.remove(m.name)
	m.kit.leave(m)
	return errors.Join(errs...)
}

// drop ends a sandbox that nobody will hold. What cannot be ended is left to who
// lists and removes.
func (m *made) drop(ctx context.Context) error {
	err := m.end(ctx)
	m.host.live.remove(m.name)
	return err
}

func (m *made) closeHandles() {
	for _, fd := range m.handles {
		_ = unix.Close(fd)
	}
	m.handles = nil
}

// kill ends all processes for good.
func (m *made) kill(ctx context.Context) error {
	m.killing.Lock()
	defer m.killing.Unlock()
	if m.process < 0 {
		return nil
	}
	if err := m.killAll(ctx); err != nil {
		return err
	}
	if m.ours {
		_, _ = unix.Wait4(m.pid, nil, 0, nil)
	}
	_ = unix.Close(m.process)
	m.process = -1
	if m.watch != nil {
		m.watch.Close()
		m.watch = nil
	}
	return nil
}

// stop ends all processes, also while somebody else does.
func (m *made) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return m.kill(ctx)
}

// killAll ends the first process, and with it all others: the kernel lets the
// first one go only when the rest is gone.
func (m *made) killAll(ctx context.Context) error {
	if err := unix.PidfdSendSignal(m.process, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return cove.Wrap(cove.Unavailable, err, "sandbox %s cannot be ended", m.name)
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(m.process), Events: unix.POLLIN}}, 100) //nolint:gosec // a descriptor
		if err != nil && !errors.Is(err, unix.EINTR) {
			return cove.Wrap(cove.Internal, err, "sandbox %s cannot be waited for", m.name)
		}
		if n > 0 {
			break
		}
		// A process must get a turn to die, and others may keep it from one. Who
		// is in the group dies in one stroke.
		if m.group != nil {
			if err := m.group.Kill(ctx); err != nil {
				return cove.Wrap(cove.Unavailable, err, "sandbox %s cannot be ended", m.name)
			}
		}
		if err := ctx.Err(); err != nil {
			return cove.Wrap(cove.Timeout, err, "sandbox %s did not end in time", m.name).Remedy("try again")
		}
	}
	return nil
}
