package engine

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// fill returns s with its zero fields taken from def.
func fill(s, def cove.Spec) cove.Spec {
	or(&s.Provider, def.Provider)
	or(&s.Template, def.Template)
	or(&s.Flavor, def.Flavor)
	or(&s.Project, def.Project)
	or(&s.Policy, def.Policy)
	or(&s.Snapshot, def.Snapshot)
	or(&s.Idle, def.Idle)
	or(&s.Lifetime, def.Lifetime)
	or(&s.FixedEnd, def.FixedEnd)
	or(&s.OnEnd, def.OnEnd)
	or(&s.Wake, def.Wake)
	or(&s.PublicPorts, def.PublicPorts)
	or(&s.Resources.CPUs, def.Resources.CPUs)
	or(&s.Resources.Memory, def.Resources.Memory)
	or(&s.Resources.PIDs, def.Resources.PIDs)
	or(&s.Workspace.Kind, def.Workspace.Kind)
	or(&s.Workspace.Size, def.Workspace.Size)
	or(&s.Workspace.Files, def.Workspace.Files)
	or(&s.Workspace.Moves, def.Workspace.Moves)
	or(&s.Require.Isolation, def.Require.Isolation)
	if s.Network.Mode == "" {
		s.Network = def.Network
	}
	s.Env = merged(s.Env, def.Env)
	s.Metadata = merged(s.Metadata, def.Metadata)
	return s
}

func or[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// merged returns a with what b adds.
func merged(a, b map[string]string) map[string]string {
	for k, v := range b {
		if _, ok := a[k]; !ok {
			if a == nil {
				a = map[string]string{}
			}
			a[k] = v
		}
	}
	return a
}

// defaultLifetime is the lifetime of a session without one whose files go with it. A
// session that keeps its files is stopped or paused after that long without a pause,
// whatever runs in it.
const defaultLifetime = 24 * time.Hour

// usualEnd is what happens at the end of a session whose caller did not say.
func (c Config) usualEnd() cove.EndAction {
	if c.Fleeting || c.Archives == nil {
		return cove.EndClose
	}
	return cove.EndStop
}

// fillEnd fills in how the session's time ends.
func (c Config) fillEnd(s *cove.Spec) {
	or(&s.OnEnd, c.usualEnd())
	if !s.FixedEnd && !s.OnEnd.Keeps() { // a fixed end says how long it may last, and files are kept for longer
		or(&s.Lifetime, defaultLifetime)
	}
}

// resolve fills in what a request left out: request beats key beats settings
// beats flavor. It refuses names that this platform does not know.
func (e *Engine) resolve(p cove.Principal, asked cove.Spec) (cove.Spec, error) {
	s := asked.Clone()
	s.Floors = asked.Asked()
	s = fill(s, p.Defaults.Clone())
	s = fill(s, e.cfg.Defaults.Clone())
	if _, ok := e.cfg.Flavors[s.Flavor]; !ok {
		return s, cove.InvalidField("flavor", "%.40q is unknown; use one of %s", s.Flavor, e.cfg.flavorNames())
	}
	s.Resources = e.cfg.resources(s)
	if err := fitWorkspace(&s, asked.Workspace.Size != 0); err != nil {
		return s, err
	}
	e.cfg.fillEnd(&s)
	if err := checkFiles(s.Workspace); err != nil {
		return s, err
	}
	if s.Policy != "" && !slices.Contains(e.cfg.Policies, s.Policy) {
		return s, cove.InvalidField("policy", "%.40q is unknown; use one of %s", s.Policy, strings.Join(e.cfg.Policies, ", "))
	}
	if err := e.cfg.checkPolicy(s); err != nil {
		return s, err
	}
	if s.Provider != "" && !slices.Contains(e.cfg.providerNames(), s.Provider) {
		return s, cove.InvalidField("provider", "%.40q is unknown; use one of %s", s.Provider, strings.Join(e.cfg.providerNames(), ", "))
	}
	var err error
	if s.Template, err = e.templateFor(p.Tenant, s.Template); err != nil {
		return s, err
	}
	if s.Workspace.Moves && e.shared() && e.cfg.Moving == nil {
		return s, cove.Errorf(cove.Unsupported, "this cluster keeps no workspaces where other nodes find them").With("field", "workspace.moves").
			Remedy("set COVE_ARCHIVE_URL on every node, or leave out workspace.moves")
	}
	return e.resolveVolumes(s)
}

// resources are those of a spec: its own, those of the settings, those that hold for
// a provider, and those of the flavor, in that order.
func (c Config) resources(s cove.Spec) cove.Resources {
	s = fill(cove.Spec{Provider: s.Provider, Flavor: s.Flavor, Resources: s.Resources}, c.Defaults.Clone())
	s = fill(s, cove.Spec{Resources: c.Sizes[cmp.Or(s.Provider, c.Provider)]})
	return fill(s, cove.Spec{Resources: c.Flavors[s.Flavor]}).Resources
}

// SpecFor is the spec of a session that asked for nothing but its provider, "" for that
// of the settings. It is for records that are made again of sessions about which no more
// is known.
func (c Config) SpecFor(provider string) cove.Spec {
	c = c.withDefaults()
	s := fill(cove.Spec{Provider: cmp.Or(provider, c.Provider)}, c.Defaults.Clone())
	s.Resources = c.resources(s)
	_ = fitWorkspace(&s, false) // only a size that was asked for can be refused
	c.fillEnd(&s)
	return s
}

// leftForPrograms is the part of a sandbox's memory that a workspace in it must leave.
const leftForPrograms = 4

// fitWorkspace makes a workspace in memory a part of the sandbox's memory: a size that
// was not asked for is half of it at most, and one that leaves too little is refused.
func fitWorkspace(s *cove.Spec, asked bool) error {
	w, memory := &s.Workspace, s.Resources.Memory
	if w.Kind == cove.WorkspaceDisk || memory == 0 {
		return nil
	}
	if !asked {
		w.Size = min(w.Size, memory/2)
		return nil
	}
	if most := memory - memory/leftForPrograms; w.Size > most {
		return cove.InvalidField("workspace.size_mb", "a workspace in memory is part of the sandbox's memory, and %s of %s leave too little for programs", w.Size, memory).
			Remedy("ask for %s at most, for more memory by memory_limit or flavor, or for a workspace on disk by workspace.kind", most)
	}
	return nil
}

// resolveVolumes checks what was asked for against the operator's list and adds
// what the operator mounts everywhere.
func (e *Engine) resolveVolumes(s cove.Spec) (cove.Spec, error) {
	for i, v := range s.Volumes {
		if v.Name != "" {
			if err := e.keepsVolumes(); err != nil {
				return s, err
			}
			continue // whether it is there is looked at when the session gets its sandbox
		}
		real, err := e.allowedSource(v)
		if err != nil {
			return s, err
		}
		s.Volumes[i].Source = real
	}
	for _, v := range e.cfg.Shared {
		if slices.ContainsFunc(s.Volumes, func(o cove.Volume) bool { return o.Target == v.Target }) {
			continue
		}
		// Providers follow no links. What is not there, they name.
		if real, err := filepath.EvalSymlinks(v.Source); err == nil {
			v.Source = real
		}
		if e.holdsPrivate(v.Source) {
			return s, cove.Errorf(cove.Unavailable, "the shared volume %.200q holds files of Cove's own, which no sandbox may see", v.Source).
				Remedy("take it out of MSB_SHARED_VOLUME_PATH, or move COVE_HOME")
		}
		s.Volumes = append(s.Volumes, v)
	}
	return s, s.Validate()
}

// allowedSource returns the real path of a volume's source, which must lie
// below a path on the operator's list however either is spelled. The provider
// opens that path and follows no link any more.
func (e *Engine) allowedSource(v cove.Volume) (string, error) {
	outside := cove.InvalidField("volumes", "%.200q is not below a path that the operator allows", v.Source).
		Remedy("use a path below one of those that /api/volumes lists, or a volume by name")
	real, err := filepath.EvalSymlinks(v.Source)
	if err != nil {
		return "", outside // whether it exists is not the caller's to learn
	}
	if e.holdsPrivate(real) {
		return "", cove.InvalidField("volumes", "%.200q holds files of Cove's own, which no sandbox may see; mount another folder", v.Source)
	}
	readable := false
	for _, allowed := range e.cfg.Volumes {
		allowed, write := strings.CutSuffix(allowed, ":rw")
		root, err := filepath.EvalSymlinks(allowed)
		if err != nil {
			continue
		}
		if isBelow(root, real) {
			if write || !v.Write {
				return real, nil
			}
			readable = true
		}
	}
	if readable {
		return "", cove.InvalidField("volumes", "%.200q may be read only; the operator can allow more with :rw behind a path of COVE_VOLUMES", v.Source)
	}
	return "", outside
}

// holdsPrivate reports whether a real path is a part of what is private to the
// host, or holds it: keys and sockets are files, and one that can be read or
// connected to is as good as the server itself.
func (e *Engine) holdsPrivate(real string) bool {
	for _, p := range e.cfg.Private {
		private, err := filepath.EvalSymlinks(p)
		if err != nil {
			private = p
		}
		if isBelow(private, real) || isBelow(real, private) {
			return true
		}
	}
	return false
}

// isBelow reports whether a path is a directory or lies in it.
func isBelow(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}
