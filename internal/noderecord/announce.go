package noderecord

import (
	"context"
	"log/slog"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/recordcopy"
)

// Announce tells the directory what it does not know of this node, before an engine
// looks there for its sessions. It comes after the first Beat.
func (d *Directory) Announce(ctx context.Context) error {
	names, err := d.copies.Names()
	if err != nil {
		return recordcopy.Unusable(d.cfg.Dir, err)
	}
	if err := d.look(ctx); err != nil {
		return err
	}
	forgot := d.mayHaveForgotten()
	told := 0
	for _, id := range names[recordcopy.Session] {
		if !cove.ID(id).Valid() {
			continue
		}
		again, err := d.announce(ctx, cove.ID(id), forgot)
		if err != nil {
			return err
		}
		if again {
			told++
		}
	}
	if told > 0 {
		d.cfg.Logger.WarnContext(ctx, "the directory had no records of sessions of this node, which put them back", slog.Int("sessions", told))
	}
	if err := d.announceRest(ctx, names); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = true
	return nil
}

// Renew tells the directory what it does not know but sessions, which a running engine
// puts back itself.
func (d *Directory) Renew(ctx context.Context) error {
	names, err := d.copies.Names()
	if err != nil {
		return recordcopy.Unusable(d.cfg.Dir, err)
	}
	return d.announceRest(ctx, names)
}

// look finds out whether both the directory and this node lost the records.
func (d *Directory) look(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blind = false; d.origin != "" || !d.cfg.Before || d.pulse.Settling <= 0 || d.pulse.Origin != d.pulse.Epoch {
		return nil
	}
	for _, err := range d.Directory.Sessions(ctx, cove.SessionFilter{Node: d.cfg.Node, Limit: 1}) {
		return err
	}
	d.blind = true
	return nil
}

// mayHaveForgotten reports whether a session that the directory does not know may be one
// that it was told has ended: it is the directory that this node left, and so long ago
// that it does not remember such sessions any more.
func (d *Directory) mayHaveForgotten() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.origin != "" && d.origin == d.pulse.Origin && time.Since(d.heard) > d.cfg.Remembered
}

// announce compares the copy of a session with the directory, and reports whether that
// was told of it.
func (d *Directory) announce(ctx context.Context, id cove.ID, forgot bool) (bool, error) {
	log := d.cfg.Logger.With(slog.String("session_id", string(id)))
	var rec cove.Session
	readable := d.copies.Read(recordcopy.Session, string(id), &rec) && rec.ID == id
	kept, err := d.Directory.GetSession(ctx, id)
	switch lost := cove.CodeOf(err) == cove.NotFound; {
	case err != nil && !lost:
		return false, err
	case !lost && kept.State != cove.Ended && readable && kept.Version < rec.Version: // it lost the newest version
	case !lost:
		d.follow(ctx, kept)
		return false, nil
	case !readable:
		log.WarnContext(ctx, "neither Redis nor this node has the record of a session any more: its sandbox and files are kept, and not served; remove the copy and restart the node to have them removed",
			slog.String("record", recordcopy.FileOf(recordcopy.Session, string(id))), slog.String("folder", d.cfg.Dir))
		return false, nil
	case rec.State == cove.Creating: // no caller was given it yet
		d.drop(ctx, id)
		return false, nil
	case forgot:
		log.WarnContext(ctx, "this node was away for longer than the directory remembers sessions that have ended: callers were told that this session is lost, and it has ended")
		d.drop(ctx, id)
		return false, nil
	}
	rec.Node = d.cfg.Node // it may have had another name
	err = d.Restore(ctx, &rec)
	if cove.CodeOf(err) == cove.Conflict && rec.Spec.User+rec.Spec.Thread != "" {
		log.WarnContext(ctx, "another session has the user and thread of this one by now: it goes on without them, under its id",
			slog.String("user_id", rec.Spec.User), slog.String("thread_id", rec.Spec.Thread))
		rec.Spec.User, rec.Spec.Thread = "", ""
		err = d.Restore(ctx, &rec)
	}
	if cove.CodeOf(err) == cove.NotFound { // it has ended, or is another node's
		return false, nil
	}
	return err == nil, err
}

// drop forgets the copy of a session that has ended, or is another node's.
func (d *Directory) drop(ctx context.Context, id cove.ID) {
	defer d.copies.Turn(string(id))()
	d.copies.Remove(ctx, recordcopy.Session, string(id))
}

// announceRest puts back what has files on this node and what bounds tenants, where the
// directory is another one than before, and remembers which it is.
func (d *Directory) announceRest(ctx context.Context, names map[recordcopy.Kind][]string) error {
	d.mu.Lock()
	was, now := d.origin, d.pulse.Origin
	d.mu.Unlock()
	if was == now {
		return nil // what it does not know was deleted
	}
	for _, id := range names[tenant] {
		if err := putBack(ctx, d, tenant, id, func(t *cove.Tenant) string { return t.Name }, d.Directory.GetTenant, d.PutTenant); err != nil {
			return err
		}
	}
	for _, id := range names[recordcopy.Volume] {
		if err := putBack(ctx, d, recordcopy.Volume, id, func(v *cove.SavedVolume) cove.ID { return v.ID }, d.GetVolume, d.PutVolume); err != nil {
			return err
		}
	}
	for _, id := range names[recordcopy.Snapshot] {
		if err := putBack(ctx, d, recordcopy.Snapshot, id, func(s *cove.Snapshot) cove.ID { return s.ID }, d.GetSnapshot, d.PutSnapshot); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.blind { // else a later beat writes it, when what is here has been looked at
		if err := d.copies.Replace(originFile, []byte(now+"\n")); err != nil {
			return recordcopy.Unusable(d.cfg.Dir, err)
		}
	}
	d.origin, d.heard = now, time.Now()
	return nil
}

// putBack puts one record back that the directory does not know.
func putBack[R any, K ~string](ctx context.Context, d *Directory, kind recordcopy.Kind, id string, key func(*R) K, get func(context.Context, K) (*R, error), put func(context.Context, *R) error) error {
	var rec R
	if !d.copies.Read(kind, id, &rec) {
		d.cfg.Logger.WarnContext(ctx, "the copy of a record cannot be read, and is not put back", slog.String("record", recordcopy.FileOf(kind, id)), slog.String("folder", d.cfg.Dir))
		return nil
	}
	_, err := get(ctx, key(&rec))
	if cove.CodeOf(err) != cove.NotFound {
		return err
	}
	return put(ctx, &rec)
}
