package fence

import (
	"errors"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/initproc"
	"github.com/cove-sandbox/cove/internal/linux/landlock"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/internal/linux/seccomp"
	"github.com/cove-sandbox/cove/internal/linux/solo"
)

// Handles are the descriptors that go into a sandbox, or are used to make it.
// They stay the caller's.
type Handles struct {
	Link  int   // becomes descriptor 3 of the first process
	Group int   // of a control group of version 2, or -1
	Tasks []int // of control groups of version 1
	// Volumes are those of the order, in its order.
	Volumes []VolumeHandles
}

// VolumeHandles are of what a volume shows, opened without following links, and
// of a user namespace, or -1.
type VolumeHandles struct{ Source, Users int }

// Sandbox is what an order made.
type Sandbox struct {
	PID     int   // as the builder's pid namespace numbers it
	Process int   // a pidfd, which the caller closes
	Handles []int // what the order asked for, which the caller closes
	// Store is where the layers of the workspace are, and Namespace the one of the
	// sandbox's mounts; jobs are about them. Both are -1 where the plan has no
	// layers, and the caller's to close.
	Store, Namespace int
}

// files are all descriptors of a sandbox.
func (s *Sandbox) files() []int {
	all := []int{s.Process}
	if s.Store >= 0 {
		all = append(all, s.Store, s.Namespace)
	}
	return append(all, s.Handles...)
}

// sandboxOf is what files gave. Whether there is a store is known by their number.
func sandboxOf(files []int, handles bool) (s Sandbox, ok bool) {
	own := len(files) - 1
	if handles {
		own -= places
	}
	if own != 0 && own != 2 {
		return s, false
	}
	s = Sandbox{Process: files[0], Handles: files[1+own:], Store: -1, Namespace: -1}
	if own > 0 {
		s.Store, s.Namespace = files[1], files[2]
	}
	return s, true
}

// places is how many handles there are: of the workspace and of /tmp.
const places = 2

// Builder carries out orders in this process. Methods are safe for concurrent
// use.
type Builder struct {
	plan       *Plan
	rooted     bool   // the plan's root is ours already
	covers     covers // of a root that is ours; nil: nothing is covered
	executable int
	solo       int // the executable for one program
	proc       int
	null       int
	filter     seccomp.Program
	limited    bool       // all threads have little room for more filters
	rooms      chan *Room // begun before they are needed
	view       *view      // of the host's files; nil where all threads have it
}

// NewBuilder returns one for a plan. The descriptors are of the agent's
// executable and of a /proc that shows this process; they must stay open.
func NewBuilder(p *Plan, executable, proc int) (*Builder, error) {
	filter, err := seccomp.Parse(p.Filter)
	if err != nil && len(p.Filter) > 0 {
		return nil, err
	}
	lone, err := solo.Image() // now: in a room there is no /proc to open it by
	if err != nil {
		return nil, err
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = unix.Close(lone)
		return nil, &os.PathError{Op: "open", Path: "/dev/null", Err: err}
	}
	return &Builder{plan: p, executable: executable, solo: lone, proc: proc, null: null, filter: filter, rooms: make(chan *Room, 1)}, nil
}

// Close lets go of what the builder opened. What it built lives on.
func (b *Builder) Close() error {
	select {
	case r := <-b.rooms:
		close(r.work)
	default:
	}
	return errors.Join(unix.Close(b.solo), unix.Close(b.null))
}

// Tools are what the builder does jobs with.
func (b *Builder) Tools() Tools {
	return Tools{Proc: b.proc, Become: b.plan.Become}
}

// settle makes the plan's root that of the calling thread's mount namespace, and
// with it of every sandbox from now on.
func (b *Builder) settle() error {
	if err := b.plan.Root.build(); err != nil {
		return err
	}
	b.rooted = true
	if !b.plan.Cover {
		return nil
	}
	covers, err := b.plan.Root.covers(b.proc)
	b.covers = covers
	return err
}

// Build makes a sandbox and starts its agent. With an error nothing is left.
func (b *Builder) Build(o Order, h Handles) (Sandbox, error) {
	box, room, err := b.BuildIn(o, h)
	if err == nil {
		room.Leave()
	}
	return box, err
}

// BuildIn is Build, and returns the room in which the sandbox is. While the caller
// has not left it, the mounts of a sandbox that has ended are still there: so the
// end of the sandbox does not take the time that it takes to remove them.
func (b *Builder) BuildIn(o Order, h Handles) (Sandbox, *Room, error) {
	type result struct {
		box Sandbox
		err error
	}
	trees, err := b.volumes(o, h)
	if err != nil {
		return Sandbox{}, nil, err
	}
	defer trees.close()
	done := make(chan result, 1)
	r := b.take()
	r.work <- func(error) {
		if r.err != nil {
			done <- result{err: r.err}
			return
		}
		box, err := b.build(o, h, trees)
		done <- result{box, err}
	}
	got := <-done
	if got.err != nil {
		r.Leave()
		return Sandbox{}, nil, got.err
	}
	return got.box, r, nil
}

// Resize gives the places of a sandbox other bounds. The handles are those that
// its order asked for; they stay the caller's, who must have the privileges of
// the builder.
func Resize(handles []int, to Places) error {
	if len(handles) != places {
		return protocol.ErrMalformed
	}
	for i, size := range []Bounds{to.Workspace, to.Temp} {
		fd, err := unix.FcntlInt(uintptr(handles[i]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		tree := os.NewFile(uintptr(fd), "place")
		err = mount.Tmpfs{Size: size.Size, Files: size.Files}.ResizeTree(tree)
		_ = tree.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// build makes a sandbox in the room of the calling thread.
func (b *Builder) build(o Order, h Handles, trees forest) (s Sandbox, err error) {
	var p initproc.Process
	s.Process, s.Store, s.Namespace = -1, -1, -1
	if err = trees.plant(); err != nil {
		return s, err
	}
	if err = b.furnish(o, &s); err == nil {
		err = trees.attach()
	}
	if err == nil {
		p, err = b.start(o, h, trees)
	}
	if err == nil && b.plan.Root.Evidence != "" {
		// It has served: a /proc was mounted.
		if err = mount.Detach(b.plan.Root.Evidence); err != nil {
			p.End()
		}
	}
	if err != nil {
		closeAll(slices.DeleteFunc(s.files(), func(fd int) bool { return fd < 0 }))
		return Sandbox{}, err
	}
	s.PID, s.Process = p.PID, p.FD
	return s, nil
}

// furnish mounts what is the sandbox's own.
func (b *Builder) furnish(o Order, s *Sandbox) error {
	owner := int(o.Outside)
	if !b.plan.Become {
		owner = 0
	}
	at := func(n Bounds, mode os.FileMode) mount.Tmpfs {
		return mount.Tmpfs{Size: n.Size, Files: n.Files, Mode: mode, UID: owner, GID: owner, Flags: placeFlags}
	}
	if err := at(b.plan.Shared, 0o777|os.ModeSticky).Mount("/dev/shm"); err != nil {
		return err
	}
	room, temp := at(o.Places.Workspace, 0o755), at(o.Places.Temp, 0o777|os.ModeSticky)
	if slices.ContainsFunc(o.Volumes, func(v Volume) bool { return v.Target == workspace }) {
		return temp.Mount("/tmp")
	}
	if b.plan.Layers {
		if err := b.shelve(o.Places.Workspace, owner, s); err != nil {
			return err
		}
	} else if !o.Handles {
		if err := room.Mount(workspace); err != nil {
			return err
		}
	}
	if !o.Handles {
		return temp.Mount("/tmp")
	}
	if b.plan.Layers {
		fd, err := unix.FcntlInt(uintptr(s.Store), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		s.Handles = append(s.Handles, fd)
	} else {
		fd, err := handled(room, workspace)
		if err != nil {
			return err
		}
		s.Handles = append(s.Handles, fd)
	}
	fd, err := handled(temp, "/tmp")
	if err == nil {
		s.Handles = append(s.Handles, fd)
	}
	return err
}

// FirstLayer is the directory of a new store that is at /workspace.
const FirstLayer = "0"

// shelve makes the store of a workspace and shows its first layer.
func (b *Builder) shelve(n Bounds, owner int, s *Sandbox) error {
	tree, err := newStore(n, FirstLayer, owner)
	if err != nil {
		return err
	}
	defer func() { _ = tree.Close() }()
	layer, err := mount.Clone(int(tree.Fd()), FirstLayer)
	if err != nil {
		return err
	}
	defer func() { _ = layer.Close() }()
	if err := mount.Attach(layer, workspace); err != nil {
		return err
	}
	if s.Namespace, err = unix.Openat(b.proc, "thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return os.NewSyscallError("open the namespace", err)
	}
	if s.Store, err = unix.FcntlInt(tree.Fd(), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		_ = unix.Close(s.Namespace)
		s.Namespace = -1
		return os.NewSyscallError("fcntl", err)
	}
	return nil
}

// handled mounts a place and returns a descriptor of it.
func handled(place mount.Tmpfs, path string) (int, error) {
	tree, err := place.New()
	if err != nil {
		return -1, err
	}
	defer func() { _ = tree.Close() }()
	if err := mount.Attach(tree, path); err != nil {
		return -1, err
	}
	return unix.FcntlInt(tree.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// walls is what landlock leaves to a sandbox: another fence behind the mounts.
// /proc is covered by what holds for the root; the agent is executed from
// outside of it.
//
// With layers it cannot say where a sandbox may write: what will be mounted at
// /workspace has no rule and can get none, since rules are of files and not of
// paths. The mounts alone say it then. A rule for what is there now would only
// keep the kernel from freeing it.
func walls(executable int, layers, apart bool) landlock.Ruleset {
	const terminal = landlock.Device | landlock.ReadDir
	w := landlock.Ruleset{Apart: apart, Rules: []landlock.Rule{
		{Path: "/dev", Allow: terminal},
		{Path: "/dev/pts", Allow: terminal},
	}}
	if executable >= 0 {
		w.Rules = append(w.Rules, landlock.Rule{File: executable, Allow: landlock.Execute | landlock.ReadFile})
	}
	if layers {
		w.Rules = append(w.Rules, landlock.Rule{Path: "/", Allow: landlock.ReadWrite})
		return w
	}
	w.Rules = append(w.Rules, landlock.Rule{Path: "/", Allow: landlock.ReadOnly})
	for _, place := range []string{workspace, "/tmp", "/dev/shm"} {
		w.Rules = append(w.Rules, landlock.Rule{Path: place, Allow: landlock.ReadWrite})
	}
	return w
}

// soloName is what argv[0] of a first process for one program is.
const soloName = "cove-solo"

// filterOf is the filter of a sandbox, whose programs get little room for more filters.
// Without a spawner, which has used up the rest for all, that would take a process for
// one program longer than all else: its program can install none.
func (b *Builder) filterOf(o Order) (seccomp.Program, error) {
	switch {
	case len(b.filter) == 0 || b.limited:
		return b.filter, nil
	case o.Solo:
		return seccomp.Last(b.filter), nil
	}
	return b.filter, seccomp.LimitFilters(false)
}

func (b *Builder) start(o Order, h Handles, trees forest) (initproc.Process, error) {
	filter, err := b.filterOf(o)
	if err != nil {
		return initproc.Process{}, err
	}
	executable, argv, env := b.executable, b.plan.Argv, b.plan.Env
	dir := "/" // where nobody wants to unmount anything
	if o.Solo {
		executable, argv, env, dir = b.solo, []string{soloName}, nil, workspace
	}
	c := &initproc.Command{
		Executable: executable, Argv: argv, Env: env, Dir: dir,
		Files: []int{b.null, b.null, b.null, h.Link},
		Proc:  b.plan.Proc, Tasks: h.Tasks, Group: h.Group, OwnGroups: b.plan.Groups,
		Inside: b.plan.Inside, Outside: o.Outside, Become: b.plan.Become, ProcDir: b.proc,
		Ruleset: -1, Filter: filter,
	}
	if !b.plan.Become {
		c.Outside = 0 // the root of the builder's own user namespace
	}
	for _, l := range b.plan.Limits {
		c.Limits = append(c.Limits, initproc.Limit{Resource: l.Resource, Soft: l.Most, Hard: l.Most})
	}
	if b.plan.Landlock {
		rules := walls(executable, b.plan.Layers, !b.plan.Nested)
		rules.Rules = append(rules.Rules, trees.rules()...)
		fd, _, err := landlock.Open(rules)
		if err != nil {
			return initproc.Process{}, err
		}
		defer func() { _ = unix.Close(fd) }()
		c.Ruleset = fd
	}
	return initproc.Start(c)
}

func errnoOf(err error) syscall.Errno {
	if errno, ok := err.(syscall.Errno); ok { //nolint:errorlint // system calls return it bare
		return errno
	}
	return syscall.EIO
}
