package e2bapi

import (
	"context"
	"maps"
	"math"

	"github.com/cove-sandbox/cove"
)

// noPID stands for a program that policy did not let begin: clients want a
// number, and no program has this one.
const noPID = math.MaxInt32

// processCalls are envd's calls about programs, by method and path.
func processCalls() map[string]action {
	const service = "POST /process.Process/"
	return map[string]action{
		service + "Start":       func(c *call) error { return streaming(c, c.start) },
		service + "Connect":     func(c *call) error { return stream(c, c.connect) },
		service + "List":        func(c *call) error { return unary(c, c.listProcesses) },
		service + "SendInput":   func(c *call) error { return unary(c, c.sendInput) },
		service + "StreamInput": func(c *call) error { return clientStream(c, c.streamInput) },
		service + "CloseStdin":  func(c *call) error { return unary(c, c.closeStdin) },
		service + "SendSignal":  func(c *call) error { return unary(c, c.sendSignal) },
		service + "Update":      func(c *call) error { return unary(c, c.update) },
	}
}

func (c *call) processes() cove.Processes { return c.platform.Processes(c.id) }

// start runs a program and tells all that it writes. The deadline of the call is
// that of the program; a client that goes away leaves it running.
func (c *call) start(ctx context.Context, in startRequest, out *streamWriter) error {
	req, err := c.command(in)
	if err != nil {
		return err
	}
	if c.judged(ctx) {
		judgeable(&req, in.Process.Envs)
	}
	t := newTeller(out, req.TTY != nil)
	began := make(chan struct{})
	req.OnOutput = func(chunk cove.Chunk) {
		select {
		case <-began:
			_ = t.output(chunk) // when the client is gone, the program goes on
		case <-ctx.Done():
		}
	}
	info, err := c.processes().Start(ctx, req)
	if err != nil {
		return err
	}
	if info.PID == 0 && info.Result != nil {
		return t.refused(info.Result)
	}
	if err := t.begin(int(info.PID)); err != nil {
		return err
	}
	close(began)
	x, err := c.processes().Wait(ctx, info.PID)
	if err != nil {
		return err
	}
	return t.finish(x)
}

// refused tells of a program that never began.
func (t teller) refused(x *cove.Execution) error {
	if err := t.begin(noPID); err != nil {
		return err
	}
	if err := t.output(cove.Chunk{Stream: cove.Stderr, Data: x.Stderr.Data}); err != nil {
		return err
	}
	return t.finish(x)
}

// command is what the engine is asked to run.
func (c *call) command(in startRequest) (req cove.ExecRequest, err error) {
	if in.Process == nil || in.Process.Cmd == "" {
		return req, cove.InvalidField("process.cmd", "is empty")
	}
	dir, err := inward(in.Process.Cwd)
	if err != nil {
		return req, err
	}
	wall, err := c.timeLeft()
	if err != nil {
		return req, err
	}
	req = cove.ExecRequest{
		Argv: append([]string{in.Process.Cmd}, in.Process.Args...),
		Dir:  dir, Env: environment(in.Process.Envs, dir), Tag: in.Tag,
		KeepStdin: in.Stdin == nil || *in.Stdin,
		Limits:    cove.Limits{Wall: wall},
	}
	if in.PTY != nil {
		size, err := in.PTY.size()
		if err != nil {
			return req, err
		}
		req.TTY = &size
	}
	return req, nil
}

// judgeable gives a request the form that a command policy judges. A command of the SDKs,
// bash -l -c line, becomes its line: a login shell would run profiles first, which no
// policy sees. PWD is left out unless the caller set it, which a policy refuses.
func judgeable(req *cove.ExecRequest, asked map[string]string) {
	if _, set := asked["PWD"]; !set {
		delete(req.Env, "PWD")
	}
	a := req.Argv
	if len(a) == 4 && a[0] == "/bin/bash" && a[1] == "-l" && a[2] == "-c" && a[3] != "" {
		req.Line, req.Argv = a[3], nil
	}
}

// judged reports whether a command policy judges the programs of the sandbox.
func (c *call) judged(ctx context.Context) bool {
	if c.h.cfg.Policy != "" {
		return true
	}
	s, err := c.platform.Sessions().Get(ctx, c.id)
	return err == nil && s.Spec.Policy != "" // otherwise the start itself says what is wrong
}

// homeUser is what E2B's programs are told of their user.
const homeUser = "user"

// environment is that of a program: what E2B's programs find around them, but
// for what the caller has set.
func environment(asked map[string]string, dir string) map[string]string {
	env := map[string]string{"HOME": home, "USER": homeUser, "LOGNAME": homeUser, "PWD": outward(dir)}
	maps.Copy(env, asked)
	return env
}

// process finds a program that runs.
func (c *call) process(ctx context.Context, by selector) (cove.ProcessInfo, error) {
	var found *cove.ProcessInfo
	for info, err := range c.processes().List(ctx) {
		if err != nil {
			return cove.ProcessInfo{}, err
		}
		if info.Running && by.is(info) {
			found = &info // of programs with the same tag, the newest
		}
	}
	if found == nil {
		return cove.ProcessInfo{}, by.missing()
	}
	return *found, nil
}

func (s selector) is(info cove.ProcessInfo) bool {
	if s.PID != nil {
		return *s.PID == int64(info.PID)
	}
	return s.Tag != "" && s.Tag == info.Tag
}

func (s selector) missing() error {
	switch {
	case s.PID != nil:
		return cove.Errorf(cove.NotFound, "process with pid %d not found", *s.PID)
	case s.Tag != "":
		return cove.Errorf(cove.NotFound, "process with tag %.80q not found", s.Tag)
	}
	return cove.InvalidField("process", "names no process; send its pid or its tag")
}

// pid is the number of a program. Only a tag has to be looked up.
func (c *call) pid(ctx context.Context, by selector) (cove.PID, error) {
	if by.PID != nil {
		if *by.PID < 1 || *by.PID > math.MaxInt32 {
			return 0, by.missing()
		}
		return cove.PID(*by.PID), nil
	}
	info, err := c.process(ctx, by)
	return info.PID, err
}

// listProcesses tells what runs.
func (c *call) listProcesses(ctx context.Context, _ empty) (processList, error) {
	list := processList{Processes: []listedProcess{}}
	for info, err := range c.processes().List(ctx) {
		if err != nil {
			return processList{}, err
		}
		if !info.Running {
			continue
		}
		p := listedProcess{PID: int(info.PID), Tag: info.Tag, Config: processConfig{Args: []string{}, Envs: map[string]string{}}}
		if info.Dir != "" {
			p.Config.Cwd = outward(info.Dir)
		}
		if len(info.Argv) > 0 {
			p.Config.Cmd, p.Config.Args = info.Argv[0], append(p.Config.Args, info.Argv[1:]...)
		} else {
			p.Config.Cmd, p.Config.Args = "/bin/bash", []string{"-c", info.Command}
		}
		list.Processes = append(list.Processes, p)
	}
	return list, nil
}

// sendSignal sends a signal to a program; KILL ends all that it started too.
func (c *call) sendSignal(ctx context.Context, in signalRequest) (empty, error) {
	if in.Signal == "" {
		return empty{}, cove.InvalidField("signal", "is unknown; use SIGNAL_SIGTERM or SIGNAL_SIGKILL")
	}
	pid, err := c.pid(ctx, in.Process)
	if err != nil {
		return empty{}, err
	}
	return empty{}, c.processes().Signal(ctx, pid, cove.Signal(in.Signal))
}

// update gives a terminal another size.
func (c *call) update(ctx context.Context, in updateRequest) (empty, error) {
	pid, err := c.pid(ctx, in.Process)
	if err != nil || in.PTY == nil {
		return empty{}, err
	}
	size, err := in.PTY.size()
	if err != nil {
		return empty{}, err
	}
	return empty{}, c.processes().Resize(ctx, pid, size)
}
