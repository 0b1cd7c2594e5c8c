package noderecord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// The kinds of records that have copies.
const (
	kindSession  = "session"
	kindSnapshot = "snapshot"
	kindVolume   = "volume"
	kindTenant   = "tenant"
)

const (
	copySuffix  = ".json"
	draftSuffix = ".draft"
	originFile  = "origin"
)

// originAge is how old the time of the origin file may get while the directory answers.
const originAge = time.Minute

// Config is what a Directory is made of.
type Config struct {
	Directory cove.Directory
	Node      string
	Dir       string // of the copies; made when it is missing
	// Before says that this node was there before: where there are no copies then, they
	// were lost, or an older build ran here that made none.
	Before bool
	// Remembered is how long the directory remembers sessions that have ended.
	Remembered time.Duration
	Logger     *slog.Logger
}

// Directory is a cove.Directory that keeps copies of what it writes. It is safe for
// concurrent use; one process at a time may use a folder.
type Directory struct {
	cove.Directory

	cfg   Config
	root  *os.Root
	turns [64]sync.Mutex // so that the copies of one record are written in the order of its versions

	mu     sync.Mutex
	blind  bool       // guarded by mu; neither the directory nor a copy says what is on this node
	pulse  cove.Pulse // guarded by mu; the newest
	told   bool       // guarded by mu; Announce is through
	origin string     // guarded by mu; of the directory that the copies are of
	heard  time.Time  // guarded by mu; when that last answered
}

// Open opens the copies of a node around its directory. It does not close the folder
// where it fails, nor the directory.
func Open(cfg Config) (*Directory, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Directory{Directory: cfg.Directory, cfg: cfg}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, unusable(cfg.Dir, err)
	}
	var err error
	if d.root, err = os.OpenRoot(cfg.Dir); err != nil {
		return nil, unusable(cfg.Dir, err)
	}
	if err := d.begin(); err != nil {
		return nil, errors.Join(unusable(cfg.Dir, err), d.root.Close())
	}
	return d, nil
}

// begin reads which directory the copies are of, and removes drafts that a crash left.
func (d *Directory) begin() error {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), draftSuffix) {
			if err := d.root.Remove(e.Name()); err != nil {
				return err
			}
		}
	}
	data, err := d.root.ReadFile(originFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := d.root.Stat(originFile)
	if err != nil {
		return err
	}
	d.origin, d.heard = strings.TrimSpace(string(data)), info.ModTime()
	return nil
}

func unusable(dir string, err error) error {
	return cove.Wrap(cove.Unavailable, err, "the folder %s, which has copies of the records of this node, cannot be used", dir).
		Remedy("make it a folder of the user that runs cove, and see that its disk has room").Reason(cove.ReasonConfiguration)
}

// Close closes the directory and the folder.
func (d *Directory) Close() error { return errors.Join(d.Directory.Close(), d.root.Close()) }

// Beat implements cove.Membership.
func (d *Directory) Beat(ctx context.Context, n cove.Node) (cove.Pulse, error) {
	p, err := d.Directory.Beat(ctx, n)
	if err != nil {
		return p, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pulse = p
	if now := time.Now(); d.told && d.origin == p.Origin && now.Sub(d.heard) > originAge {
		if err := d.replace(originFile, []byte(p.Origin+"\n")); err == nil {
			d.heard = now
		}
	}
	return p, nil
}

// PutSession implements cove.SessionStore.
func (d *Directory) PutSession(ctx context.Context, s *cove.Session) error {
	defer d.turn(string(s.ID))()
	if err := d.Directory.PutSession(ctx, s); err != nil {
		return err
	}
	d.follow(ctx, s)
	return nil
}

// Restore implements cove.Directory.
func (d *Directory) Restore(ctx context.Context, s *cove.Session) error {
	defer d.turn(string(s.ID))()
	err := d.Directory.Restore(ctx, s)
	switch {
	case err == nil:
		d.follow(ctx, s)
	case cove.CodeOf(err) == cove.NotFound: // it has ended, or is another node's
		d.remove(ctx, kindSession, string(s.ID))
	}
	return err
}

// Adopt implements cove.Directory.
func (d *Directory) Adopt(ctx context.Context, id cove.ID) (*cove.Session, error) {
	defer d.turn(string(id))()
	s, err := d.Directory.Adopt(ctx, id)
	if err == nil {
		d.follow(ctx, s)
	}
	return s, err
}

// follow makes the copy what the directory was told: there is one while the session is
// this node's and has not ended.
func (d *Directory) follow(ctx context.Context, s *cove.Session) {
	if s.State == cove.Ended || s.Node != d.cfg.Node {
		d.remove(ctx, kindSession, string(s.ID))
		return
	}
	d.write(ctx, kindSession, string(s.ID), s)
}

// DeleteSession implements cove.SessionStore.
func (d *Directory) DeleteSession(ctx context.Context, id cove.ID) error {
	defer d.turn(string(id))()
	if err := d.Directory.DeleteSession(ctx, id); err != nil {
		return err
	}
	d.remove(ctx, kindSession, string(id))
	return nil
}

// PutSnapshot implements cove.SnapshotStore.
func (d *Directory) PutSnapshot(ctx context.Context, s *cove.Snapshot) error {
	defer d.turn(string(s.ID))()
	if err := d.Directory.PutSnapshot(ctx, s); err != nil {
		return err
	}
	if s.Node == d.cfg.Node {
		d.write(ctx, kindSnapshot, string(s.ID), s)
	}
	return nil
}

// DeleteSnapshot implements cove.SnapshotStore.
func (d *Directory) DeleteSnapshot(ctx context.Context, id cove.ID) error {
	defer d.turn(string(id))()
	if err := d.Directory.DeleteSnapshot(ctx, id); err != nil {
		return err
	}
	d.remove(ctx, kindSnapshot, string(id))
	return nil
}

// PutVolume implements cove.VolumeStore.
func (d *Directory) PutVolume(ctx context.Context, v *cove.SavedVolume) error {
	defer d.turn(string(v.ID))()
	if err := d.Directory.PutVolume(ctx, v); err != nil {
		return err
	}
	if v.Node == d.cfg.Node {
		d.write(ctx, kindVolume, string(v.ID), v)
	}
	return nil
}

// DeleteVolume implements cove.VolumeStore.
func (d *Directory) DeleteVolume(ctx context.Context, id cove.ID) error {
	defer d.turn(string(id))()
	if err := d.Directory.DeleteVolume(ctx, id); err != nil {
		return err
	}
	d.remove(ctx, kindVolume, string(id))
	return nil
}

// PutTenant implements cove.TenantStore.
func (d *Directory) PutTenant(ctx context.Context, t *cove.Tenant) error {
	defer d.turn(t.Name)()
	if err := d.Directory.PutTenant(ctx, t); err != nil {
		return err
	}
	d.write(ctx, kindTenant, fileOfTenant(t.Name), t)
	return nil
}

// GetTenant implements cove.TenantStore.
func (d *Directory) GetTenant(ctx context.Context, name string) (*cove.Tenant, error) {
	defer d.turn(name)()
	t, err := d.Directory.GetTenant(ctx, name)
	if err != nil {
		return nil, err
	}
	var kept cove.Tenant
	if !d.read(kindTenant, fileOfTenant(name), &kept) || kept != *t {
		d.write(ctx, kindTenant, fileOfTenant(name), t)
	}
	return t, nil
}

// fileOfTenant is a name of a file for a tenant's.
func fileOfTenant(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// Keeps reports whether what belongs to a session must stay on this node: there is a
// copy of its record, so the directory did not say that it has ended or is elsewhere.
// Where that cannot be found out, it is true. An id of which nobody can know anything
// gets an empty copy, so that it is kept at the next start, too.
func (d *Directory) Keeps(id cove.ID) bool {
	if !id.Valid() {
		return false
	}
	name := fileOf(kindSession, string(id))
	if _, err := d.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	d.mu.Lock()
	blind := d.blind
	d.mu.Unlock()
	if blind {
		err := d.replace(name, nil)
		d.cfg.Logger.Warn("Redis and the copies on this node's disk both lost the records of its sessions: what is left of this one is kept, and not served; remove the copy and restart the node to have it removed",
			slog.String("session_id", string(id)), slog.String("record", name), slog.String("folder", d.cfg.Dir), slog.Any("error", err))
	}
	return blind
}

// turn waits until nobody else changes the copies of a record.
func (d *Directory) turn(id string) (done func()) {
	sum := 0
	for _, b := range []byte(id) {
		sum += int(b)
	}
	m := &d.turns[sum%len(d.turns)]
	m.Lock()
	return m.Unlock
}

// write replaces a copy whole. One that cannot be written is logged and the older one
// stays: the directory has the record, and its caller can go on.
func (d *Directory) write(ctx context.Context, kind, id string, rec any) {
	name := fileOf(kind, id)
	if kind != kindTenant && !cove.ID(id).Valid() {
		return // it is the name of no file
	}
	data, err := json.Marshal(rec)
	if err == nil {
		err = d.replace(name, data)
	}
	if err != nil {
		d.cfg.Logger.ErrorContext(ctx, "the copy of a record cannot be written; if Redis loses its data, this node cannot put it back",
			slog.String("record", name), slog.Any("error", err))
	}
}

// replace writes a file whole.
func (d *Directory) replace(name string, data []byte) error {
	if err := d.root.WriteFile(name+draftSuffix, data, 0o600); err != nil {
		return err
	}
	return d.root.Rename(name+draftSuffix, name)
}

func (d *Directory) remove(ctx context.Context, kind, id string) {
	if !cove.ID(id).Valid() {
		return
	}
	if err := d.root.Remove(fileOf(kind, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.cfg.Logger.ErrorContext(ctx, "the copy of a record cannot be removed", slog.String("record", fileOf(kind, id)), slog.Any("error", err))
	}
}

// read reads a copy into rec. It reports whether there is one that can be read.
func (d *Directory) read(kind, id string, rec any) bool {
	data, err := d.root.ReadFile(fileOf(kind, id))
	return err == nil && json.Unmarshal(data, rec) == nil
}

func fileOf(kind, id string) string { return kind + "-" + id + copySuffix }
