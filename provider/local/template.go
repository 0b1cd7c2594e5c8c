package local

import "github.com/cove-sandbox/cove/internal/template"

// Templates are what sandboxes can be made from beside the base.
type Templates = template.Set

// Template is one of them.
type Template = template.Template

// TemplateKind says what a template's tree is.
type TemplateKind = template.Kind

// The kinds of templates.
const (
	KindHost  = template.KindHost
	KindLayer = template.KindLayer
	KindTree  = template.KindTree
)
