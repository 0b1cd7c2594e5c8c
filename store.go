package cove

import (
	"context"
	"io"
	"iter"
	"time"
)

// Store keeps what must survive a restart. Callers take the narrowest part.
// Values passed in and out are copies: changing them changes nothing kept. Ids
// are set by the caller, texts are UTF-8, and lists come by id.
type Store interface {
	SessionStore
	KeyStore
	TenantStore
	SnapshotStore
	VolumeStore
	RunStore
	MessageStore
	ClaimStore
	Close() error
}

// SessionStore keeps session records. At most one live session holds a
// (tenant, user, thread) in which user or thread is not empty.
type SessionStore interface {
	// PutSession inserts a record with Version 0 or replaces the one whose
	// version is s.Version, and sets s.Version to the new one. It is Conflict
	// where the version is not current, also when there is no record of that
	// id, or the (tenant, user, thread) is held by another live session.
	PutSession(ctx context.Context, s *Session) error
	GetSession(ctx context.Context, id ID) (*Session, error) // NotFound
	// Sessions yields records by id; Ended ones only when f.State says so.
	Sessions(ctx context.Context, f SessionFilter) iter.Seq2[*Session, error]
	DeleteSession(ctx context.Context, id ID) error // idempotent
}

// KeyStore keeps keys.
type KeyStore interface {
	PutKey(ctx context.Context, k *Key) error                 // inserts or replaces
	KeyByHash(ctx context.Context, hash []byte) (*Key, error) // NotFound
	KeyByID(ctx context.Context, id ID) (*Key, error)         // NotFound
	Keys(ctx context.Context) iter.Seq2[*Key, error]
}

// TenantStore keeps tenants and what they have consumed.
type TenantStore interface {
	PutTenant(ctx context.Context, t *Tenant) error
	GetTenant(ctx context.Context, name string) (*Tenant, error) // NotFound
	// AddUsage adds to what a tenant has consumed and returns the sum.
	AddUsage(ctx context.Context, tenant string, by Consumption) (Consumption, error)
}

// SnapshotStore keeps the records of snapshots.
type SnapshotStore interface {
	PutSnapshot(ctx context.Context, s *Snapshot) error
	GetSnapshot(ctx context.Context, id ID) (*Snapshot, error) // NotFound
	Snapshots(ctx context.Context, f SnapshotFilter) iter.Seq2[*Snapshot, error]
	DeleteSnapshot(ctx context.Context, id ID) error // idempotent
}

// VolumeStore keeps the records of volumes.
type VolumeStore interface {
	PutVolume(ctx context.Context, v *SavedVolume) error
	GetVolume(ctx context.Context, id ID) (*SavedVolume, error) // NotFound
	Volumes(ctx context.Context, f VolumeFilter) iter.Seq2[*SavedVolume, error]
	DeleteVolume(ctx context.Context, id ID) error // idempotent
}

// RunStore keeps the records of runs.
type RunStore interface {
	PutRun(ctx context.Context, r *Run) error
	GetRun(ctx context.Context, id ID) (*Run, error) // NotFound
	Runs(ctx context.Context, f RunFilter) iter.Seq2[*Run, error]
	DeleteRun(ctx context.Context, id ID) error // idempotent
	// TrimRuns forgets runs that have ended, and returns how many: those from before
	// a time, and of each tenant the oldest beyond so many.
	TrimRuns(ctx context.Context, before time.Time, most int) (int64, error)
}

// MessageStore keeps what was said in chats.
type MessageStore interface {
	PutMessage(ctx context.Context, m *Message) error // inserts or replaces
	Messages(ctx context.Context, f MessageFilter) iter.Seq2[*Message, error]
	// DeleteMessages forgets a thread of an owner.
	DeleteMessages(ctx context.Context, tenant, owner, thread string) error
	// TrimMessages forgets what was said before a time, and returns how much.
	TrimMessages(ctx context.Context, before time.Time) (int64, error)
}

// Claim ties an idempotency key to what it made.
type Claim struct {
	Tenant    string
	Key       string
	Digest    string // of the request
	Result    ID     // what the first request made, or makes if it comes to that; may be a name or a number as text
	Node      string // who works on it or did; "" where there is one node, or that one is gone
	ExpiresAt time.Time
}

// ClaimStore keeps claims.
type ClaimStore interface {
	// TakeClaim inserts c unless a claim with its tenant and key exists that has
	// not expired at now; then it returns that one. It returns nil when c is in.
	TakeClaim(ctx context.Context, c Claim, now time.Time) (*Claim, error)
	// SetClaim fills in what a claim made, and is NotFound without one;
	// DropClaim forgets one and is idempotent.
	SetClaim(ctx context.Context, tenant, key string, result ID) error
	DropClaim(ctx context.Context, tenant, key string) error
}

// Archives keeps the workspaces of stopped sessions, as tar streams.
type Archives interface {
	// Put stores a stream whole or not at all.
	Put(ctx context.Context, id ID, r io.Reader) (Bytes, error)
	Get(ctx context.Context, id ID) (io.ReadCloser, error) // NotFound
	Delete(ctx context.Context, id ID) error               // idempotent
	List(ctx context.Context) iter.Seq2[ID, error]
}

// Folders keeps the files of volumes, in folders of the host that sandboxes of
// every provider can use.
type Folders interface {
	// Make makes an empty folder, unless it is there.
	Make(ctx context.Context, id ID) error
	// Path returns where a folder is, for a provider to mount; NotFound.
	Path(ctx context.Context, id ID) (string, error)
	// Measure counts what is in a folder, until it is more than enough; NotFound.
	Measure(ctx context.Context, id ID, enough Filling) (Filling, error)
	// Remove removes a folder with all that is in it. It is idempotent.
	Remove(ctx context.Context, id ID) error
}

// Filling is how much is in a folder.
type Filling struct {
	Bytes Bytes // that its files take on the disk
	Files int64 // files and folders
	// Unseen says that there may be more: folders that are closed to us, or more of
	// them in one another than anybody looks at.
	Unseen bool
}
