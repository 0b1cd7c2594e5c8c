package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// Spec is what a caller asks for. Every field is optional; one that is given
// must be above 0 where it is an amount.
type Spec struct {
	Provider        string            `json:"provider,omitempty" jsonschema:"which provider serves it, such as local"`
	Template        string            `json:"template,omitempty" jsonschema:"what is installed inside"`
	Flavor          string            `json:"flavor,omitempty" jsonschema:"a named size, such as small"`
	ProjectName     string            `json:"project_name,omitempty" jsonschema:"a word to find it by"`
	UserID          string            `json:"user_id,omitempty" jsonschema:"whose session it is; user and thread together find it again"`
	ThreadID        string            `json:"thread_id,omitempty" jsonschema:"which conversation it belongs to"`
	MemoryLimit     *Quantity         `json:"memory_limit,omitempty" jsonschema:"enforced or refused, such as 1g"`
	CPULimit        *Quantity         `json:"cpu_limit,omitempty" jsonschema:"processors, enforced or refused, such as 1.0"`
	PIDsLimit       *int              `json:"pids_limit,omitempty" jsonschema:"programs at once, enforced or refused"`
	TimeoutMinutes  *float64          `json:"timeout_minutes,omitempty" jsonschema:"on_end happens after so long without activity"`
	LifetimeMinutes *float64          `json:"lifetime_minutes,omitempty" jsonschema:"ends so long after it was opened"`
	Env             map[string]string `json:"env,omitempty" jsonschema:"the environment of every program; left out in answers"`
	EnvNames        []string          `json:"env_names,omitempty" jsonschema:"in answers only, instead of env: the names of its variables"`
	Volumes         []cove.Volume     `json:"volumes,omitempty" jsonschema:"paths of the host, from the operator's list, or volumes of the tenant by name"`
	Network         *cove.Network     `json:"network,omitempty" jsonschema:"mode none, allow or open; names in allow; names of the operator's credentials in secrets"`
	Workspace       *Workspace        `json:"workspace,omitempty" jsonschema:"where its files are"`
	Policy          string            `json:"policy,omitempty" jsonschema:"the command policy, such as agent-bash"`
	Require         *cove.Require     `json:"require,omitempty" jsonschema:"floors below which it is not made"`
	Metadata        map[string]string `json:"metadata,omitempty" jsonschema:"labels to find it by"`
	Ports           []int             `json:"ports,omitempty" jsonschema:"ports that it will listen on"`
	Snapshot        cove.ID           `json:"snapshot,omitempty" jsonschema:"start with the files of this snapshot"`
	FixedEnd        bool              `json:"fixed_end,omitempty" jsonschema:"activity does not prolong timeout_minutes, and what runs does not hold it up; renewing moves it"`
	OnEnd           cove.EndAction    `json:"on_end,omitempty" jsonschema:"close, pause or stop when timeout_minutes are over; left out, stop, which keeps its files"`
	Wake            bool              `json:"wake,omitempty" jsonschema:"the next action inside it starts it also where its caller stopped or paused it, or its fixed end did; one that the server stopped by itself starts without it"`
	PublicPorts     bool              `json:"public_ports,omitempty" jsonschema:"its ports need no link at addresses of their own"`
}

// Workspace is the place for a session's files.
type Workspace struct {
	Kind   cove.WorkspaceKind `json:"kind,omitempty" jsonschema:"memory or disk"`
	SizeMB *float64           `json:"size_mb,omitempty" jsonschema:"enforced or refused"`
	Files  *int64             `json:"files,omitempty" jsonschema:"how many files, enforced or refused"`
	Moves  bool               `json:"moves,omitempty" jsonschema:"the files of a stopped session are kept where every node finds them, so that another one can start it"`
}

// SpecOf returns the form of s. Floors are not part of it.
func SpecOf(s cove.Spec) Spec {
	w := Spec{
		Provider: s.Provider, Template: s.Template, Flavor: s.Flavor, ProjectName: s.Project, UserID: s.User, ThreadID: s.Thread,
		MemoryLimit: bytesQuantity(s.Resources.Memory), CPULimit: cpuQuantity(s.Resources.CPUs), PIDsLimit: unlessZero(s.Resources.PIDs),
		TimeoutMinutes: optional(s.Idle, time.Minute), LifetimeMinutes: optional(s.Lifetime, time.Minute),
		Env: s.Env, EnvNames: s.EnvNames, Volumes: s.Volumes, Policy: s.Policy, Require: unlessZero(s.Require), Metadata: s.Metadata, Ports: s.Ports, Snapshot: s.Snapshot,
		FixedEnd: s.FixedEnd, OnEnd: s.OnEnd, Wake: s.Wake, PublicPorts: s.PublicPorts,
	}
	if s.Network.Mode != "" || len(s.Network.Allow) > 0 || len(s.Network.Secrets) > 0 {
		w.Network = &s.Network
	}
	if s.Workspace != (cove.Workspace{}) {
		w.Workspace = &Workspace{Kind: s.Workspace.Kind, Files: unlessZero(s.Workspace.Files), Moves: s.Workspace.Moves}
		if s.Workspace.Size != 0 {
			w.Workspace.SizeMB = new(megabytes(s.Workspace.Size))
		}
	}
	return w
}

// Cove returns the platform's own form. An amount that is not above 0 is
// Invalid with the name of its field.
func (w Spec) Cove() (cove.Spec, error) {
	s := cove.Spec{
		Provider: w.Provider, Template: w.Template, Flavor: w.Flavor, Project: w.ProjectName, User: w.UserID, Thread: w.ThreadID,
		Env: w.Env, EnvNames: w.EnvNames, Volumes: w.Volumes, Policy: w.Policy, Metadata: w.Metadata, Ports: w.Ports, Snapshot: w.Snapshot,
		FixedEnd: w.FixedEnd, OnEnd: w.OnEnd, Wake: w.Wake, PublicPorts: w.PublicPorts,
	}
	var err error
	if s.Resources, err = w.resources(); err != nil {
		return cove.Spec{}, err
	}
	if s.Idle, err = span("timeout_minutes", w.TimeoutMinutes, time.Minute); err != nil {
		return cove.Spec{}, err
	}
	if s.Lifetime, err = span("lifetime_minutes", w.LifetimeMinutes, time.Minute); err != nil {
		return cove.Spec{}, err
	}
	if s.Workspace, err = w.Workspace.cove(); err != nil {
		return cove.Spec{}, err
	}
	if w.Network != nil {
		s.Network = *w.Network
	}
	if w.Require != nil {
		s.Require = *w.Require
	}
	return s, nil
}

func (w Spec) resources() (r cove.Resources, err error) {
	if r.Memory, err = w.MemoryLimit.bytes("memory_limit"); err != nil {
		return r, err
	}
	if r.CPUs, err = w.CPULimit.cpus("cpu_limit"); err != nil {
		return r, err
	}
	r.PIDs, err = above("pids_limit", w.PIDsLimit)
	return r, err
}

func (w *Workspace) cove() (cove.Workspace, error) {
	if w == nil {
		return cove.Workspace{}, nil
	}
	files, err := above("workspace.files", w.Files)
	if err != nil {
		return cove.Workspace{}, err
	}
	s := cove.Workspace{Kind: w.Kind, Files: files, Moves: w.Moves}
	if w.SizeMB != nil {
		if s.Size = fromMegabytes(*w.SizeMB); s.Size <= 0 {
			return s, cove.InvalidField("workspace.size_mb", "%s is not a size; use a number of megabytes above 0", trim(*w.SizeMB))
		}
	}
	return s, nil
}
