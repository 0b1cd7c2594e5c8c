//go:build !lean

package local

import "github.com/cove-sandbox/cove/internal/egress"

// Egress is what the operator says about the ways out of sandboxes.
type Egress = egress.Settings

// Secret is a credential that requests get on their way out.
type Secret = egress.Secret

// Limits bounds the connections of a sandbox.
type Limits = egress.Limits
