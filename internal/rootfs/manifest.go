package rootfs

import (
	"regexp"
	"time"

	"github.com/cove-sandbox/cove"
)

// Kind says what a template's files are.
type Kind string

// The kinds.
const (
	KindHost  Kind = "host"  // the host's own /usr, and nothing else
	KindLayer Kind = "layer" // files that lie over the host's /usr, and settings for /etc
	KindTree  Kind = "tree"  // all that a sandbox has; nothing of the host
)

// Package is one Debian package in a template.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Manifest says what a template is. Digest, Size, Files and Seal are the store's.
type Manifest struct {
	Name     string              `json:"name"`
	Kind     Kind                `json:"kind"`
	Digest   string              `json:"digest,omitempty"` // of the tree, sha256 in hex; "" without one
	Source   string              `json:"source,omitempty"` // what it was made from, for people
	Created  time.Time           `json:"created_at,omitzero"`
	Size     cove.Bytes          `json:"size"`
	Files    int64               `json:"files"`
	Packages []Package           `json:"packages,omitempty"` // those that were added
	Base     string              `json:"base,omitempty"`     // of a layer: the [Facts] of the host below
	Env      map[string]string   `json:"env,omitempty"`      // what programs find unless the session says otherwise
	Path     []string            `json:"path,omitempty"`     // where programs are searched first
	Preload  map[string][]string `json:"preload,omitempty"`  // by language: modules that nearly all code imports
	Notes    []string            `json:"notes,omitempty"`    // what was left out, and why
	Seal     string              `json:"seal,omitempty"`
}

// Entry is a template as it is here and now.
type Entry struct {
	Manifest

	Ready  bool   `json:"ready"`
	Why    string `json:"why,omitempty"`    // it is not ready
	Remedy string `json:"remedy,omitempty"` // what to do about it
}

var goodName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// CheckName returns why a template cannot have this full name, or nil. The name of a
// builtin template is always a shared one.
func CheckName(full string) error {
	tenant, name := cove.SplitTemplate(full)
	_, builtin := recipeOf(name)
	if full != name && (name == Base || builtin) {
		return cove.Errorf(cove.Conflict, "template %s is builtin and shared with all tenants", name).With("field", "template").Remedy("use another name")
	}
	if goodName.MatchString(name) && (full == name || cove.ValidTenant(tenant) == nil) {
		return nil
	}
	return cove.InvalidField("template", "%.80q is no name; use 1 to 63 lower-case letters, digits, dots, dashes and underscores, and for a template of one tenant TENANT/ before them", full)
}
