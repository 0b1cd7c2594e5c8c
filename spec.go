package cove

import (
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// WorkspacePath is where a session's own files are, in every sandbox.
const WorkspacePath = "/workspace"

// HomePath is another name of the workspace, for programs that were written for
// sandboxes whose files are there.
const HomePath = "/home/user"

// Spec is what a caller asks for. Every field is optional; a zero field takes
// the default of the key, the settings or the flavor, in that order. A Spec is
// a plain value: it validates without I/O.
type Spec struct {
	Provider  string            `json:"provider,omitempty"`
	Template  string            `json:"template,omitempty"`
	Flavor    string            `json:"flavor,omitempty"`
	Project   string            `json:"project_name,omitempty"`
	User      string            `json:"user_id,omitempty"`
	Thread    string            `json:"thread_id,omitempty"`
	Resources Resources         `json:"resources,omitzero"`
	Network   Network           `json:"network,omitzero"`
	Workspace Workspace         `json:"workspace,omitzero"`
	Volumes   []Volume          `json:"volumes,omitempty"`
	Env       map[string]string `json:"env,omitempty"`       // empty in answers, see EnvNames
	EnvNames  []string          `json:"env_names,omitempty"` // in answers only: the names in Env, sorted
	Policy    string            `json:"policy,omitempty"`    // the command policy, such as agent-bash
	Require   Require           `json:"require,omitzero"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Ports     []int             `json:"ports,omitempty"`
	Snapshot  ID                `json:"snapshot,omitempty"` // start with the files of this snapshot
	Idle      time.Duration     `json:"idle,omitempty"`     // OnEnd happens after this long without activity
	Lifetime  time.Duration     `json:"lifetime,omitempty"` // ends this long after it was opened

	// FixedEnd says that Idle is a time and not a patience: it runs from when the
	// session was opened or came back, activity does not prolong it, and it is
	// reached although something runs. Renew alone moves it, sooner or later.
	FixedEnd bool `json:"fixed_end,omitempty"`
	// OnEnd says what happens when Idle is over; EndStop is the default. The end of
	// Lifetime closes.
	OnEnd EndAction `json:"on_end,omitempty"`
	// Wake has a session come back for the next action inside it also where its
	// caller stopped or paused it, or its fixed end did, if the caller of that action may
	// start it. Sessions that the server stopped by itself come back without it.
	Wake bool `json:"wake,omitempty"`
	// PublicPorts lets whoever knows the address of a port reach it without a link
	// of their own, where the server has a face with such addresses.
	PublicPorts bool `json:"public_ports,omitempty"`

	// Floors are the limits that the caller set, as opposed to those that came
	// from a default: they are enforced or creation fails. The engine fills it
	// from Asked before defaults are applied; what a caller writes is dropped.
	Floors []Limit `json:"floors,omitempty"`
}

// Resources bounds a whole sandbox. Zero means no bound was asked for.
type Resources struct {
	CPUs   float64 `json:"cpus,omitempty"`
	Memory Bytes   `json:"memory,omitempty"`
	PIDs   int     `json:"pids,omitempty"`
}

// Network says what a sandbox may reach.
type Network struct {
	Mode  NetworkMode `json:"mode,omitempty"`
	Allow []string    `json:"allow,omitempty"` // names, with mode allow

	// Secrets names credentials of the operator that are put into requests on
	// their way out, to the hosts that the operator bound them to. The sandbox
	// never sees them.
	Secrets []string `json:"secrets,omitempty"`
}

// NetworkMode is none, allow or open.
type NetworkMode string

// What a sandbox may reach. Private addresses are refused in all of them.
const (
	NetworkNone  NetworkMode = "none"
	NetworkAllow NetworkMode = "allow" // the names in Network.Allow
	NetworkOpen  NetworkMode = "open"
)

// Workspace is the place for a session's files.
type Workspace struct {
	Kind  WorkspaceKind `json:"kind,omitempty"`
	Size  Bytes         `json:"size,omitempty"`
	Files int64         `json:"files,omitempty"`
	// Moves has the files of a stopped session kept where every node of the cluster
	// finds them, so that another one can start it. It goes with no volume by name,
	// which one node has.
	Moves bool `json:"moves,omitempty"`
}

// What the files of a sandbox may take where no size is asked for.
const (
	usualWorkspace = 500 * MiB
	mostTemp       = 256 * MiB
)

// Room is what the files of a sandbox may take: in its workspace, and beside it in
// /tmp. Files in memory are part of the sandbox's memory, so that a workspace there
// has at most half of it unless the spec says its size, and /tmp at most half of the rest.
func (s Spec) Room() (workspace, temp Bytes) {
	workspace, temp = s.Workspace.Size, mostTemp
	left := s.Resources.Memory
	if workspace == 0 {
		workspace = usualWorkspace
		if left > 0 && s.Workspace.Kind != WorkspaceDisk {
			workspace = min(workspace, left/2)
		}
	}
	if left > 0 {
		if s.Workspace.Kind != WorkspaceDisk {
			left = max(0, left-workspace)
		}
		temp = max(min(temp, left/2), MiB)
	}
	return workspace, temp
}

// WorkspaceKind is memory or disk.
type WorkspaceKind string

// The kinds of workspace.
const (
	WorkspaceMemory WorkspaceKind = "memory"
	WorkspaceDisk   WorkspaceKind = "disk"
)

// Volume shows something that outlives the sandbox inside it: a path of the host,
// by Source, or a volume of the tenant, by Name. Of paths only those on the
// operator's list can be mounted. Both are read-only unless Write is set.
type Volume struct {
	Source string `json:"source,omitempty"`
	Name   string `json:"name,omitempty"` // of one that [Volumes] keeps; the other of the two
	Target string `json:"target"`
	Write  bool   `json:"write,omitempty"`
}

// Require holds floors: creation fails where they are not met.
type Require struct {
	Isolation Boundary `json:"isolation,omitempty"`
}

// Bounds on what a spec may hold, so that a record stays small.
const (
	maxEntries   = 256
	maxNameLen   = 256
	maxValueLen  = 32 << 10
	maxSpecBytes = 256 << 10
)

// validEnvName reports whether a shell could use a name for a variable.
func validEnvName(name string) bool { return isName(name, "_") && (name[0] < '0' || name[0] > '9') }

// Validate reports the first field that no platform could accept. It knows
// nothing of providers, flavors or templates: the engine checks those.
func (s Spec) Validate() error {
	for _, check := range []func() error{s.validateNames, s.validateAmounts, s.Network.Validate, s.validateVolumes, s.validateMaps} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s Spec) validateNames() error {
	for _, f := range []struct{ name, value string }{
		{"provider", s.Provider},
		{"template", s.Template},
		{"flavor", s.Flavor},
		{"project_name", s.Project},
		{"user_id", s.User},
		{"thread_id", s.Thread},
		{"policy", s.Policy},
	} {
		if err := validText(f.name, f.value, maxNameLen); err != nil {
			return err
		}
	}
	if len(s.EnvNames) > 0 {
		return InvalidField("env_names", "is in answers only; set the variables with their values in env")
	}
	if s.Snapshot != "" && !s.Snapshot.Valid() {
		return InvalidField("snapshot", "%q is not an id", string(s.Snapshot))
	}
	if b := s.Require.Isolation; b != "" && !slices.Contains(Boundaries(), b) {
		return InvalidField("require.isolation", "%q is unknown; use one of %s", string(b), joined(Boundaries()))
	}
	if s.OnEnd != "" && !slices.Contains(EndActions(), s.OnEnd) {
		return InvalidField("on_end", "%.40q is unknown; use one of %s", string(s.OnEnd), joined(EndActions()))
	}
	if k := s.Workspace.Kind; k != "" && k != WorkspaceMemory && k != WorkspaceDisk {
		return InvalidField("workspace.kind", "%q is unknown; use memory or disk", string(k))
	}
	return nil
}

func (s Spec) validateAmounts() error {
	size := func(f float64) string { return Bytes(f).String() }
	span := func(f float64) string { return time.Duration(f * float64(time.Second)).String() }
	for _, f := range []struct {
		name     string
		value    float64
		from, to float64
		show     func(float64) string
	}{
		{"cpu_limit", s.Resources.CPUs, 0.01, 1024, trimFloat},
		{"memory_limit", float64(s.Resources.Memory), float64(4 * MiB), float64(64 * TiB), size},
		{"pids_limit", float64(s.Resources.PIDs), 1, 4 << 20, trimFloat},
		{"workspace.size_mb", float64(s.Workspace.Size), float64(64 * KiB), float64(64 * TiB), size},
		{"workspace.files", float64(s.Workspace.Files), 1, 1 << 32, trimFloat},
		{"timeout_minutes", s.Idle.Seconds(), 1, 366 * 86400, span},
		{"lifetime_minutes", s.Lifetime.Seconds(), 1, 366 * 86400, span},
	} {
		if f.value != 0 && !(f.value >= f.from && f.value <= f.to) {
			return InvalidField(f.name, "%s is out of range; use %s to %s", f.show(f.value), f.show(f.from), f.show(f.to))
		}
	}
	for _, p := range s.Ports {
		if p < 1 || p > 65535 {
			return InvalidField("ports", "%d is not a port; use 1 to 65535", p)
		}
	}
	return atMost("ports", len(s.Ports))
}

// hostPattern is compiled when it is first needed: most processes never look at
// a host.
var hostPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:[0-9]{1,5})?$`)
})

func (s Spec) validateVolumes() error {
	seen := map[string]bool{}
	for _, v := range s.Volumes {
		if err := v.validate(); err != nil {
			return err
		}
		if v.Target == "/" || slices.ContainsFunc(guardedTargets, func(g string) bool { return within(g, v.Target) }) {
			return InvalidField("volumes", "nothing can be mounted at %q inside a sandbox; use a path such as /data", v.Target)
		}
		if seen[v.Target] {
			return InvalidField("volumes", "%q is the target of two volumes", v.Target)
		}
		if v.Name != "" && s.Workspace.Moves {
			return InvalidField("workspace.moves", "a session with the volume %.80q stays on the node that has it; leave out one of them", v.Name)
		}
		seen[v.Target] = true
	}
	return atMost("volumes", len(s.Volumes))
}

// validate checks what is mounted, and the form of where.
func (v Volume) validate() error {
	paths := []string{v.Target}
	switch {
	case v.Name != "" && v.Source != "":
		return InvalidField("volumes", "%.80q has a source and a name; use one of them", v.Target)
	case v.Name != "":
		if err := validVolumeName("volumes", v.Name); err != nil {
			return err
		}
	default:
		paths = append(paths, v.Source)
	}
	for _, p := range paths {
		if err := validText("volumes", p, maxPathLen); err != nil {
			return err
		}
		if !path.IsAbs(p) || path.Clean(p) != p {
			return InvalidField("volumes", "%q must be an absolute path without . or ..", p)
		}
	}
	return nil
}

// guardedTargets are the parts of the tree that make a sandbox what it is. The
// workspace is one of them, by both its names: a volume in it would go into the
// archive with it.
var guardedTargets = []string{WorkspacePath, HomePath, "/proc", "/sys", "/dev", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/run"}

func (s Spec) validateMaps() error {
	total := 0
	for field, m := range map[string]map[string]string{"env": s.Env, "metadata": s.Metadata} {
		if err := atMost(field, len(m)); err != nil {
			return err
		}
		for k, v := range m {
			total += len(k) + len(v)
			if k == "" || len(k) > maxNameLen || strings.ContainsAny(k, "\x00\n=") || field == "env" && !validEnvName(k) {
				return InvalidField(field, "%q is not a name; use letters, digits and _", k)
			}
			if err := validText(field+"."+k, v, maxValueLen); err != nil {
				return err
			}
		}
	}
	if total > maxSpecBytes {
		return InvalidField("env", "env and metadata hold %d bytes together; the most is %d", total, maxSpecBytes)
	}
	return nil
}

// Asked returns the limits that the caller set.
func (s Spec) Asked() []Limit {
	var asked []Limit
	for _, l := range []struct {
		limit Limit
		set   bool
	}{
		{LimitNetwork, s.Network.Mode == NetworkNone || s.Network.Mode == NetworkAllow},
		{LimitMemory, s.Resources.Memory != 0},
		{LimitCPU, s.Resources.CPUs != 0},
		{LimitPIDs, s.Resources.PIDs != 0},
		{LimitDisk, s.Workspace.Size != 0},
		{LimitFiles, s.Workspace.Files != 0},
	} {
		if l.set {
			asked = append(asked, l.limit)
		}
	}
	return asked
}

// Redacted returns s as answers show it: names of environment variables without
// their values, which are often secrets. An answer of another node is redacted already.
func (s Spec) Redacted() Spec {
	if len(s.Env) == 0 {
		return s
	}
	s.EnvNames = slices.Sorted(maps.Keys(s.Env))
	s.Env = nil
	return s
}

// Differs returns the names of the fields that asked sets and s has otherwise.
// User and Thread found the session and are not compared; nor is Floors.
func (s Spec) Differs(asked Spec) []string {
	asked.User, asked.Thread, asked.Floors = "", "", nil
	return differing("", reflect.ValueOf(s), reflect.ValueOf(asked))
}

func differing(prefix string, have, want reflect.Value) []string {
	var names []string
	for i := range want.NumField() {
		f := want.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		h, w := have.Field(i), want.Field(i)
		switch {
		case w.IsZero():
		case w.Kind() == reflect.Struct:
			names = append(names, differing(prefix+name+".", h, w)...)
		case !reflect.DeepEqual(h.Interface(), w.Interface()):
			names = append(names, prefix+name)
		}
	}
	return names
}

// Clone returns a copy that shares no map or slice with s.
func (s Spec) Clone() Spec {
	s.Network.Allow = slices.Clone(s.Network.Allow)
	s.Network.Secrets = slices.Clone(s.Network.Secrets)
	s.Volumes = slices.Clone(s.Volumes)
	s.Env = maps.Clone(s.Env)
	s.EnvNames = slices.Clone(s.EnvNames)
	s.Metadata = maps.Clone(s.Metadata)
	s.Ports = slices.Clone(s.Ports)
	s.Floors = slices.Clone(s.Floors)
	return s
}
