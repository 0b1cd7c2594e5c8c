package cove

import (
	"context"
	"io"
	"iter"
	"slices"
	"strings"
	"time"
)

// Templates are what sessions are made from. A template belongs to the tenant that
// built it, or is shared with all tenants. A name stands for the caller's own
// template, or else for the shared one; those of other tenants are NotFound.
//
// A caller changes templates of its own tenant with ScopeTemplates. shared, in each
// call, says that the template is a shared one, which needs ScopeAdmin. A name that is
// shared cannot become a tenant's own, which is Conflict.
type Templates interface {
	// List gives the caller's own and the shared ones, ready or not, by name.
	List(ctx context.Context) iter.Seq2[Template, error]
	// Build makes a template as a Dockerfile says. One of the same name is replaced
	// for sessions to come, and stays what it is for those that live.
	Build(ctx context.Context, req TemplateRequest) (*Template, error)
	// Tag gives what a template is now another name, which stays with it when the
	// first is built anew. What had that name is replaced, as by Build.
	Tag(ctx context.Context, name, as string, shared bool) (*Template, error)
	// Delete takes a name away. Sessions that live keep what they have.
	Delete(ctx context.Context, name string, shared bool) error
}

// Template is what sessions can be made from.
type Template struct {
	Name      string            `json:"name"`
	Shared    bool              `json:"shared"`           // with all tenants; otherwise it is the caller's tenant's
	Kind      string            `json:"kind,omitempty"`   // host, layer or tree
	Digest    string            `json:"digest,omitempty"` // of its files, sha256 in hex
	Source    string            `json:"source,omitempty"` // what it was made from, for people
	CreatedAt time.Time         `json:"created_at,omitzero"`
	Size      Bytes             `json:"size"`
	Files     int64             `json:"files"`
	Packages  []TemplatePackage `json:"packages,omitempty"` // those that were added to the host's
	Notes     []string          `json:"notes,omitempty"`    // what was left out
	Ready     bool              `json:"ready"`
	Why       string            `json:"why,omitempty"` // it is not ready
	Remedy    string            `json:"remedy,omitempty"`
	Providers []string          `json:"providers,omitempty"` // those that have it
}

// TemplatePackage is a package in a template.
type TemplatePackage struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// TemplateRequest says what a template is made from.
type TemplateRequest struct {
	Name   string
	Shared bool // with all tenants, which needs ScopeAdmin; otherwise it is the caller's tenant's
	// Files is a tar with a Dockerfile at its top and what that copies.
	Files io.Reader
	// OnOutput is called with what the build tells, in order.
	OnOutput func(Chunk)
}

// ValidTemplateName returns why a template cannot have this name, or nil.
func ValidTemplateName(name string) error {
	const longest, marks = 63, "._-"
	if len(name) <= longest && isName(name, marks) && name == strings.ToLower(name) && name == strings.Trim(name, marks) {
		return nil
	}
	return InvalidField("template", "%.80q is no name; use 1 to 63 lower-case letters, digits, dots, dashes and underscores", name)
}

// Validate reports a request that nothing can be made from.
func (r TemplateRequest) Validate() error {
	if r.Files == nil {
		return InvalidField("files", "are missing; send a tar with a Dockerfile in it")
	}
	return ValidTemplateName(r.Name)
}

// TenantTemplate is the full name of a template of a tenant, TENANT/NAME. Records,
// providers and a [TemplateMaker] know templates by full names; that of a shared one is
// its name.
func TenantTemplate(tenant, name string) string { return tenant + "/" + name }

// SplitTemplate returns the tenant of a full name, "" for a shared template, and the name
// that callers use.
func SplitTemplate(full string) (tenant, name string) {
	if tenant, name, ok := strings.Cut(full, "/"); ok {
		return tenant, name
	}
	return "", full
}

// VisibleTemplates returns the names of those templates that a tenant may know of, as it
// calls them: the shared ones and its own. The tenant "" has none of its own.
func VisibleTemplates(tenant string, full []string) (names []string) {
	for _, f := range full {
		if of, name := SplitTemplate(f); (of == "" || of == tenant) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// TemplateMaker keeps templates; the engine's Templates run on it. Its methods are
// as theirs, but names are full ones.
type TemplateMaker interface {
	Templates(ctx context.Context) ([]Template, error)
	// HasTemplate reports whether there is a template of this name, ready or not. It is
	// called for each session that is opened.
	HasTemplate(name string) (bool, error)
	BuildTemplate(ctx context.Context, req TemplateRequest) (*Template, error)
	TagTemplate(ctx context.Context, name, as string) (*Template, error)
	RemoveTemplate(ctx context.Context, name string) error
}
