package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// VolumeRequest asks for an empty volume.
type VolumeRequest struct {
	Name string `json:"name" jsonschema:"what sessions of the tenant mount it by: letters, digits, -, _ and ., at most 64"`
}

// SavedVolume is the answer about a volume.
type SavedVolume struct {
	VolumeID   cove.ID    `json:"volume_id"`
	Name       string     `json:"name"`
	LimitBytes cove.Bytes `json:"limit_bytes"`
	LimitFiles int64      `json:"limit_files"`
	Tenant     string     `json:"tenant"`
	NodeID     string     `json:"node_id,omitempty" jsonschema:"which one has the files, where there are several"`
	CreatedAt  time.Time  `json:"created_at"`
}

// SavedVolumeOf returns the form of v.
func SavedVolumeOf(v *cove.SavedVolume) SavedVolume {
	return SavedVolume{VolumeID: v.ID, Name: v.Name, LimitBytes: v.Limit, LimitFiles: v.Files, Tenant: v.Tenant, NodeID: v.Node, CreatedAt: v.CreatedAt}
}

// Cove returns the platform's own form.
func (w SavedVolume) Cove() *cove.SavedVolume {
	return &cove.SavedVolume{ID: w.VolumeID, Tenant: w.Tenant, Name: w.Name, Node: w.NodeID, Limit: w.LimitBytes, Files: w.LimitFiles, CreatedAt: w.CreatedAt}
}
