package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
	"github.com/cove-sandbox/cove/internal/pool"
	"github.com/cove-sandbox/cove/internal/task"
)

// Engine runs sessions. Make one with Open, give each caller a view with As,
// and Close it at the end.
type Engine struct {
	cfg     Config
	gate    *admission.Gate
	pool    *pool.Pool
	tasks   *task.Group
	probes  probes
	tenants tenants
	disk    diskAccount
	runs    runTable
	threads threads
	rooms   cleanRooms
	places  runPlaces
	warmth  warmth
	volumes volumeDesk
	alarm   alarm
	rests   rests
	samples sampling
	began   time.Time

	cordoned atomic.Bool   // no new sessions
	adopting chan struct{} // has one while a session is being taken up

	making     atomic.Int64 // sandboxes that are being made for sessions
	waitOthers atomic.Int64 // callers that wait for sessions of other nodes

	mu     sync.RWMutex
	leases map[cove.ID]*lease // guarded by mu; all that have not ended
	keys   map[leaseKey]*lease
	owners map[string]int // live sessions of each principal
	claims map[claimKey]chan struct{}
	closed bool
}

// Open takes up the sessions that the store and the providers have, removes
// what belongs to nobody, and starts the background tasks.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, cove.WithReason(err, cove.ReasonConfiguration)
	}
	e := &Engine{
		cfg: cfg, began: time.Now(),
		gate:   admission.New(admission.Config{Sessions: cfg.MaxSessions, Memory: cfg.MaxMemory, Queue: cfg.QueueLength}),
		leases: map[cove.ID]*lease{}, keys: map[leaseKey]*lease{}, owners: map[string]int{},
		claims: map[claimKey]chan struct{}{}, warmth: newWarmth(), adopting: make(chan struct{}, 1),
	}
	e.probes.init(cfg.Providers)
	e.rooms.init()
	e.places.init()
	e.volumes.init()
	e.rests.init(e.restDue, e.alarmAgain)
	e.tenants.store = cfg.Store
	e.pool = pool.New(pool.Config{Size: cfg.PoolSize, Max: cfg.MaxPool, Prepare: e.prepareWarm})
	if err := e.recover(ctx); err != nil {
		for _, l := range e.snapshotLeases() {
			l.letGo(ctx)
		}
		return nil, err
	}
	e.tasks = task.Start(cfg.Logger, e.chores()...)
	e.alarm.start(func() { e.tasks.Kick(taskExpiry) })
	for _, l := range e.snapshotLeases() {
		e.alarmFor(l)
	}
	return e, nil
}

// taskExpiry is the task that ends sessions.
const taskExpiry = "expiry"

// chores are the background tasks.
func (e *Engine) chores() []task.Task {
	expiry := task.Task{Name: taskExpiry, Every: e.cfg.CleanupInterval, Run: e.expire}
	if e.cfg.untouched() {
		return []task.Task{expiry}
	}
	list := []task.Task{
		expiry,
		{Name: "orphans", Every: e.cfg.OrphanInterval, Run: e.removeOrphans},
		{Name: "pool", Every: e.cfg.PoolInterval, Run: e.pool.Fill},
		{Name: "room", Every: roomInterval, Run: e.makeRoom},
		{Name: "records", Every: e.cfg.CleanupInterval, Run: e.tidyRecords},
		{Name: taskUsage, Every: e.cfg.CleanupInterval, Run: e.sampleUsage},
	}
	if e.cfg.Moving != nil {
		list = append(list, task.Task{Name: taskDrain, Every: drainInterval, Run: e.evacuate})
	}
	if e.cfg.Folders != nil {
		list = append(list, task.Task{Name: "volumes", Every: volumeInterval, Run: e.watchVolumes})
	}
	if e.cfg.Artifacts != nil {
		list = append(list, task.Task{Name: "artifacts", Every: artifactInterval, Run: e.cfg.Artifacts.Sweep})
	}
	return list
}

// Close stops the background tasks, ends the programs that callers wait for,
// and lets go of the sandboxes without destroying them: sessions whose provider
// can keep them alive are there again after the next Open, and so are background
// programs where the provider can keep those. It closes neither the store nor
// the journal nor the providers.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	leases := e.allLeases()
	e.mu.Unlock()

	e.alarm.stop()
	e.probes.again.close()
	e.tasks.Close()
	e.rests.close()
	e.runs.close()
	e.closePlaces(ctx)
	e.closeRooms(ctx)
	_ = inParallel(leases, func(l *lease) error {
		l.letGo(ctx)
		e.bookLast(l)
		return nil
	})
	return errors.Join(e.pool.Close(ctx), e.tenants.flush(ctx))
}

// roomInterval is how often those who wait for room are looked at when nothing
// else made somebody look.
const roomInterval = 5 * time.Second

// onIdle is told that a session became idle: it may make room for who waits.
func (e *Engine) onIdle() {
	if !e.cfg.Evict {
		return
	}
	if _, _, waiting := e.gate.Used(); waiting > 0 {
		e.tasks.Kick("room")
	}
}

// allLeases returns the table. The caller holds mu.
func (e *Engine) allLeases() []*lease {
	all := make([]*lease, 0, len(e.leases))
	for _, l := range e.leases {
		all = append(all, l)
	}
	return all
}

// snapshotLeases returns the table as it is now.
func (e *Engine) snapshotLeases() []*lease {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.allLeases()
}

// As returns the platform as p sees it.
func (e *Engine) As(p cove.Principal) cove.Platform { return e.bound(p) }

func (e *Engine) bound(p cove.Principal) view {
	if p.Tenant == "" {
		p.Tenant = cove.DefaultTenant
	}
	return view{e, p}
}

// view is an Engine bound to one caller.
type view struct {
	e *Engine
	p cove.Principal
}

func (v view) Sessions() cove.Sessions             { return sessions{v} }
func (v view) Processes(id cove.ID) cove.Processes { return processes{v, id} }
func (v view) Files(id cove.ID) cove.Files         { return files{v, id} }
func (v view) Contexts(id cove.ID) cove.Contexts   { return contexts{v, id} }
func (v view) Ports(id cove.ID) cove.Ports         { return ports{v, id} }
func (v view) Trials(id cove.ID) cove.Trials       { return trials{v, id} }
func (v view) Snapshots() cove.Snapshots           { return snapshots{v} }
func (v view) Volumes() cove.Volumes               { return volumes{v} }
func (v view) Runs() cove.Runs                     { return runs{v} }
func (v view) Datasets() cove.Datasets             { return datasets{v} }
func (v view) Chats() cove.Chats                   { return chats{v} }
func (v view) Templates() cove.Templates           { return templates{v} }
func (v view) Links() cove.Links                   { return links{v} }
func (v view) Admin() cove.Admin                   { return admin{v} }
func (v view) Nodes() cove.Nodes                   { return nodes{v} }
