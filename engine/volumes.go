package engine

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// volumes is the part of the platform that keeps folders.
type volumes struct{ v view }

// volumeDesk is what is known of volumes beside their records.
type volumeDesk struct {
	// records is held by who decides about records: that a name is free, that nobody
	// has a volume.
	records sync.Mutex
	busy    map[cove.ID]bool // guarded by records; those that are being made or removed

	// eyes is full while somebody counts files: one at a time does.
	eyes  chan struct{}
	looks map[cove.ID]look // for who has eyes
}

func (d *volumeDesk) init() {
	d.busy, d.looks, d.eyes = map[cove.ID]bool{}, map[cove.ID]look{}, make(chan struct{}, 1)
}

// done says that a volume is not being made or removed any more.
func (d *volumeDesk) done(id cove.ID) {
	d.records.Lock()
	defer d.records.Unlock()
	delete(d.busy, id)
}

// Create implements [cove.Volumes].
func (p volumes) Create(ctx context.Context, req cove.VolumeRequest) (*cove.SavedVolume, error) {
	e := p.v.e
	a := action{Action: cove.Action{Verb: cove.VolumeCreate}, data: e.contentOf(req.Name)}
	return act(ctx, p.v, a, func(ctx context.Context, st *step) (*cove.SavedVolume, error) {
		if err := errors.Join(e.keepsVolumes(), req.Validate()); err != nil {
			return nil, err
		}
		rec, err := once(ctx, e, p.v.p, deed[*cove.SavedVolume]{
			key: req.IdempotencyKey, verb: cove.VolumeCreate, what: req.Name,
			do: func(made cove.ID) (*cove.SavedVolume, cove.ID, error) {
				rec, err := e.makeVolume(ctx, p.v.p.Tenant, made, req.Name)
				return rec, made, err
			},
			again: func(made cove.ID) (*cove.SavedVolume, error) {
				return e.volumeOf(ctx, p.v.p.Tenant, string(made))
			},
		})
		if err == nil {
			st.outcome.Data = aboutVolume(rec)
		}
		return rec, err
	})
}

// aboutVolume tells the journal which volume an action was about.
func aboutVolume(rec *cove.SavedVolume) json.RawMessage {
	return json.RawMessage(`{"volume":"` + string(rec.ID) + `"}`)
}

// keepsVolumes reports a platform that has no place for volumes.
func (e *Engine) keepsVolumes() error {
	if e.cfg.Folders == nil {
		return cove.Errorf(cove.Unsupported, "volumes: there are none by name where nothing outlives the run").With("field", "volumes").
			Remedy("use a server, which cove sandbox starts when there is none")
	}
	return nil
}

// makeVolume makes an empty volume under an id.
func (e *Engine) makeVolume(ctx context.Context, tenant string, id cove.ID, name string) (*cove.SavedVolume, error) {
	rec := &cove.SavedVolume{
		ID: id, Tenant: tenant, Name: name, Node: e.ownNode(), Limit: e.cfg.VolumeSize, Files: e.cfg.VolumeFiles, CreatedAt: time.Now(), Pending: true,
	}
	if err := e.RoomOnDisk(); err != nil {
		return nil, err
	}
	if err := e.reserveVolume(ctx, rec); err != nil {
		return nil, err
	}
	defer e.volumes.done(id)
	err := e.cfg.Folders.Make(ctx, id)
	if err == nil {
		rec.Pending = false
		err = e.cfg.Store.PutVolume(ctx, rec)
	}
	if err != nil {
		if derr := e.dropVolume(context.WithoutCancel(ctx), rec); derr != nil {
			e.cfg.Logger.ErrorContext(ctx, "remove volume; the orphans task tries again", errAttr(derr))
		}
		return nil, err
	}
	return rec, nil
}

// reserveVolume writes down that a volume is being made, if its tenant may have one
// more and none of that name. What a crash leaves of it is found by that.
func (e *Engine) reserveVolume(ctx context.Context, rec *cove.SavedVolume) error {
	d := &e.volumes
	d.records.Lock()
	defer d.records.Unlock()
	n := 0
	for other, err := range e.cfg.Store.Volumes(ctx, cove.VolumeFilter{Tenant: rec.Tenant}) {
		if err != nil {
			return err
		}
		if other.Name == rec.Name && (!other.Pending || d.busy[other.ID]) {
			return cove.Errorf(cove.Conflict, "there is a volume %q already", rec.Name).With("volume_id", string(other.ID)).
				Remedy("use it, or choose another name")
		}
		n++
	}
	if n >= e.cfg.MaxVolumes {
		return cove.Errorf(cove.Exhausted, "the tenant has %d volumes, as many as it may", n).Reason(cove.ReasonTenantQuota).
			Remedy("delete one first, or have the operator raise COVE_MAX_VOLUMES")
	}
	if err := e.cfg.Store.PutVolume(ctx, rec); err != nil {
		return err
	}
	d.busy[rec.ID] = true
	return nil
}

// dropVolume removes a volume that is marked: its files go, then the record, so that
// a crash in between is made good at the next start.
func (e *Engine) dropVolume(ctx context.Context, rec *cove.SavedVolume) error {
	if err := e.cfg.Folders.Remove(ctx, rec.ID); err != nil {
		return err
	}
	return e.cfg.Store.DeleteVolume(ctx, rec.ID)
}

// removeHalfVolumes removes what a crash or a fault left half made or half removed.
func (e *Engine) removeHalfVolumes(ctx context.Context) (n int64, failed error) {
	if e.cfg.Folders == nil {
		return 0, nil
	}
	for rec, err := range e.cfg.Store.Volumes(ctx, cove.VolumeFilter{}) {
		if err != nil {
			return n, errors.Join(failed, err)
		}
		if !rec.Pending || e.onlyHere(rec.Node) != nil || !e.takeHalf(ctx, rec.ID) {
			continue
		}
		err := e.dropVolume(ctx, rec)
		e.volumes.done(rec.ID)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		e.note(ctx, "volume.aborted", &cove.Session{Tenant: rec.Tenant}, "it was not made or removed to the end")
		n++
	}
	return n, failed
}

// takeHalf reports whether a volume is still half and nobody is at it, and takes it.
func (e *Engine) takeHalf(ctx context.Context, id cove.ID) bool {
	d := &e.volumes
	d.records.Lock()
	defer d.records.Unlock()
	rec, err := e.cfg.Store.GetVolume(ctx, id)
	if err != nil || !rec.Pending || d.busy[id] || e.unheld(rec) != nil {
		return false
	}
	d.busy[id] = true
	return true
}

// volumeOf returns a tenant's volume, by its id or its name. No name has the form of
// an id.
func (e *Engine) volumeOf(ctx context.Context, tenant, ref string) (*cove.SavedVolume, error) {
	missing := cove.Errorf(cove.NotFound, "there is no volume %.80q", ref).Remedy("make it first")
	if id := cove.ID(ref); id.Valid() {
		rec, err := e.cfg.Store.GetVolume(ctx, id)
		if cove.CodeOf(err) == cove.NotFound || err == nil && (rec.Tenant != tenant || rec.Pending) {
			return nil, missing
		}
		return rec, err
	}
	for rec, err := range e.cfg.Store.Volumes(ctx, cove.VolumeFilter{Tenant: tenant}) {
		if err != nil {
			return nil, err
		}
		if rec.Name == ref && !rec.Pending {
			return rec, nil
		}
	}
	return nil, missing
}

// Get implements [cove.Volumes].
func (p volumes) Get(ctx context.Context, ref string) (*cove.SavedVolume, error) {
	a := action{Action: cove.Action{Verb: cove.VolumeGet}}
	return act(ctx, p.v, a, func(ctx context.Context, _ *step) (*cove.SavedVolume, error) {
		return p.v.e.volumeOf(ctx, p.v.p.Tenant, ref)
	})
}

// List implements [cove.Volumes].
func (p volumes) List(ctx context.Context, f cove.VolumeFilter) iter.Seq2[*cove.SavedVolume, error] {
	a := action{Action: cove.Action{Verb: cove.VolumeList}}
	return actSeq(ctx, p.v, a, func(ctx context.Context, _ *step) (iter.Seq2[*cove.SavedVolume, error], error) {
		most := f.Limit
		f.Tenant, f.Limit = p.v.p.Tenant, 0 // some that the store has are not shown
		return whole(p.v.e.cfg.Store.Volumes(ctx, f), most), nil
	})
}

// whole leaves out what nobody is shown, and ends after so many; 0 is all.
func whole(list iter.Seq2[*cove.SavedVolume, error], most int) iter.Seq2[*cove.SavedVolume, error] {
	return func(yield func(*cove.SavedVolume, error) bool) {
		n := 0
		for rec, err := range list {
			if err == nil && rec.Pending {
				continue
			}
			if n++; !yield(rec, err) || n == most {
				return
			}
		}
	}
}

// Delete implements [cove.Volumes].
func (p volumes) Delete(ctx context.Context, ref string) error {
	e := p.v.e
	a := action{Action: cove.Action{Verb: cove.VolumeDelete}, data: e.contentOf(ref)}
	return actDone(ctx, p.v, a, func(ctx context.Context, st *step) error {
		if err := e.keepsVolumes(); err != nil {
			return err
		}
		if rec, err := e.volumeOf(ctx, p.v.p.Tenant, ref); err == nil && e.leftBehind(ctx, rec.Node) {
			st.outcome.Data = aboutVolume(rec)
			return e.cfg.Store.DeleteVolume(ctx, rec.ID)
		}
		rec, err := e.markVolume(ctx, p.v.p.Tenant, ref)
		if err != nil {
			return err
		}
		defer e.volumes.done(rec.ID)
		st.outcome.Data = aboutVolume(rec)
		if err := e.dropVolume(ctx, rec); err != nil {
			return cove.Wrap(cove.CodeOf(err), err, "the volume is gone, but not all of its files are yet: %s", cove.MessageOf(err)).
				Remedy("do nothing: the server tries again by itself")
		}
		return nil
	})
}

// markVolume says that a volume is being removed, unless a session has it. Sessions
// look for their volumes after they are in the table: who opens one meanwhile does
// not find the volume, or is found here.
func (e *Engine) markVolume(ctx context.Context, tenant, ref string) (*cove.SavedVolume, error) {
	d := &e.volumes
	d.records.Lock()
	defer d.records.Unlock()
	rec, err := e.volumeOf(ctx, tenant, ref)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(e.onlyHere(rec.Node), e.unheld(rec)); err != nil {
		return nil, err
	}
	rec.Pending = true
	if err := e.cfg.Store.PutVolume(ctx, rec); err != nil {
		return nil, err
	}
	if err := e.unheld(rec); err != nil {
		rec.Pending = false
		return nil, errors.Join(err, e.cfg.Store.PutVolume(context.WithoutCancel(ctx), rec))
	}
	d.busy[rec.ID] = true
	return rec, nil
}

// unheld is a Conflict while sessions have a volume, stopped ones too: they come
// back with it.
func (e *Engine) unheld(rec *cove.SavedVolume) error {
	n := 0
	for _, l := range e.snapshotLeases() {
		if l.tenant == rec.Tenant && l.hasVolume(rec.Name) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return cove.Errorf(cove.Conflict, "sessions have the volume %q: %d of them, running, paused or stopped", rec.Name, n).With("sessions", n).
		Remedy("close them first")
}

// hasVolume reports whether a lease was opened with a volume.
func (l *lease) hasVolume(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.rec.Spec.Volumes, func(v cove.Volume) bool { return v.Name == name })
}
