package cluster

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"net"
	"time"

	"github.com/cove-sandbox/cove"
)

// As returns the platform of the whole cluster as p sees it, and of others where p or
// a session belongs there. Who belongs to a region that cannot be called is answered
// nothing else: what is his must not come to be here.
func (m *Member) As(p cove.Principal) cove.Platform {
	v := view{m: m, p: tenanted(p)}
	if r := m.regions.ofTenant(v.p.Tenant); r != nil {
		abroad, err := v.abroad(r)
		if err != nil {
			return refusing(err)
		}
		return abroad
	}
	return v
}

// Home returns the platform of this cluster alone as p sees it: for other clusters.
func (m *Member) Home(p cove.Principal) cove.Platform {
	return view{m: m, p: tenanted(p), home: true}
}

// Settled returns the platform of this cluster alone as p sees it, which refuses what
// belongs to another one: for clients that come without a key later, and so cannot be
// handed on.
func (m *Member) Settled(p cove.Principal) cove.Platform {
	p = tenanted(p)
	if r := m.regions.ofTenant(p.Tenant); r != nil {
		return refusing(notHere("what this tenant does is done", r.Name))
	}
	return view{m: m, p: p, home: true, settled: true}
}

// Here returns the platform of this node alone as p sees it: for other nodes, and for
// what asks about this one.
func (m *Member) Here(p cove.Principal) cove.Platform { return view{m: m, p: tenanted(p), here: true} }

func tenanted(p cove.Principal) cove.Principal {
	if p.Tenant == "" {
		p.Tenant = cove.DefaultTenant
	}
	return p
}

// view is the cluster, or this node, bound to one caller.
type view struct {
	m    *Member
	p    cove.Principal
	here bool // only this node is asked
	home bool // no other region is asked
	// settled says that what belongs to another region is not opened here instead.
	settled bool
	// changes says that what is asked changes something and has no idempotency key:
	// where it is not known whether it was done, it must not be asked again by itself.
	changes bool
}

// changing returns v for a request that changes something, with its idempotency key.
func (v view) changing(key string) view {
	v.changes = key == ""
	return v
}

// own is this node's engine, for what is every node's own.
func (v view) own() cove.Platform { return v.m.engine.Load().As(v.p) }

func (v view) Sessions() cove.Sessions             { return sessions{v} }
func (v view) Processes(id cove.ID) cove.Processes { return processes{v, id} }
func (v view) Files(id cove.ID) cove.Files         { return files{v, id} }
func (v view) Contexts(id cove.ID) cove.Contexts   { return contexts{v, id} }
func (v view) Ports(id cove.ID) cove.Ports         { return ports{v, id} }
func (v view) Trials(id cove.ID) cove.Trials       { return trials{v, id} }
func (v view) Snapshots() cove.Snapshots           { return snapshots{v} }
func (v view) Volumes() cove.Volumes               { return volumes{v.own().Volumes(), v} }
func (v view) Runs() cove.Runs                     { return runs{v.own().Runs(), v} }
func (v view) Datasets() cove.Datasets             { return v.own().Datasets() }
func (v view) Chats() cove.Chats                   { return v.own().Chats() }
func (v view) Templates() cove.Templates           { return v.own().Templates() }
func (v view) Links() cove.Links                   { return links{v.own().Links(), v} }
func (v view) Admin() cove.Admin                   { return admin{v.own().Admin(), v} }
func (v view) Nodes() cove.Nodes                   { return v.own().Nodes() }

type processes struct {
	v  view
	id cove.ID
}

func (p processes) Exec(ctx context.Context, req cove.ExecRequest) (*cove.Execution, error) {
	in, stdin := rewound(req.Stdin)
	return onWith(ctx, p.v.changing(""), p.id, in, func(at cove.Platform) (*cove.Execution, error) {
		req := req
		req.Stdin = stdin()
		return at.Processes(p.id).Exec(ctx, req)
	})
}

func (p processes) Start(ctx context.Context, req cove.ExecRequest) (*cove.ProcessInfo, error) {
	in, stdin := rewound(req.Stdin)
	return onWith(ctx, p.v.changing(req.IdempotencyKey), p.id, in, func(at cove.Platform) (*cove.ProcessInfo, error) {
		req := req
		req.Stdin = stdin()
		return at.Processes(p.id).Start(ctx, req)
	})
}

func (p processes) List(ctx context.Context) iter.Seq2[cove.ProcessInfo, error] {
	return each(ctx, p.v, p.id, func(at cove.Platform) iter.Seq2[cove.ProcessInfo, error] { return at.Processes(p.id).List(ctx) })
}

func (p processes) Connect(ctx context.Context, pid cove.PID, offset int64) iter.Seq2[cove.Chunk, error] {
	return each(ctx, p.v, p.id, func(at cove.Platform) iter.Seq2[cove.Chunk, error] {
		return at.Processes(p.id).Connect(ctx, pid, offset)
	})
}

func (p processes) Wait(ctx context.Context, pid cove.PID) (*cove.Execution, error) {
	return on(ctx, p.v, p.id, func(at cove.Platform) (*cove.Execution, error) { return at.Processes(p.id).Wait(ctx, pid) })
}

func (p processes) Input(ctx context.Context, pid cove.PID, data []byte, eof bool) error {
	return done(ctx, p.v.changing(""), p.id, func(at cove.Platform) error { return at.Processes(p.id).Input(ctx, pid, data, eof) })
}

func (p processes) Signal(ctx context.Context, pid cove.PID, sig cove.Signal) error {
	return done(ctx, p.v.changing(""), p.id, func(at cove.Platform) error { return at.Processes(p.id).Signal(ctx, pid, sig) })
}

func (p processes) Resize(ctx context.Context, pid cove.PID, size cove.WindowSize) error {
	return done(ctx, p.v, p.id, func(at cove.Platform) error { return at.Processes(p.id).Resize(ctx, pid, size) })
}

func (p processes) Output(ctx context.Context, id cove.OutputID, r cove.OutputRange) (*cove.OutputPage, error) {
	return on(ctx, p.v, p.id, func(at cove.Platform) (*cove.OutputPage, error) { return at.Processes(p.id).Output(ctx, id, r) })
}

type files struct {
	v  view
	id cove.ID
}

func (f files) Stat(ctx context.Context, name string) (cove.FileInfo, error) {
	return on(ctx, f.v, f.id, func(at cove.Platform) (cove.FileInfo, error) { return at.Files(f.id).Stat(ctx, name) })
}

func (f files) Read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return on(ctx, f.v, f.id, func(at cove.Platform) (io.ReadCloser, error) { return at.Files(f.id).Read(ctx, name, offset, length) })
}

func (f files) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) error {
	in, from := rewound(r)
	return doneWith(ctx, f.v.changing(""), f.id, in, func(at cove.Platform) error { return at.Files(f.id).Write(ctx, name, from(), mode) })
}

func (f files) List(ctx context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	return each(ctx, f.v, f.id, func(at cove.Platform) iter.Seq2[cove.FileInfo, error] { return at.Files(f.id).List(ctx, dir, depth) })
}

func (f files) Mkdir(ctx context.Context, name string) error {
	return done(ctx, f.v.changing(""), f.id, func(at cove.Platform) error { return at.Files(f.id).Mkdir(ctx, name) })
}

func (f files) Move(ctx context.Context, from, to string) error {
	return done(ctx, f.v.changing(""), f.id, func(at cove.Platform) error { return at.Files(f.id).Move(ctx, from, to) })
}

func (f files) Remove(ctx context.Context, name string) error {
	return done(ctx, f.v.changing(""), f.id, func(at cove.Platform) error { return at.Files(f.id).Remove(ctx, name) })
}

func (f files) Archive(ctx context.Context, dir string) (io.ReadCloser, error) {
	return on(ctx, f.v, f.id, func(at cove.Platform) (io.ReadCloser, error) { return at.Files(f.id).Archive(ctx, dir) })
}

func (f files) Unpack(ctx context.Context, dir string, tar io.Reader) error {
	in, from := rewound(tar)
	return doneWith(ctx, f.v.changing(""), f.id, in, func(at cove.Platform) error { return at.Files(f.id).Unpack(ctx, dir, from()) })
}

func (f files) Watch(ctx context.Context, dir string) iter.Seq2[cove.Change, error] {
	return each(ctx, f.v, f.id, func(at cove.Platform) iter.Seq2[cove.Change, error] { return at.Files(f.id).Watch(ctx, dir) })
}

func (f files) Tag(ctx context.Context, name string, meta map[string]string) error {
	return done(ctx, f.v.changing(""), f.id, func(at cove.Platform) error { return at.Files(f.id).Tag(ctx, name, meta) })
}

type contexts struct {
	v  view
	id cove.ID
}

func (c contexts) Run(ctx context.Context, req cove.CodeRequest) (*cove.CodeResult, error) {
	return on(ctx, c.v.changing(""), c.id, func(at cove.Platform) (*cove.CodeResult, error) { return at.Contexts(c.id).Run(ctx, req) })
}

func (c contexts) Open(ctx context.Context, spec cove.ContextSpec) (*cove.CodeContext, error) {
	return on(ctx, c.v.changing(spec.IdempotencyKey), c.id, func(at cove.Platform) (*cove.CodeContext, error) { return at.Contexts(c.id).Open(ctx, spec) })
}

func (c contexts) List(ctx context.Context) iter.Seq2[cove.CodeContext, error] {
	return each(ctx, c.v, c.id, func(at cove.Platform) iter.Seq2[cove.CodeContext, error] { return at.Contexts(c.id).List(ctx) })
}

func (c contexts) Restart(ctx context.Context, name string) error {
	return done(ctx, c.v.changing(""), c.id, func(at cove.Platform) error { return at.Contexts(c.id).Restart(ctx, name) })
}

func (c contexts) Interrupt(ctx context.Context, name string) error {
	return done(ctx, c.v.changing(""), c.id, func(at cove.Platform) error { return at.Contexts(c.id).Interrupt(ctx, name) })
}

func (c contexts) Close(ctx context.Context, name string) error {
	return done(ctx, c.v.changing(""), c.id, func(at cove.Platform) error { return at.Contexts(c.id).Close(ctx, name) })
}

func (c contexts) Analyze(ctx context.Context, req cove.AnalyzeRequest) (*cove.CodeAnalysis, error) {
	if c.id == "" { // it needs no session
		return c.v.own().Contexts(c.id).Analyze(ctx, req)
	}
	return on(ctx, c.v, c.id, func(at cove.Platform) (*cove.CodeAnalysis, error) { return at.Contexts(c.id).Analyze(ctx, req) })
}

type ports struct {
	v  view
	id cove.ID
}

func (p ports) Dial(ctx context.Context, port int) (net.Conn, error) {
	return on(ctx, p.v, p.id, func(at cove.Platform) (net.Conn, error) { return at.Ports(p.id).Dial(ctx, port) })
}

type trials struct {
	v  view
	id cove.ID
}

func (t trials) Run(ctx context.Context, req cove.TrialRequest) (*cove.TrialResult, error) {
	return on(ctx, t.v.changing(""), t.id, func(at cove.Platform) (*cove.TrialResult, error) { return at.Trials(t.id).Run(ctx, req) })
}

func (t trials) Get(ctx context.Context) (*cove.TrialResult, error) {
	return on(ctx, t.v, t.id, func(at cove.Platform) (*cove.TrialResult, error) { return at.Trials(t.id).Get(ctx) })
}

func (t trials) Before(ctx context.Context, name string) ([]byte, error) {
	return on(ctx, t.v, t.id, func(at cove.Platform) ([]byte, error) { return at.Trials(t.id).Before(ctx, name) })
}

func (t trials) Commit(ctx context.Context) error {
	return done(ctx, t.v.changing(""), t.id, func(at cove.Platform) error { return at.Trials(t.id).Commit(ctx) })
}

func (t trials) Discard(ctx context.Context) error {
	return done(ctx, t.v.changing(""), t.id, func(at cove.Platform) error { return at.Trials(t.id).Discard(ctx) })
}

type links struct {
	cove.Links

	v view
}

func (l links) Download(ctx context.Context, req cove.FileLink) (*cove.Link, error) {
	return on(ctx, l.v, req.Session, func(at cove.Platform) (*cove.Link, error) { return at.Links().Download(ctx, req) })
}

func (l links) Upload(ctx context.Context, req cove.FileLink) (*cove.Link, error) {
	return on(ctx, l.v, req.Session, func(at cove.Platform) (*cove.Link, error) { return at.Links().Upload(ctx, req) })
}

func (l links) Port(ctx context.Context, req cove.PortLink) (*cove.Link, error) {
	return on(ctx, l.v, req.Session, func(at cove.Platform) (*cove.Link, error) { return at.Links().Port(ctx, req) })
}

// runs are in the store for every node; only who answers one can wait for it.
type runs struct {
	cove.Runs

	v view
}

func (r runs) Submit(ctx context.Context, req cove.RunRequest) (*cove.Run, error) {
	if req.Session != "" {
		return on(ctx, r.v.changing(req.IdempotencyKey), req.Session, func(at cove.Platform) (*cove.Run, error) { return at.Runs().Submit(ctx, req) })
	}
	if err := r.v.m.mayBegin(); err != nil {
		return nil, err
	}
	return chase(ctx, r.v.changing(req.IdempotencyKey), r.v.m.cfg.Node, func(at cove.Platform) (*cove.Run, error) { return at.Runs().Submit(ctx, req) })
}

func (r runs) Wait(ctx context.Context, id cove.ID) (*cove.Run, error) {
	return chase(ctx, r.v, r.v.m.cfg.Node, func(at cove.Platform) (*cove.Run, error) { return at.Runs().Wait(ctx, id) })
}

func (r runs) Delete(ctx context.Context, id cove.ID) error {
	_, err := chase(ctx, r.v, r.v.m.cfg.Node, func(at cove.Platform) (struct{}, error) { return struct{}{}, at.Runs().Delete(ctx, id) })
	return err
}

func (r runs) Analyze(ctx context.Context, req cove.RunRequest) (*cove.RunDecision, error) {
	if req.Session != "" {
		return on(ctx, r.v, req.Session, func(at cove.Platform) (*cove.RunDecision, error) { return at.Runs().Analyze(ctx, req) })
	}
	return r.Runs.Analyze(ctx, req)
}

// volumes have their records in the store for every node, and their files on one.
type volumes struct {
	cove.Volumes

	v view
}

func (o volumes) Create(ctx context.Context, req cove.VolumeRequest) (*cove.SavedVolume, error) {
	if err := o.v.m.mayBegin(); err != nil {
		return nil, err
	}
	return chase(ctx, o.v.changing(req.IdempotencyKey), o.v.m.cfg.Node, func(at cove.Platform) (*cove.SavedVolume, error) { return at.Volumes().Create(ctx, req) })
}

func (o volumes) Delete(ctx context.Context, ref string) error {
	_, err := chase(ctx, o.v, o.v.m.cfg.Node, func(at cove.Platform) (struct{}, error) { return struct{}{}, at.Volumes().Delete(ctx, ref) })
	return err
}

type snapshots struct{ v view }

func (s snapshots) Pause(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return on(ctx, s.v, id, func(at cove.Platform) (*cove.Session, error) { return at.Snapshots().Pause(ctx, id) })
}

func (s snapshots) Resume(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return on(ctx, s.v, id, func(at cove.Platform) (*cove.Session, error) { return at.Snapshots().Resume(ctx, id) })
}

func (s snapshots) Snapshot(ctx context.Context, id cove.ID, req cove.SnapshotRequest) (*cove.Snapshot, error) {
	return on(ctx, s.v.changing(req.IdempotencyKey), id, func(at cove.Platform) (*cove.Snapshot, error) { return at.Snapshots().Snapshot(ctx, id, req) })
}

func (s snapshots) Fork(ctx context.Context, id cove.ID, as cove.ForkRequest) (*cove.Session, error) {
	return on(ctx, s.v.changing(as.IdempotencyKey), id, func(at cove.Platform) (*cove.Session, error) { return at.Snapshots().Fork(ctx, id, as) })
}

func (s snapshots) List(ctx context.Context, f cove.SnapshotFilter) iter.Seq2[*cove.Snapshot, error] {
	return s.v.own().Snapshots().List(ctx, f)
}

func (s snapshots) Delete(ctx context.Context, snapshot cove.ID) error {
	_, err := chase(ctx, s.v, s.v.m.cfg.Node, func(at cove.Platform) (struct{}, error) { return struct{}{}, at.Snapshots().Delete(ctx, snapshot) })
	return err
}

type sessions struct{ v view }

func (s sessions) Get(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return on(ctx, s.v, id, func(at cove.Platform) (*cove.Session, error) { return at.Sessions().Get(ctx, id) })
}

func (s sessions) Renew(ctx context.Context, id cove.ID, d time.Duration) (*cove.Session, error) {
	return on(ctx, s.v, id, func(at cove.Platform) (*cove.Session, error) { return at.Sessions().Renew(ctx, id, d) })
}

func (s sessions) Stop(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return on(ctx, s.v, id, func(at cove.Platform) (*cove.Session, error) { return at.Sessions().Stop(ctx, id) })
}

func (s sessions) Start(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return on(ctx, s.v, id, func(at cove.Platform) (*cove.Session, error) { return at.Sessions().Start(ctx, id) })
}

func (s sessions) Close(ctx context.Context, id cove.ID, keep bool) (cove.ID, error) {
	v := s.v
	if keep { // the id of what is kept is in no other answer
		v = v.changing("")
	}
	return on(ctx, v, id, func(at cove.Platform) (cove.ID, error) { return at.Sessions().Close(ctx, id, keep) })
}

func (s sessions) Usage(ctx context.Context, id cove.ID) (cove.Usage, error) {
	return on(ctx, s.v, id, func(at cove.Platform) (cove.Usage, error) { return at.Sessions().Usage(ctx, id) })
}

func (s sessions) SetNetwork(ctx context.Context, id cove.ID, n cove.Network) (*cove.Session, error) {
	return on(ctx, s.v, id, func(at cove.Platform) (*cove.Session, error) { return at.Sessions().SetNetwork(ctx, id, n) })
}

func (s sessions) Connections(ctx context.Context, id cove.ID, after int64) iter.Seq2[cove.Connection, error] {
	return each(ctx, s.v, id, func(at cove.Platform) iter.Seq2[cove.Connection, error] {
		return at.Sessions().Connections(ctx, id, after)
	})
}
