package fence

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

// Tools are what jobs are done with: a descriptor of a /proc that shows this
// process, which stays the caller's.
type Tools struct {
	Proc int
	// Become is as in the plan.
	Become bool
}

// Done is what a job made.
type Done struct {
	Files []int // which the caller closes
	Bytes int64 // of the files that were copied or written down
}

// Do carries a job out in this process, which must have the rights of who built
// the sandbox. The files stay the caller's.
func (t Tools) Do(j Job, files []int) (Done, error) {
	if err := j.check(len(files)); err != nil {
		return Done{}, err
	}
	switch j.Kind {
	case JobShow:
		return Done{}, t.show(&j, files[0], files[1], files[2:])
	case JobStore:
		return t.store(&j)
	case JobCopy:
		return t.copy(&j, files[0], files[1])
	case JobErase:
		return Done{}, erase(files[0], j.Name)
	case JobChanges:
		return Done{}, t.changes(&j, files[0], files[1], files[2:])
	case JobPack:
		return t.pack(&j, files[0], files[1:])
	case JobUnpack:
		return t.unpack(&j, files[0], files[1])
	}
	return Done{}, protocol.ErrMalformed
}

// check refuses what is no job: names that lead elsewhere, and descriptors that
// do not fit.
func (j *Job) check(files int) error {
	names := []string{j.Stack.Upper, j.Name, j.To}
	for _, l := range j.Stack.Lower {
		names = append(names, l.Name)
	}
	for _, n := range names {
		if n == "." || n == ".." || strings.ContainsAny(n, "/\x00") {
			return protocol.ErrMalformed
		}
	}
	lower := len(j.Stack.Lower)
	need := map[JobKind]int{
		JobShow: 2 + lower, JobStore: 0, JobCopy: 2, JobErase: 1, JobChanges: 2 + lower, JobPack: 1 + lower, JobUnpack: 2,
	}
	if n, ok := need[j.Kind]; !ok || n != files || lower > mount.MaxLayers {
		return protocol.ErrMalformed
	}
	return nil
}

// apart runs f on a thread of its own, which may go into other directories and
// namespaces, and is thrown away.
func apart(f func() error) error {
	done := make(chan error, 1)
	go onThread(func() {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			done <- os.NewSyscallError("unshare", err)
			return
		}
		done <- f()
	})
	return <-done
}

// onThread runs f on a thread that ends with it.
func onThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return // still locked
	}
	// The first thread of a process cannot end before the process.
	done := make(chan struct{})
	go func() {
		defer close(done)
		onThread(f)
	}()
	<-done
	runtime.UnlockOSThread()
}

// workspace is where sandboxes have theirs.
const workspace = "/workspace"

// show replaces what a sandbox has at /workspace.
func (t Tools) show(j *Job, ns, store int, lower []int) error {
	if j.Bounds.Size > 0 {
		if err := resize(store, Bounds{j.Bounds.Size, j.Bounds.Files + j.Slack}); err != nil {
			return err
		}
	}
	if err := t.prepare(j, store, lower); err != nil {
		return err
	}
	layers, err := t.layers(j, lower)
	if err != nil {
		return err
	}
	defer closeAll(layers)
	err = apart(func() error {
		if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("setns", err)
		}
		if !j.Bare {
			if err := mount.Leave(workspace); err != nil {
				return err
			}
		}
		if err := t.restack(j, store, layers); err != nil {
			return fmt.Errorf("%s%w", torn, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if j.To != "" {
		// The sandbox has what it should; what cannot be erased only takes room.
		_, _ = erase(store, j.To), erase(store, WorkOf(j.To))
	}
	if j.Bounds.Size > 0 && j.Slack > 0 {
		_ = resize(store, j.Bounds) // what is not erased may not fit
	}
	return nil
}

// restack puts a stack where nothing is. Nobody has its layers mounted any more.
func (t Tools) restack(j *Job, store int, layers []int) error {
	if j.Name != "" {
		if err := t.merge(store, j.Name, j.Stack.Upper, len(layers) == 0); err != nil {
			return err
		}
	}
	tree, err := t.stack(store, j.Stack.Upper, layers)
	if err != nil {
		return err
	}
	defer func() { _ = tree.Close() }()
	return mount.Attach(tree, workspace)
}

// torn begins the error of who has taken a workspace away and put nothing there.
const torn = "the workspace is gone: "

// Torn reports whether a job left a sandbox without its workspace, and why.
func Torn(err error) (why string, is bool) {
	if err == nil {
		return "", false
	}
	return strings.CutPrefix(err.Error(), torn) // it may have come from a spawner
}

func resize(store int, to Bounds) error {
	fd, err := unix.FcntlInt(uintptr(store), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	tree := os.NewFile(uintptr(fd), "store")
	defer func() { _ = tree.Close() }()
	return mount.Tmpfs{Size: to.Size, Files: to.Files}.ResizeTree(tree)
}

// prepare makes the directories of a stack that are not there.
func (t Tools) prepare(j *Job, store int, lower []int) error {
	if len(lower) == 0 {
		return nil
	}
	if err := mkdir(store, WorkOf(j.Stack.Upper)); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	err := mkdir(store, j.Stack.Upper)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err != nil {
		return err
	}
	// What is seen of the topmost directory is the upper one alone.
	from, err := openDir(lower[0], j.Stack.Lower[0].Name)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(from) }()
	to, err := openDir(store, j.Stack.Upper)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(to) }()
	return likeness(from, to, int(j.Owner), t.Become)
}

func mkdir(dir int, name string) error {
	if err := unix.Mkdirat(dir, name, 0o700); err != nil {
		return &os.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return nil
}

// openDir opens a directory for reading.
func openDir(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

const placeFlags = mount.NoSetuid | mount.NoDevices

// stack makes what layers look like, mounted nowhere: with an upper one, or to
// be read only. It needs a thread of its own.
func (t Tools) stack(store int, upper string, layers []int) (*os.File, error) {
	if len(layers) == 0 {
		return mount.Clone(store, upper)
	}
	o := mount.Overlay{Lower: layers, Upper: -1, Work: -1, User: !t.Become, Flags: placeFlags, Proc: t.Proc}
	if upper == "" {
		return o.New()
	}
	var err error
	if o.Upper, err = openDir(store, upper); err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(o.Upper) }()
	if o.Work, err = openDir(store, WorkOf(upper)); err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(o.Work) }()
	return o.New()
}

// layers opens the lower layers of a stack, with their files belonging to the
// sandbox's user.
func (t Tools) layers(j *Job, lower []int) (open []int, err error) {
	for i, l := range j.Stack.Lower {
		fd, err := t.layer(lower[i], l, j.Owner)
		if err != nil {
			closeAll(open)
			return nil, err
		}
		open = append(open, fd)
	}
	return open, nil
}

// layer opens a layer, with its files belonging to the owner.
func (t Tools) layer(store int, l Layer, owner uint32) (int, error) {
	if !t.Become || l.Owner == owner {
		return openDir(store, l.Name)
	}
	same := []userns.Mapping{{Inside: l.Owner, Outside: owner, Count: 1}}
	users, err := userns.New(same, same)
	if err != nil {
		return -1, err
	}
	defer func() { _ = users.Close() }()
	tree, err := mount.Clone(store, l.Name)
	if err != nil {
		return -1, err
	}
	defer func() { _ = tree.Close() }()
	if err := mount.MapUsers(tree, int(users.Fd())); err != nil {
		return -1, err
	}
	return unix.FcntlInt(tree.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// view opens lower layers as one tree, to read.
func (t Tools) view(j *Job, lower []int) (int, error) {
	if len(lower) == 1 {
		return openDir(lower[0], j.Stack.Lower[0].Name)
	}
	same := *j
	same.Stack.Lower = slices.Clone(j.Stack.Lower)
	for i := range same.Stack.Lower {
		same.Stack.Lower[i].Owner = j.Owner // of no matter to who reads
	}
	layers, err := t.layers(&same, lower)
	if err != nil {
		return -1, err
	}
	defer closeAll(layers)
	fd := -1
	err = apart(func() error {
		tree, err := t.stack(-1, "", layers)
		if err != nil {
			return err
		}
		defer func() { _ = tree.Close() }()
		fd, err = openDir(int(tree.Fd()), ".")
		return err
	})
	return fd, err
}

// store makes a file system for layers.
func (t Tools) store(j *Job) (Done, error) {
	owner := int(j.Owner)
	if !t.Become {
		owner = 0
	}
	tree, err := newStore(j.Bounds, j.To, owner)
	if err != nil {
		return Done{}, err
	}
	defer func() { _ = tree.Close() }()
	fd, err := unix.FcntlInt(tree.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return Done{}, os.NewSyscallError("fcntl", err)
	}
	return Done{Files: []int{fd}}, nil
}

// newStore makes a file system in memory with one empty layer.
func newStore(n Bounds, layer string, owner int) (*os.File, error) {
	// The layer itself is a file, too.
	tree, err := mount.Tmpfs{Size: n.Size, Files: n.Files + 1, Mode: 0o700, Flags: placeFlags}.New()
	if err != nil {
		return nil, err
	}
	err = mkdir(int(tree.Fd()), layer)
	if err == nil {
		err = unix.Fchmodat(int(tree.Fd()), layer, 0o755, 0)
	}
	if err == nil && owner != 0 {
		err = unix.Fchownat(int(tree.Fd()), layer, owner, owner, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return nil, errors.Join(err, tree.Close())
	}
	return tree, nil
}

// copy copies what a sandbox sees, all through a pipe: whatever can be written
// down can be copied.
func (t Tools) copy(j *Job, ns, store int) (Done, error) {
	from := -1
	err := apart(func() (err error) {
		if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("setns", err)
		}
		from, err = openDir(unix.AT_FDCWD, workspace)
		return err
	})
	if err != nil {
		return Done{}, err
	}
	defer func() { _ = unix.Close(from) }()
	r, w := io.Pipe()
	sent := make(chan int64, 1)
	go func() {
		n, err := pack(from, w)
		_ = w.CloseWithError(err)
		sent <- n
	}()
	err = t.unpackInto(r, store, j)
	_ = r.CloseWithError(err)
	return Done{Bytes: <-sent}, err
}

func (t Tools) pack(j *Job, out int, lower []int) (Done, error) {
	root, err := t.view(j, lower)
	if err != nil {
		return Done{}, err
	}
	defer func() { _ = unix.Close(root) }()
	n, err := pack(root, descriptor(out))
	return Done{Bytes: n}, err
}

func (t Tools) unpack(j *Job, in, store int) (Done, error) {
	return Done{}, t.unpackInto(descriptor(in), store, j)
}

func (t Tools) unpackInto(r io.Reader, store int, j *Job) error {
	root, err := openDir(store, j.To)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(root) }()
	owner := -1
	if t.Become {
		owner = int(j.Owner)
	}
	return unpack(r, root, owner)
}

// descriptor reads and writes one that is somebody else's to close.
type descriptor int

func (d descriptor) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (d descriptor) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(int(d), b[done:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, os.NewSyscallError("write", err)
		}
		done += n
	}
	return done, nil
}
