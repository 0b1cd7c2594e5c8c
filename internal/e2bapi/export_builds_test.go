package e2bapi

import "github.com/cove-sandbox/cove"

// LowerBuildBound lets a tenant send only so many bytes for builds.
func (h *Handler) LowerBuildBound(most cove.Bytes) { h.builds.most = most }
