package msbtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
)

// Rooted plays virtual machines with what the host's kernel has: a machine is a
// tree, a process table and a network of its own, in which programs are root. Users
// are its own, too, though with the host's numbers, since a bound on a user's
// processes would count those of all machines otherwise. It is as little of a boundary
// as its name says.
type Rooted struct {
	dir    string
	groups *cgroup.Manager

	mu  sync.Mutex
	all map[cove.ID]*rootedBox
}

// NewRooted skips the test where such machines cannot be made.
func NewRooted(t *testing.T) *Rooted {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can play a machine in which programs are root")
	}
	for _, tool := range []string{"nsenter", "mount", "umount", "pivot_root", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the machines of these tests need %s", tool)
		}
	}
	groups, err := cgroup.Open(cgroup.Config{Name: fmt.Sprintf("cove-msb-%d-%s", os.Getpid(), cove.NewID()[20:])})
	if err != nil {
		t.Skipf("the machines of these tests need control groups: %v", err)
	}
	if err := errors.Join(groups.Support().Memory, groups.Support().CPU); err != nil {
		t.Skipf("machines cannot be bounded: %v", err)
	}
	p := &Rooted{dir: t.TempDir(), groups: groups, all: map[cove.ID]*rootedBox{}}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for id := range p.all {
			t.Errorf("machine %s is left", id)
		}
		if err := groups.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// rootedScript makes the tree of a machine and stays, as its first process, until
// its input ends.
const rootedScript = `set -e
mount --make-rprivate /
mount -t tmpfs -o mode=0755 machine "$1"
cd "$1"
mkdir -p proc dev tmp run old var/tmp root
for d in usr bin sbin lib lib64 etc; do
  if [ -L "/$d" ]; then cp -P "/$d" .; elif [ -d "/$d" ]; then mkdir "$d"; mount --rbind "/$d" "$d"; mount -o remount,bind,ro "$d" 2>/dev/null || :; fi
done
mount -t proc proc proc
mount -t tmpfs -o mode=0755 dev dev
for n in null zero full random urandom tty; do : > "dev/$n"; mount --bind "/dev/$n" "dev/$n"; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 shm dev/shm
ip link set lo up
pivot_root . old
cd /
umount -l old
echo up
cat > /dev/null`

// everybody are the users of a machine.
var everybody = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1 << 16}}

// Create implements [cove.Provider].
func (p *Rooted) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	top, err := os.MkdirTemp(p.dir, "machine-*")
	if err != nil {
		return nil, err
	}
	group, err := p.groups.Create(string(id))
	if err != nil {
		return nil, err
	}
	// What the machine itself needs comes on top, as its kernel does.
	if err := group.Set(cgroup.Limits{Memory: int64(spec.Resources.Memory + 48*cove.MiB), CPUs: spec.Resources.CPUs}); err != nil {
		return nil, err
	}
	b := &rootedBox{p: p, id: id, top: top, group: group}
	b.first = exec.Command("sh", "-c", rootedScript, "sh", top)
	b.first.SysProcAttr = &syscall.SysProcAttr{
		UidMappings: everybody, GidMappings: everybody, GidMappingsEnableSetgroups: true,
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	var errs strings.Builder
	b.first.Stderr = &errs
	if b.hold, err = b.first.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.first.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.first.Start(); err != nil {
		return nil, err
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "up\n" {
		return nil, errors.Join(fmt.Errorf("the machine did not come up: %s", errs.String()), b.Destroy(ctx))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[id] = b
	return b, nil
}

// Name implements [cove.Provider].
func (p *Rooted) Name() string { return "rooted" }

// Probe implements [cove.Provider].
func (p *Rooted) Probe(context.Context) (cove.Capabilities, error) {
	return cove.Capabilities{Ready: true}, nil
}

// Attach implements [cove.Provider].
func (p *Rooted) Attach(context.Context, cove.ID) (cove.Sandbox, error) {
	return nil, cove.Errorf(cove.NotFound, "machines are not attached")
}

// List implements [cove.Provider].
func (p *Rooted) List(context.Context) iter.Seq2[cove.ID, error] {
	return func(func(cove.ID, error) bool) {}
}

// Remove implements [cove.Provider].
func (p *Rooted) Remove(context.Context, cove.ID) error { return nil }

// Close implements [cove.Provider].
func (p *Rooted) Close() error { return nil }

// rootedBox is one machine.
type rootedBox struct {
	cove.Sandbox // what machines of the tests do not do

	p     *Rooted
	id    cove.ID
	top   string
	group *cgroup.Group
	first *exec.Cmd
	hold  io.Closer // when it is closed, as when the test dies, the machine ends
	once  sync.Once
	err   error
}

func (b *rootedBox) ID() cove.ID { return b.id }

// Destroy ends the first process, with which the kernel ends all others.
func (b *rootedBox) Destroy(ctx context.Context) error {
	b.once.Do(func() {
		_ = b.first.Process.Kill()
		_ = b.first.Wait()
		b.err = errors.Join(b.group.Kill(ctx), b.group.Remove(ctx), os.Remove(b.top))
		b.p.mu.Lock()
		defer b.p.mu.Unlock()
		delete(b.p.all, b.id)
	})
	return b.err
}

// enterScript puts a program into the machine's control groups, whose files follow
// the third descriptor, and into its namespaces.
const enterScript = `n=$1; pid=$2; shift 2
while [ $n -gt 0 ]; do n=$((n-1)); eval "echo 0 >&$((n+3))"; eval "exec $((n+3))>&-"; done
exec nsenter -t "$pid" -U -m -p -n -i -u -r -w -- "$@"`

// Start implements [cove.Sandbox].
func (b *rootedBox) Start(_ context.Context, c cove.Command) (cove.Process, error) {
	tasks, err := b.group.Tasks()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", append([]string{"-c", enterScript, "sh", fmt.Sprint(len(tasks)), fmt.Sprint(b.first.Process.Pid)}, c.Argv...)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles, cmd.WaitDelay = c.Stdout, c.Stderr, tasks, 100*time.Millisecond
	if c.Stdin != nil {
		in, err := cmd.StdinPipe() // with c.Stdin itself, Wait would wait for its writer
		if err != nil {
			return nil, err
		}
		defer func() {
			go func() {
				_, _ = io.Copy(in, c.Stdin)
				_ = in.Close()
			}()
		}()
	}
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if fd, ok := b.group.FD(); ok {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
	}
	err = cmd.Start()
	for _, f := range tasks {
		_ = f.Close()
	}
	if err != nil {
		return nil, err
	}
	p := &rootedProgram{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	return p, nil
}

type rootedProgram struct {
	cove.Process

	cmd  *exec.Cmd
	done chan struct{}
}

func (p *rootedProgram) Wait(ctx context.Context) (cove.Result, error) {
	select {
	case <-p.done:
		code := p.cmd.ProcessState.ExitCode()
		return cove.Result{ExitCode: code}, nil
	case <-ctx.Done():
		return cove.Result{}, ctx.Err()
	}
}

func (p *rootedProgram) Kill(context.Context) error {
	_ = p.cmd.Process.Kill()
	return nil
}
