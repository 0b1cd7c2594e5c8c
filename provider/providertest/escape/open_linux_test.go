package escape_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
)

// open is a provider that isolates nothing and says that it does: programs
// are processes of the host. They belong to an ordinary user, and end with the
// test.
type open struct {
	cove.Provider

	t    *testing.T
	caps func(*cove.Capabilities)
	run  func(cmd cove.Command, c *exec.Cmd) // what differs from an open door

	mu    sync.Mutex
	boxes int
}

func (p *open) Name() string { return "open" }
func (p *open) Close() error { return nil }

func (p *open) Probe(context.Context) (cove.Capabilities, error) {
	c := cove.Capabilities{
		Ready: true,
		Isolation: cove.Isolation{
			Boundary: cove.BoundaryNamespaces, Network: cove.Hard, Memory: cove.Hard, CPU: cove.Hard, PIDs: cove.Hard, Disk: cove.Hard, Files: cove.Hard,
		},
		Workspaces: map[cove.WorkspaceKind]cove.Quota{
			cove.WorkspaceMemory: {Bytes: cove.Hard, Files: cove.Hard}, cove.WorkspaceDisk: {Bytes: cove.Hard, Files: cove.Hard},
		},
		Volumes:  true,
		Networks: []cove.NetworkMode{cove.NetworkNone}, Templates: []string{"base"},
	}
	if p.caps != nil {
		p.caps(&c)
	}
	return c, nil
}

const nobody = 65534

// boxVariable marks the processes of a sandbox, so that all can be found.
const boxVariable = "COVE_OPEN_BOX"

func (p *open) Create(_ context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	dir, err := os.MkdirTemp("", "cove-open-*")
	if err != nil {
		return nil, err
	}
	b := &openBox{id: id, p: p, dir: dir, volumes: spec.Volumes}
	p.t.Cleanup(func() { _ = b.Destroy(context.Background()) })
	if os.Getuid() == 0 {
		err = errors.Join(os.Chown(dir, nobody, nobody), os.Chmod(dir, 0o755))
	}
	p.mu.Lock()
	p.boxes++
	p.mu.Unlock()
	return b, err
}

type openBox struct {
	id   cove.ID
	p    *open
	dir  string
	once sync.Once

	volumes []cove.Volume
}

// shown puts the paths of the host in the place of volumes.
func shown(volumes []cove.Volume, text string) string {
	for _, v := range volumes {
		text = strings.ReplaceAll(text, v.Target, v.Source)
	}
	return text
}

func (b *openBox) ID() cove.ID                               { return b.id }
func (b *openBox) Isolation() cove.Isolation                 { return cove.Isolation{} }
func (b *openBox) Files() cove.Files                         { return openFiles{dir: b.dir, volumes: b.volumes} }
func (b *openBox) Usage(context.Context) (cove.Usage, error) { return cove.Usage{}, nil }

// Destroy ends every process of the sandbox, by its number.
func (b *openBox) Destroy(context.Context) error {
	b.once.Do(func() {
		b.p.mu.Lock()
		b.p.boxes--
		b.p.mu.Unlock()
		for left := true; left; { // a process may start another while we look
			left = false
			names, _ := filepath.Glob("/proc/[0-9]*/environ")
			for _, name := range names {
				text, _ := os.ReadFile(name)
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
				if pid != os.Getpid() && bytes.Contains(text, []byte(boxVariable+"="+string(b.id))) {
					left = syscall.Kill(pid, syscall.SIGKILL) == nil || left
				}
			}
		}
		if err := os.RemoveAll(b.dir); err != nil {
			b.p.t.Error(err)
		}
	})
	return nil
}

func (b *openBox) Start(_ context.Context, cmd cove.Command) (cove.Process, error) {
	argv := append([]string(nil), cmd.Argv...)
	for i := range argv {
		argv[i] = shown(b.volumes, argv[i])
	}
	argv[0] = strings.Replace(argv[0], cove.WorkspacePath+"/", b.dir+"/", 1)
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Stdout, c.Stderr = b.dir, cmd.Stdout, cmd.Stderr
	// Whoever reads the output must not wait for children that hold it open.
	c.WaitDelay = 100_000_000
	c.Env = append(os.Environ(), boxVariable+"="+string(b.id))
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if b.p.run != nil {
		b.p.run(cmd, c)
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &openProcess{c: c, done: make(chan struct{})}
	go func() {
		_ = c.Wait()
		close(p.done)
	}()
	return p, nil
}

type openProcess struct {
	c    *exec.Cmd
	done chan struct{}
}

func (p *openProcess) Wait(ctx context.Context) (cove.Result, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		return cove.Result{}, ctx.Err()
	}
	s, _ := p.c.ProcessState.Sys().(syscall.WaitStatus)
	if s.Signaled() {
		name := map[syscall.Signal]cove.Signal{syscall.SIGSYS: "SYS", syscall.SIGKILL: "KILL"}[s.Signal()]
		return cove.Result{Outcome: cove.Signaled, Signal: name, ExitCode: 128 + int(s.Signal())}, nil
	}
	return cove.Result{Outcome: cove.Exited, ExitCode: s.ExitStatus()}, nil
}

func (p *openProcess) Signal(context.Context, cove.Signal) error {
	return p.c.Process.Signal(syscall.SIGCONT)
}

// Kill ends the program and nothing that it started.
func (p *openProcess) Kill(context.Context) error {
	_ = p.c.Process.Kill()
	<-p.done
	return nil
}
func (p *openProcess) Resize(context.Context, cove.WindowSize) error { return nil }

// openFiles are the host's own.
type openFiles struct {
	cove.Files

	dir     string
	volumes []cove.Volume
}

func (f openFiles) name(name string) string {
	if filepath.IsAbs(name) {
		return strings.Replace(shown(f.volumes, name), cove.WorkspacePath+"/", f.dir+"/", 1)
	}
	return filepath.Join(f.dir, name)
}

func (f openFiles) Write(_ context.Context, name string, r io.Reader, mode fs.FileMode) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return os.WriteFile(f.name(name), content, mode)
}

func (f openFiles) Read(_ context.Context, name string, _, _ int64) (io.ReadCloser, error) {
	return os.Open(f.name(name))
}
func (f openFiles) Move(context.Context, string, string) error { return nil }
func (f openFiles) Remove(context.Context, string) error       { return nil }
func (f openFiles) List(context.Context, string, int) iter.Seq2[cove.FileInfo, error] {
	return func(func(cove.FileInfo, error) bool) {}
}
func (f openFiles) Unpack(context.Context, string, io.Reader) error { return nil }
