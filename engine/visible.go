package engine

import "github.com/cove-sandbox/cove"

// visible returns a copy of an answer as its caller may see it: a template by its own
// name, without the tenant that it belongs to; a session without the values of its
// environment; a key without those and without its hash.
func visible[T any](out T) T {
	switch full := any(out).(type) {
	case *cove.Session:
		return copied(out, full, func(s *cove.Session) { s.Spec = s.Spec.Redacted(); plainTemplate(&s.Spec.Template) })
	case *cove.Snapshot:
		return copied(out, full, func(s *cove.Snapshot) { plainTemplate(&s.Template) })
	case *cove.Key:
		return copied(out, full, func(k *cove.Key) { k.Hash, k.Defaults = nil, k.Defaults.Redacted() })
	case *cove.CodeResult:
		return copied(out, full, func(r *cove.CodeResult) { plainTemplate(&r.Template) })
	case *cove.CodeAnalysis:
		return copied(out, full, func(a *cove.CodeAnalysis) { plainTemplate(&a.Template) })
	}
	return out
}

// copied returns a changed copy of full, which is out, or out where it is nil.
func copied[T, S any](out T, full *S, change func(*S)) T {
	if full == nil {
		return out
	}
	c := *full
	change(&c)
	return any(&c).(T) //nolint:forcetypeassert // T is *S
}

// plainTemplate takes the tenant off a template's full name.
func plainTemplate(name *string) { _, *name = cove.SplitTemplate(*name) }
