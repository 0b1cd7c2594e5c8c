package cove

import (
	"context"
	"iter"
	"time"
)

// Volumes keeps folders that outlive sessions. Several sessions of their tenant
// may have one at a time, by [Volume.Name].
type Volumes interface {
	// Create makes an empty volume. A name that the tenant has already is a
	// Conflict.
	Create(ctx context.Context, req VolumeRequest) (*SavedVolume, error)
	// Get finds a volume by its id or its name.
	Get(ctx context.Context, ref string) (*SavedVolume, error)
	List(ctx context.Context, f VolumeFilter) iter.Seq2[*SavedVolume, error]
	// Delete removes a volume, by its id or its name, with all that is in it. One
	// that a session has is a Conflict.
	Delete(ctx context.Context, ref string) error
}

// SavedVolume is the record of a volume.
type SavedVolume struct {
	ID        ID        `json:"id"`
	Tenant    string    `json:"tenant"`
	Name      string    `json:"name"`
	Node      string    `json:"node,omitempty"` // which one has the files, where there are several
	Limit     Bytes     `json:"limit"`          // on what it holds
	Files     int64     `json:"files"`          // how many files and folders it may hold
	CreatedAt time.Time `json:"created_at"`
	// Pending is one that is being made or removed. Nobody is shown it: it says
	// after a crash what is to be removed.
	Pending bool `json:"pending,omitempty"`
}

// VolumeRequest says what a volume is known by.
type VolumeRequest struct {
	Name           string
	IdempotencyKey string // the same key and request give the same volume
}

// VolumeFilter selects volumes; zero fields select all.
type VolumeFilter struct {
	Tenant string // set by the engine
	After  ID
	Limit  int
}

// maxVolumeName is how long the name of a volume may be.
const maxVolumeName = 64

// Validate reports a request that cannot be taken.
func (r VolumeRequest) Validate() error {
	if err := validText("Idempotency-Key", r.IdempotencyKey, maxNameLen); err != nil {
		return err
	}
	return validVolumeName("name", r.Name)
}

// validVolumeName refuses what could be taken for a path, a flag or an id.
func validVolumeName(field, name string) error {
	switch {
	case len(name) > maxVolumeName:
		return InvalidField(field, "is %d bytes long; the most is %d", len(name), maxVolumeName)
	case !isName(name, "-_.") || !isName(name[:1], ""):
		return InvalidField(field, "%q is not the name of a volume; use letters, digits, -, _ and ., with a letter or a digit at the beginning", name)
	case ID(name).Valid():
		return InvalidField(field, "%q has the form of an id; use another name", name)
	}
	return nil
}
