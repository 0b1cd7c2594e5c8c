package fake

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
)

// start runs a command. Only true and false are so quick that they are over
// when start returns: the cost of an engine is measured with them.
func (m *machine) start(cmd cove.Command) (cove.Process, error) {
	if err := checkArgv(cmd.Argv); err != nil {
		return nil, err
	}
	if err := checkEnv(cmd.Env); err != nil {
		return nil, err
	}
	if err := checkKeep(cmd); err != nil {
		return nil, err
	}
	if j, err := m.instant(cmd); err != nil {
		return nil, err
	} else if j != nil {
		return j, nil
	}
	dir, err := m.workdir(cmd.Dir)
	if err != nil {
		return nil, err
	}
	j := &job{
		m: m, cmd: cmd, begun: time.Now(), out: newOutput(cmd),
		over: make(chan struct{}), done: make(chan struct{}),
	}
	j.sink.Store(&sink{cmd.Stdout, cmd.Stderr})
	if cmd.Stdin != nil {
		broke := func() { j.m.killJob(j, cove.Killed) }
		if cmd.Keep != "" {
			broke = nil
		}
		j.in = newIntake(j.over, broke)
	}
	env := m.environment()
	env["PWD"] = dir
	if cmd.TTY != nil {
		j.tty = newTTY(j, *cmd.TTY)
		env["TERM"] = "xterm"
	}
	maps.Copy(env, cmd.Env)

	if err := m.book(j); err != nil {
		return nil, err
	}
	fds := j.streams()
	p, err := m.fork(j, nil, fds)
	if err != nil {
		fds.release()
		m.unbook(cmd.Keep)
		return nil, startError(err)
	}
	if j.in != nil {
		j.in.take(cmd.Stdin)
		if j.tty != nil {
			go j.tty.typed(j.in)
		}
	}
	j.limit(cmd.Limits.Wall)
	go j.run(m.lookup, newCall(p, cmd.Argv, env, dir))
	return j, nil
}

// streams are the caller's ends, as descriptors 0, 1 and 2.
func (j *job) streams() table {
	if j.tty != nil {
		f := newFile(j.tty)
		return table{f, f.retain(), f.retain()}
	}
	in := newFile(null{})
	if j.in != nil {
		in = newFile(newInlet(j.in))
	}
	return table{in, newFile(&outlet{j: j}), newFile(&outlet{j: j, stderr: true})}
}

func checkEnv(env map[string]string) error {
	for k, v := range env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.Contains(v, "\x00") {
			return cove.InvalidField("env", "%.40q cannot be set; names have no = and nothing has a NUL", k)
		}
	}
	return nil
}

func checkArgv(argv []string) error {
	if len(argv) == 0 || argv[0] == "" {
		return cove.InvalidField("command", "is empty")
	}
	for _, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			return cove.InvalidField("command", "holds a NUL byte")
		}
	}
	return nil
}

func startError(err error) error {
	if errors.Is(err, errDead) {
		return cove.Errorf(cove.NotFound, "the sandbox is gone")
	}
	return cove.Wrap(cove.Exhausted, err, "the sandbox has no room for another process; end some first")
}

// workdir resolves the directory that a program starts in.
func (m *machine) workdir(name string) (string, error) {
	if name == "" {
		return cove.WorkspacePath, nil
	}
	var at string
	err := m.tree.do(func() error {
		fi, p, err := m.tree.stat(absolute(cove.WorkspacePath, name), true)
		if err == nil && !fi.IsDir() {
			err = syscall.ENOTDIR
		}
		at = p.abs
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", cove.InvalidField("workdir", "%.200q is not a directory of the sandbox", name)
	}
	return at, fileError(name, err)
}

// absolute makes a name start at the root and end without a slash. It leaves
// dots alone: what they mean depends on links.
func absolute(dir, name string) string {
	if !path.IsAbs(name) {
		name = dir + "/" + name
	}
	if name = strings.TrimRight(name, "/"); name == "" {
		return "/"
	}
	return name
}

// closed is for what is over before anybody can wait for it.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// instant runs a program that does nothing without making a process. It gives
// nil where the long way must be taken.
func (m *machine) instant(cmd cove.Command) (*job, error) {
	code := 0
	switch cmd.Argv[0] {
	case "true":
	case "false":
		code = 1
	default:
		return nil, nil
	}
	if cmd.TTY != nil || cmd.Keep != "" || cmd.Dir != "" || m.facts.Load().env["PATH"] != defaultPath || cmd.Env["PATH"] != "" {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.down:
		return nil, startError(errDead)
	case len(m.procs) >= m.maxPIDs:
		return nil, startError(syscall.EAGAIN)
	case m.gate != nil:
		return nil, nil
	}
	m.cpu += stepCPU
	return &job{m: m, done: closed, result: cove.Result{
		Outcome: cove.Exited, ExitCode: code, Wall: stepCPU, CPU: stepCPU, PeakMemory: processMemory,
	}}, nil
}

// Start implements [cove.Sandbox].
func (s *sandbox) Start(ctx context.Context, cmd cove.Command) (cove.Process, error) {
	if err := s.ready(ctx, "start"); err != nil {
		return nil, err
	}
	if cmd.TTY != nil && !s.provider.has(cove.PowerTerminal) {
		return nil, cove.Errorf(cove.Unsupported, "provider %s has no terminals", s.provider.Name())
	}
	if !s.provider.has(cove.PowerResume) {
		cmd.Keep, cmd.Note = "", nil
	}
	return s.machine.start(cmd)
}
