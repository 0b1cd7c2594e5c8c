package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// How often the files of a volume are counted. A look may take a small part of the
// time only.
const (
	volumeInterval = time.Second
	volumeShare    = 20
	volumeLongest  = 30 * time.Second // without a look, however long one takes
)

// look is what somebody saw in a volume, which counts until a time.
type look struct {
	cove.Filling

	until time.Time
}

// overLimit reports whether a volume holds more than it may, as far as anybody has
// looked lately.
func (e *Engine) overLimit(ctx context.Context, rec *cove.SavedVolume) (bool, error) {
	d := &e.volumes
	select {
	case d.eyes <- struct{}{}:
		defer func() { <-d.eyes }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	began := time.Now()
	seen, ok := d.looks[rec.ID]
	if !ok || !began.Before(seen.until) {
		filling, err := e.cfg.Folders.Measure(ctx, rec.ID, cove.Filling{Bytes: rec.Limit, Files: rec.Files})
		if err != nil {
			return false, err
		}
		maps.DeleteFunc(d.looks, func(_ cove.ID, l look) bool { return !began.Before(l.until) })
		now := time.Now()
		seen = look{filling, now.Add(min(max(volumeInterval, volumeShare*now.Sub(began)), volumeLongest))}
		d.looks[rec.ID] = seen
	}
	return seen.Bytes > rec.Limit || seen.Files > rec.Files || seen.Unseen, nil
}

// checkVolumes reports a volume that a session cannot have. One that is over its
// limit can be read.
func (e *Engine) checkVolumes(ctx context.Context, s *cove.Session) error {
	for _, v := range s.Spec.Volumes {
		if v.Name == "" {
			continue
		}
		rec, err := e.volumeOf(ctx, s.Tenant, v.Name)
		if err == nil {
			err = e.onlyHere(rec.Node)
		}
		if err != nil {
			return err
		}
		if !v.Write {
			continue
		}
		if err := e.RoomOnDisk(); err != nil {
			return err
		}
		over, err := e.overLimit(ctx, rec)
		if err != nil {
			return filesGone(rec, err)
		}
		if over {
			return cove.Errorf(cove.Exhausted, "the volume %q is over its limit of %s and %d files, or has folders that nobody can look into", rec.Name, rec.Limit, rec.Files).
				Reason(cove.ReasonVolumeFull).Remedy("open it for reading, take out what you need, and delete it")
		}
	}
	return nil
}

// filesGone words that a volume has lost its folder.
func filesGone(rec *cove.SavedVolume, err error) error {
	if cove.CodeOf(err) != cove.NotFound {
		return err
	}
	return cove.Wrap(cove.Unavailable, err, "the files of volume %q are gone", rec.Name).Remedy("delete it, and make it anew")
}

// withFolders returns a spec as providers know it: with the folder of the host in the
// place of the name of a volume.
func (e *Engine) withFolders(ctx context.Context, tenant string, s cove.Spec) (cove.Spec, error) {
	if !slices.ContainsFunc(s.Volumes, func(v cove.Volume) bool { return v.Name != "" }) {
		return s, nil
	}
	s = s.Clone()
	for i, v := range s.Volumes {
		if v.Name == "" {
			continue
		}
		rec, err := e.volumeOf(ctx, tenant, v.Name)
		if err != nil {
			return s, err
		}
		folder, err := e.cfg.Folders.Path(ctx, rec.ID)
		if err != nil {
			return s, filesGone(rec, err)
		}
		s.Volumes[i].Name, s.Volumes[i].Source = "", folder
	}
	return s, nil
}

// withoutFolders takes folders of the host out of what a caller is told: a provider
// knows volumes by no other name.
func withoutFolders(err error, named, mounted []cove.Volume) error {
	e, ok := errors.AsType[*cove.Error](err)
	if !ok {
		return err
	}
	text := e.Message
	for i, v := range named {
		if v.Name != "" {
			text = strings.ReplaceAll(text, mounted[i].Source, v.Name)
		}
	}
	if text == e.Message {
		return err
	}
	told := *e
	told.Message, told.Err = text, err
	return &told
}

// volumeKey names a volume.
type volumeKey struct{ tenant, name string }

// watchVolumes ends the sessions that can write to a volume which is over its limit.
func (e *Engine) watchVolumes(ctx context.Context) (int64, error) {
	writers := map[volumeKey][]*lease{}
	for _, l := range e.snapshotLeases() {
		for _, name := range l.writing() {
			k := volumeKey{l.tenant, name}
			writers[k] = append(writers[k], l)
		}
	}
	var n int64
	var failed error
	for k, leases := range writers {
		rec, err := e.volumeOf(ctx, k.tenant, k.name)
		over := false
		if err == nil {
			over, err = e.overLimit(ctx, rec)
		}
		if cove.CodeOf(err) != cove.NotFound { // who opens it the next time is told
			failed = errors.Join(failed, err)
		}
		if !over {
			continue
		}
		for _, l := range leases {
			ended, err := e.endOverrun(ctx, l, k.name)
			failed = errors.Join(failed, err)
			if ended {
				n++
			}
		}
	}
	return n, failed
}

// writing returns the names of the volumes that a lease can write to now.
func (l *lease) writing() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	if l.rec.State != cove.Running {
		return nil
	}
	for _, v := range l.rec.Spec.Volumes {
		if v.Name != "" && v.Write && !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// endOverrun ends a session that can write to a volume, unless somebody changes it:
// that one is looked at again next time.
func (e *Engine) endOverrun(ctx context.Context, l *lease, name string) (bool, error) {
	if !l.tryTurn() {
		return false, nil
	}
	defer l.giveTurn()
	if !slices.Contains(l.writing(), name) {
		return false, nil
	}
	s := l.view()
	if err := e.end(ctx, l, cove.ReasonVolumeOverrun); err != nil {
		return false, err
	}
	e.note(ctx, "session.overrun", s, cove.ReasonVolumeOverrun)
	return true, nil
}
