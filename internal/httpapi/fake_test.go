package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// made is one call of a method, with what it got and gave.
type made struct {
	Verb    cove.Verb
	Args    []any
	Results []any
}

// fake is a platform that writes down what it is asked and answers with filled
// values. Hooks take the place of single methods.
type fake struct {
	mu    sync.Mutex
	calls []made // guarded by mu
	fail  error  // what every method answers, if set
	count int    // elements in every list; 0 means 3

	size cove.Bytes // of every file; 0: one that is none

	exec    func(ctx context.Context, req cove.ExecRequest) (*cove.Execution, error)
	open    func(ctx context.Context, req cove.OpenRequest) (*cove.Session, error)
	connect func(ctx context.Context, pid cove.PID, offset int64) iter.Seq2[cove.Chunk, error]
	wait    func(ctx context.Context, pid cove.PID) (*cove.Execution, error)
	write   func(ctx context.Context, r io.Reader) error
	read    func(offset, length int64) (io.ReadCloser, error)
	dial    func() (net.Conn, error)
	watch   func(ctx context.Context) iter.Seq2[cove.Change, error]
	input   func(data []byte, eof bool) error
	run     func(ctx context.Context, req cove.CodeRequest) (*cove.CodeResult, error)
	events  func(ctx context.Context, f cove.EventFilter) iter.Seq2[cove.Event, error]
	start   func(ctx context.Context, req cove.ExecRequest) (*cove.ProcessInfo, error)
	signal  func(sig cove.Signal) error
	fork    func() (*cove.Session, error)
	answer  func(ctx context.Context, id cove.ID) (*cove.Run, error)
	gone    func(id cove.ID) error
	runs    func(f cove.RunFilter) iter.Seq2[*cove.Run, error]
	chat    func(ctx context.Context, req cove.ChatRequest) (*cove.ChatAnswer, error)
}

// note writes a call down and says how it ends.
func (f *fake) note(verb cove.Verb, args []any, results ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, made{verb, args, results})
	return f.fail
}

func (f *fake) seen(verb cove.Verb) []made {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []made
	for _, m := range f.calls {
		if m.Verb == verb {
			list = append(list, m)
		}
	}
	return list
}

func args(list ...any) []any { return list }

// give is a method that answers with one filled value.
func give[T any](f *fake, verb cove.Verb, args []any) (*T, error) {
	v := filled[T]()
	if err := f.note(verb, args, &v); err != nil {
		return nil, err
	}
	return &v, nil
}

// yields is a method that answers with a list. Each element gets a number.
func yields[T any](f *fake, verb cove.Verb, args []any, number func(*T, int)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := f.count
		if n == 0 {
			n = 3
		}
		var list []T
		for i := range n {
			v := filled[T]()
			number(&v, i+1)
			list = append(list, v)
		}
		if err := f.note(verb, args, list); err != nil {
			var zero T
			yield(zero, err)
			return
		}
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// pointers makes a list of values one of pointers.
func pointers[T any](list iter.Seq2[T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for v, err := range list {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&v, nil) {
				return
			}
		}
	}
}

func (f *fake) Sessions() cove.Sessions             { return fakeSessions{f} }
func (f *fake) Processes(id cove.ID) cove.Processes { return fakeProcesses{f, id} }
func (f *fake) Files(id cove.ID) cove.Files         { return fakeFiles{f, id} }
func (f *fake) Contexts(id cove.ID) cove.Contexts   { return fakeContexts{f, id} }
func (f *fake) Ports(id cove.ID) cove.Ports         { return fakePorts{f, id} }
func (f *fake) Snapshots() cove.Snapshots           { return fakeSnapshots{f} }
func (f *fake) Runs() cove.Runs                     { return fakeRuns{f} }
func (f *fake) Admin() cove.Admin                   { return fakeAdmin{f} }
func numbered(n int) cove.ID                        { return cove.ID(fmt.Sprintf("%06d", n)) }

type fakeSessions struct{ *fake }

func (s fakeSessions) Open(ctx context.Context, req cove.OpenRequest) (*cove.Session, error) {
	if s.open != nil {
		return s.open(ctx, req)
	}
	if req.OnQueue != nil {
		req.OnQueue(2)
		req.OnQueue(1)
	}
	req.OnQueue = nil
	return give[cove.Session](s.fake, cove.SessionOpen, args(req))
}

func (s fakeSessions) Get(_ context.Context, id cove.ID) (*cove.Session, error) {
	return give[cove.Session](s.fake, cove.SessionGet, args(id))
}

func (s fakeSessions) List(_ context.Context, f cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	return pointers(limited(f.After, f.Limit, yields(s.fake, cove.SessionList, args(f), func(v *cove.Session, n int) { v.ID = numbered(n) }),
		func(v cove.Session) cove.ID { return v.ID }))
}

// limited is a list that begins after a cursor and has a bound.
func limited[T any, C string | cove.ID | int64](cursor C, limit int, list iter.Seq2[T, error], key func(T) C) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for v, err := range list {
			if err == nil && key(v) <= cursor {
				continue
			}
			if n++; limit > 0 && n > limit || !yield(v, err) {
				return
			}
		}
	}
}

func (s fakeSessions) Renew(_ context.Context, id cove.ID, d time.Duration) (*cove.Session, error) {
	return give[cove.Session](s.fake, cove.SessionRenew, args(id, d))
}

func (s fakeSessions) Stop(_ context.Context, id cove.ID) (*cove.Session, error) {
	return give[cove.Session](s.fake, cove.SessionStop, args(id))
}

func (s fakeSessions) Start(_ context.Context, id cove.ID) (*cove.Session, error) {
	return give[cove.Session](s.fake, cove.SessionStart, args(id))
}

func (s fakeSessions) Close(_ context.Context, id cove.ID, keep bool) (cove.ID, error) {
	return "kept", s.note(cove.SessionClose, args(id, keep), cove.ID("kept"))
}

func (s fakeSessions) Usage(_ context.Context, id cove.ID) (cove.Usage, error) {
	u := filled[cove.Usage]()
	return u, s.note(cove.SessionUsage, args(id), u)
}

type fakeProcesses struct {
	*fake
	id cove.ID
}

// plainExec is a request as it can be compared: with its input as text.
func plainExec(req cove.ExecRequest) cove.ExecRequest {
	req.OnOutput = nil
	return req
}

func drained(r io.Reader) string {
	if r == nil {
		return ""
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(data)
}

func (p fakeProcesses) Exec(ctx context.Context, req cove.ExecRequest) (*cove.Execution, error) {
	if p.exec != nil {
		return p.exec(ctx, req)
	}
	stdin := drained(req.Stdin)
	req.Stdin = nil
	if req.OnOutput != nil && p.fail == nil {
		req.OnOutput(cove.Chunk{Stream: cove.Stdout, Offset: 0, Data: []byte("out")})
		req.OnOutput(cove.Chunk{Stream: cove.Stderr, Offset: 3, Data: []byte("err\xff")})
	}
	return give[cove.Execution](p.fake, cove.ProcessExec, args(p.id, plainExec(req), stdin))
}

func (p fakeProcesses) Start(ctx context.Context, req cove.ExecRequest) (*cove.ProcessInfo, error) {
	if p.start != nil {
		return p.start(ctx, req)
	}
	stdin := drained(req.Stdin)
	req.Stdin = nil
	return give[cove.ProcessInfo](p.fake, cove.ProcessStart, args(p.id, plainExec(req), stdin))
}

func (p fakeProcesses) List(context.Context) iter.Seq2[cove.ProcessInfo, error] {
	return yields(p.fake, cove.ProcessList, args(p.id), func(v *cove.ProcessInfo, n int) { v.PID = cove.PID(n) })
}

func (p fakeProcesses) Connect(ctx context.Context, pid cove.PID, offset int64) iter.Seq2[cove.Chunk, error] {
	if p.connect != nil {
		return p.connect(ctx, pid, offset)
	}
	return yields(p.fake, cove.ProcessConnect, args(p.id, pid, offset), func(v *cove.Chunk, n int) {
		v.Stream = cove.Stderr
		if n%2 == 0 {
			v.Stream = cove.Stdout
		}
	})
}

func (p fakeProcesses) Wait(ctx context.Context, pid cove.PID) (*cove.Execution, error) {
	if p.wait != nil {
		return p.wait(ctx, pid)
	}
	return give[cove.Execution](p.fake, cove.ProcessWait, args(p.id, pid))
}

func (p fakeProcesses) Input(_ context.Context, pid cove.PID, data []byte, eof bool) error {
	if p.input != nil {
		return p.input(data, eof)
	}
	return p.note(cove.ProcessInput, args(p.id, pid, string(data), eof))
}

func (p fakeProcesses) Signal(_ context.Context, pid cove.PID, sig cove.Signal) error {
	if p.signal != nil {
		return p.signal(sig)
	}
	return p.note(cove.ProcessSignal, args(p.id, pid, sig))
}

func (p fakeProcesses) Resize(_ context.Context, pid cove.PID, size cove.WindowSize) error {
	return p.note(cove.ProcessResize, args(p.id, pid, size))
}

func (p fakeProcesses) Output(_ context.Context, id cove.OutputID, r cove.OutputRange) (*cove.OutputPage, error) {
	return give[cove.OutputPage](p.fake, cove.ProcessOutput, args(p.id, id, r))
}

type fakeContexts struct {
	*fake
	id cove.ID
}

func (c fakeContexts) Run(ctx context.Context, req cove.CodeRequest) (*cove.CodeResult, error) {
	if c.run != nil {
		return c.run(ctx, req)
	}
	req.OnOutput = nil
	return give[cove.CodeResult](c.fake, cove.ContextRun, args(c.id, req))
}

func (c fakeContexts) Open(_ context.Context, spec cove.ContextSpec) (*cove.CodeContext, error) {
	return give[cove.CodeContext](c.fake, cove.ContextOpen, args(c.id, spec))
}

func (c fakeContexts) List(context.Context) iter.Seq2[cove.CodeContext, error] {
	return yields(c.fake, cove.ContextList, args(c.id), func(v *cove.CodeContext, n int) { v.Name = string(numbered(n)) })
}

func (c fakeContexts) Restart(_ context.Context, name string) error {
	return c.note(cove.ContextRestart, args(c.id, name))
}

func (c fakeContexts) Interrupt(_ context.Context, name string) error {
	return c.note(cove.ContextInterrupt, args(c.id, name))
}

func (c fakeContexts) Close(_ context.Context, name string) error {
	return c.note(cove.ContextClose, args(c.id, name))
}

func (c fakeContexts) Analyze(_ context.Context, req cove.AnalyzeRequest) (*cove.CodeAnalysis, error) {
	return give[cove.CodeAnalysis](c.fake, cove.ContextAnalyze, args(c.id, req))
}

type fakePorts struct {
	*fake
	id cove.ID
}

func (p fakePorts) Dial(_ context.Context, port int) (net.Conn, error) {
	if err := p.note(cove.PortDial, args(p.id, port)); err != nil {
		return nil, err
	}
	if p.dial != nil {
		return p.dial()
	}
	inside, far := net.Pipe()
	go func() {
		defer far.Close()
		_, _ = io.WriteString(far, "hello from inside")
	}()
	return inside, nil
}

type fakeSnapshots struct{ *fake }

func (s fakeSnapshots) Pause(_ context.Context, id cove.ID) (*cove.Session, error) {
	return give[cove.Session](s.fake, cove.SnapshotPause, args(id))
}

func (s fakeSnapshots) Resume(_ context.Context, id cove.ID) (*cove.Session, error) {
	return give[cove.Session](s.fake, cove.SnapshotResume, args(id))
}

func (s fakeSnapshots) Snapshot(_ context.Context, id cove.ID, req cove.SnapshotRequest) (*cove.Snapshot, error) {
	return give[cove.Snapshot](s.fake, cove.SnapshotSnapshot, args(id, req))
}

func (s fakeSnapshots) Fork(_ context.Context, id cove.ID, as cove.ForkRequest) (*cove.Session, error) {
	if s.fork != nil {
		return s.fork()
	}
	return give[cove.Session](s.fake, cove.SnapshotFork, args(id, as))
}

func (s fakeSnapshots) List(_ context.Context, f cove.SnapshotFilter) iter.Seq2[*cove.Snapshot, error] {
	return pointers(limited(f.After, f.Limit, yields(s.fake, cove.SnapshotList, args(f), func(v *cove.Snapshot, n int) { v.ID = numbered(n) }),
		func(v cove.Snapshot) cove.ID { return v.ID }))
}

func (s fakeSnapshots) Delete(_ context.Context, id cove.ID) error {
	return s.note(cove.SnapshotDelete, args(id))
}

type fakeRuns struct{ *fake }

func (r fakeRuns) Submit(_ context.Context, req cove.RunRequest) (*cove.Run, error) {
	run, err := give[cove.Run](r.fake, cove.RunSubmit, args(req))
	if err == nil {
		run.Answer = nil // it has only begun
	}
	return run, err
}

func (r fakeRuns) Get(_ context.Context, id cove.ID) (*cove.Run, error) {
	return give[cove.Run](r.fake, cove.RunGet, args(id))
}

func (r fakeRuns) Wait(ctx context.Context, id cove.ID) (*cove.Run, error) {
	if r.answer != nil {
		return r.answer(ctx, id)
	}
	return give[cove.Run](r.fake, cove.RunWait, args(id))
}

func (r fakeRuns) Delete(_ context.Context, id cove.ID) error {
	if r.gone != nil {
		return r.gone(id)
	}
	return r.note(cove.RunDelete, args(id))
}

func (r fakeRuns) Analyze(_ context.Context, req cove.RunRequest) (*cove.RunDecision, error) {
	return give[cove.RunDecision](r.fake, cove.RunAnalyze, args(req))
}

func (r fakeRuns) List(_ context.Context, f cove.RunFilter) iter.Seq2[*cove.Run, error] {
	if r.runs != nil {
		return r.runs(f)
	}
	return pointers(limited(f.After, f.Limit, yields(r.fake, cove.RunList, args(f), func(v *cove.Run, n int) { v.ID = numbered(n) }),
		func(v cove.Run) cove.ID { return v.ID }))
}

type fakeAdmin struct{ *fake }

func (a fakeAdmin) CreateKey(_ context.Context, req cove.KeyRequest) (*cove.Key, string, error) {
	k := filled[cove.Key]()
	return &k, "cove_secret", a.note(cove.AdminCreateKey, args(req), &k, "cove_secret")
}

func (a fakeAdmin) Keys(context.Context) iter.Seq2[*cove.Key, error] {
	return pointers(yields(a.fake, cove.AdminKeys, nil, func(v *cove.Key, n int) { v.ID = numbered(n) }))
}

func (a fakeAdmin) RevokeKey(_ context.Context, id cove.ID) error {
	return a.note(cove.AdminRevokeKey, args(id))
}

func (a fakeAdmin) Tenant(_ context.Context, name string) (*cove.TenantReport, error) {
	return give[cove.TenantReport](a.fake, cove.AdminTenant, args(name))
}

func (a fakeAdmin) SetTenant(_ context.Context, t cove.Tenant) error {
	return a.note(cove.AdminSetTenant, args(t))
}

func (a fakeAdmin) Stats(context.Context) (*cove.Stats, error) {
	return give[cove.Stats](a.fake, cove.AdminStats, nil)
}

func (a fakeAdmin) Tasks(context.Context) ([]cove.TaskStatus, error) {
	tasks := named()
	return tasks, a.note(cove.AdminTasks, nil, tasks)
}

func (a fakeAdmin) ControlTask(_ context.Context, name string, do cove.TaskVerb) ([]cove.TaskStatus, error) {
	tasks := named()
	return tasks, a.note(cove.AdminControlTask, args(name, do), tasks)
}

func (a fakeAdmin) Events(ctx context.Context, f cove.EventFilter) iter.Seq2[cove.Event, error] {
	if a.events != nil {
		return a.events(ctx, f)
	}
	return limited(f.After, f.Limit, yields(a.fake, cove.AdminEvents, args(f), func(v *cove.Event, n int) { v.Seq = int64(n) }),
		func(v cove.Event) int64 { return v.Seq })
}

func (a fakeAdmin) Doctor(context.Context) ([]cove.ProviderReport, error) {
	reports := filled[[]cove.ProviderReport]()
	return reports, a.note(cove.AdminDoctor, nil, reports)
}

// named are tasks in the order of their names, in which they come back.
func named() []cove.TaskStatus {
	tasks := filled[[]cove.TaskStatus]()
	tasks[0].Name, tasks[1].Name = "expiry", "orphans"
	return tasks
}
