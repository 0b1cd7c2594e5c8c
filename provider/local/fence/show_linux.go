package fence

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/linux/mount"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

// workspace is where sandboxes have theirs.
const workspace = "/workspace"

// show replaces what a sandbox has at /workspace.
func (t Tools) show(j *Job, ns, store int, lower []int) error {
	if j.Bounds.Size > 0 && !roomy(store) {
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
	if err := j.promise(store); err != nil {
		return err
	}
	if err := apart(func() error { return t.replace(j, ns, store, layers) }); err != nil {
		if _, is := Torn(err); !is && j.Name != "" {
			forgive(store, j.Name)
		}
		return err
	}
	j.tidy(store)
	return nil
}

// replace does so in the namespace of the sandbox.
func (t Tools) replace(j *Job, ns, store int, layers []int) error {
	if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("setns", err)
	}
	if j.Bare {
		return t.restack(j, store, layers, false)
	}
	if err := mount.Leave(workspace); err != nil {
		return err
	}
	if err := t.restack(j, store, layers, mount.Mounted(workspace)); err != nil {
		return fmt.Errorf("%s%w", torn, err)
	}
	return nil
}

// tidy removes what is of no use any more. The sandbox has what it should; what cannot
// be removed only takes room.
func (j *Job) tidy(store int) {
	if j.Bare {
		forgive(store, j.Stack.Upper) // which could not be merged, and is there again
	}
	if j.To != "" {
		_, _ = erase(store, j.To), eraseWork(store, j.To)
	}
	if j.Bounds.Size > 0 && j.Slack > 0 {
		_ = resize(store, j.Bounds) // what is not erased may not fit
	}
}

// promise says that a layer will be merged, if one will.
func (j *Job) promise(store int) error {
	if j.Name == "" {
		return nil
	}
	if err := mkdir(store, PromiseOf(j.Name)); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// forgive takes the promise back that a layer will be merged.
func forgive(store int, layer string) {
	_ = unix.Unlinkat(store, PromiseOf(layer), unix.AT_REMOVEDIR)
}

// enough is for more files than a change of layers makes.
const enough = 16

// roomy reports whether a store has room for files that come and go with a change, so
// that its bounds need not be wider.
func roomy(store int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(store, &st) == nil && st.Ffree >= enough
}

// restack puts a stack over what is there, unless it is the stack already. Nobody
// uses its layers.
func (t Tools) restack(j *Job, store int, layers []int, already bool) error {
	if j.Name != "" {
		if err := t.merge(store, j.Name, j.Stack.Upper, len(layers) == 0); err != nil {
			return err
		}
	}
	if already {
		return nil
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
	o := mount.Overlay{Lower: layers, Upper: -1, Work: -1, User: !t.Become, Source: upper, Flags: placeFlags, Proc: t.Proc}
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
	mapped := map[uint32]*os.File{} // to make one takes longer than all else here
	defer func() {
		for _, users := range mapped {
			_ = users.Close()
		}
		if err != nil {
			closeAll(open)
			open = nil
		}
	}()
	for i, l := range j.Stack.Lower {
		var fd int
		if !t.Become || l.Owner == j.Owner {
			fd, err = openDir(lower[i], l.Name)
		} else {
			if mapped[l.Owner] == nil {
				same := []userns.Mapping{{Inside: l.Owner, Outside: j.Owner, Count: 1}}
				users, err := userns.New(same, same)
				if err != nil {
					return open, err
				}
				mapped[l.Owner] = users
			}
			fd, err = owned(lower[i], l.Name, mapped[l.Owner])
		}
		if err != nil {
			return open, err
		}
		open = append(open, fd)
	}
	return open, nil
}

// owned opens a layer with its files belonging to whom a user namespace maps
// their owner to.
func owned(store int, name string, users *os.File) (int, error) {
	tree, err := mount.Clone(store, name)
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
