package noderecord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/recordcopy"
)

// tenant is the kind of the copies of tenants' bounds.
const tenant recordcopy.Kind = "tenant"

const originFile = "origin"

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

	cfg    Config
	copies *recordcopy.Folder

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
	copies, err := recordcopy.Open(cfg.Dir, false, cfg.Logger) // without gaps: Keeps looks at any time
	if err != nil {
		return nil, err
	}
	d := &Directory{Directory: cfg.Directory, cfg: cfg, copies: copies}
	if err := d.begin(); err != nil {
		return nil, errors.Join(recordcopy.Unusable(cfg.Dir, err), copies.Close())
	}
	return d, nil
}

// begin settles what a crash left, and reads which directory the copies are of.
func (d *Directory) begin() error {
	if err := d.copies.Settle(); err != nil {
		return err
	}
	data, err := d.copies.Root.ReadFile(originFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := d.copies.Root.Stat(originFile)
	if err != nil {
		return err
	}
	d.origin, d.heard = strings.TrimSpace(string(data)), info.ModTime()
	return nil
}

// Close closes the directory and the folder.
func (d *Directory) Close() error { return errors.Join(d.Directory.Close(), d.copies.Close()) }

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
		if err := d.copies.Replace(originFile, []byte(p.Origin+"\n")); err == nil {
			d.heard = now
		}
	}
	return p, nil
}

// PutSession implements cove.SessionStore.
func (d *Directory) PutSession(ctx context.Context, s *cove.Session) error {
	defer d.copies.Turn(string(s.ID))()
	if err := d.Directory.PutSession(ctx, s); err != nil {
		return err
	}
	d.follow(ctx, s)
	return nil
}

// Restore implements cove.Directory.
func (d *Directory) Restore(ctx context.Context, s *cove.Session) error {
	defer d.copies.Turn(string(s.ID))()
	err := d.Directory.Restore(ctx, s)
	switch {
	case err == nil:
		d.follow(ctx, s)
	case cove.CodeOf(err) == cove.NotFound: // it has ended, or is another node's
		d.copies.Remove(ctx, recordcopy.Session, string(s.ID))
	}
	return err
}

// Adopt implements cove.Directory.
func (d *Directory) Adopt(ctx context.Context, id cove.ID) (*cove.Session, error) {
	defer d.copies.Turn(string(id))()
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
		d.copies.Remove(ctx, recordcopy.Session, string(s.ID))
		return
	}
	d.copies.Write(ctx, recordcopy.Session, string(s.ID), s)
}

// DeleteSession implements cove.SessionStore.
func (d *Directory) DeleteSession(ctx context.Context, id cove.ID) error {
	defer d.copies.Turn(string(id))()
	if err := d.Directory.DeleteSession(ctx, id); err != nil {
		return err
	}
	d.copies.Remove(ctx, recordcopy.Session, string(id))
	return nil
}

// PutSnapshot implements cove.SnapshotStore.
func (d *Directory) PutSnapshot(ctx context.Context, s *cove.Snapshot) error {
	defer d.copies.Turn(string(s.ID))()
	if err := d.Directory.PutSnapshot(ctx, s); err != nil {
		return err
	}
	if s.Node == d.cfg.Node {
		d.copies.Write(ctx, recordcopy.Snapshot, string(s.ID), s)
	}
	return nil
}

// DeleteSnapshot implements cove.SnapshotStore.
func (d *Directory) DeleteSnapshot(ctx context.Context, id cove.ID) error {
	defer d.copies.Turn(string(id))()
	if err := d.Directory.DeleteSnapshot(ctx, id); err != nil {
		return err
	}
	d.copies.Remove(ctx, recordcopy.Snapshot, string(id))
	return nil
}

// PutVolume implements cove.VolumeStore.
func (d *Directory) PutVolume(ctx context.Context, v *cove.SavedVolume) error {
	defer d.copies.Turn(string(v.ID))()
	if err := d.Directory.PutVolume(ctx, v); err != nil {
		return err
	}
	if v.Node == d.cfg.Node {
		d.copies.Write(ctx, recordcopy.Volume, string(v.ID), v)
	}
	return nil
}

// DeleteVolume implements cove.VolumeStore.
func (d *Directory) DeleteVolume(ctx context.Context, id cove.ID) error {
	defer d.copies.Turn(string(id))()
	if err := d.Directory.DeleteVolume(ctx, id); err != nil {
		return err
	}
	d.copies.Remove(ctx, recordcopy.Volume, string(id))
	return nil
}

// PutTenant implements cove.TenantStore.
func (d *Directory) PutTenant(ctx context.Context, t *cove.Tenant) error {
	defer d.copies.Turn(t.Name)()
	if err := d.Directory.PutTenant(ctx, t); err != nil {
		return err
	}
	d.copies.Write(ctx, tenant, fileOfTenant(t.Name), t)
	return nil
}

// GetTenant implements cove.TenantStore.
func (d *Directory) GetTenant(ctx context.Context, name string) (*cove.Tenant, error) {
	defer d.copies.Turn(name)()
	t, err := d.Directory.GetTenant(ctx, name)
	if err != nil {
		return nil, err
	}
	var kept cove.Tenant
	if !d.copies.Read(tenant, fileOfTenant(name), &kept) || kept != *t {
		d.copies.Write(ctx, tenant, fileOfTenant(name), t)
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
// Where that cannot be found out, it is true. An id of which nothing can be known
// gets an empty copy, so that it is kept at the next start, too.
func (d *Directory) Keeps(id cove.ID) bool {
	if !id.Valid() {
		return false
	}
	name := recordcopy.FileOf(recordcopy.Session, string(id))
	if _, err := d.copies.Root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	d.mu.Lock()
	blind := d.blind
	d.mu.Unlock()
	if blind {
		log := d.cfg.Logger
		if err := d.copies.Replace(name, nil); err != nil {
			log = log.With(slog.Any("error", err))
		}
		log.Warn("Redis and the copies on this node's disk both lost the records of its sessions: what is left of this one is kept, and not served; remove the copy and restart the node to have it removed",
			slog.String("session_id", string(id)), slog.String("record", name), slog.String("folder", d.cfg.Dir))
	}
	return blind
}
