package cove

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"
)

// A Provider creates sandboxes with one kind of isolation. Methods are safe
// for concurrent use. Two providers of one kind share nothing.
type Provider interface {
	// Name is the word in SANDBOX_PROVIDER, such as "local".
	Name() string

	// Probe says what this host can enforce now. It is bounded in time, changes
	// nothing, and reports a host that is not ready in Capabilities, not as an
	// error: an error means that probing itself broke.
	Probe(ctx context.Context) (Capabilities, error)

	// Create makes a live sandbox named id. It enforces all that spec.Floors
	// and spec.Require name or fails with Unsupported; what else the spec holds
	// is applied as far as the host can, and Sandbox.Isolation says how far. On
	// error nothing of the sandbox is left. An id that exists is Conflict.
	Create(ctx context.Context, id ID, spec Spec) (Sandbox, error)

	// Attach returns a live sandbox that an earlier process made, after our
	// restart; NotFound if it is gone. Attaching twice gives the same sandbox. The
	// first time, a sandbox that was paused runs again, so that its programs can be taken up.
	Attach(ctx context.Context, id ID) (Sandbox, error)

	// List yields the ids of all sandboxes that this provider holds for us,
	// also half-made ones that only Remove can end.
	List(ctx context.Context) iter.Seq2[ID, error]

	// Remove ends what List yielded under id, whatever state it is in. It is
	// idempotent: an unknown id is no error.
	Remove(ctx context.Context, id ID) error

	// Close lets go of the provider's own resources. Sandboxes that can outlive
	// this process stay alive.
	Close() error
}

// Capabilities is what a provider can do and enforce on this host, now.
type Capabilities struct {
	Ready     bool      `json:"ready"`
	Why       string    `json:"why,omitempty"`    // one sentence when not Ready
	Remedy    string    `json:"remedy,omitempty"` // what to do about it
	Isolation Isolation `json:"isolation"`        // with a memory workspace

	Workspaces map[WorkspaceKind]Quota `json:"workspaces"` // the kinds it offers
	Networks   []NetworkMode           `json:"networks"`
	Templates  []string                `json:"templates"` // by their full names: see [TenantTemplate]
	Volumes    bool                    `json:"volumes"`
	Shell      string                  `json:"shell,omitempty"` // what runs a line; "" means bash
	Powers     []Power                 `json:"powers"`

	// Notes says what is weaker here than the rest of the report can tell, in a
	// sentence each.
	Notes []string `json:"notes,omitempty"`
}

// Quota says how far the bounds of a workspace hold.
type Quota struct {
	Bytes Enforcement `json:"bytes"`
	Files Enforcement `json:"files"`
}

// For returns the isolation that a session with this workspace kind has.
func (c Capabilities) For(kind WorkspaceKind) Isolation {
	i := c.Isolation
	if q, ok := c.Workspaces[kind]; ok {
		i.Disk, i.Files = q.Bytes, q.Files
	}
	return i
}

// Check reports, as Unsupported with the reason and the remedy, the first part
// of a resolved spec that this provider cannot do or enforce.
func (c Capabilities) Check(provider string, s Spec) error {
	if !c.Ready {
		return Errorf(Unavailable, "provider %s is not ready: %s", provider, c.Why).Remedy("%s", c.Remedy)
	}
	kind := s.Workspace.Kind
	if _, ok := c.Workspaces[kind]; !ok {
		return Errorf(Unsupported, "workspace.kind: provider %s has no %s workspaces", provider, kind).With("field", "workspace.kind")
	}
	if !slices.Contains(c.Networks, s.Network.Mode) {
		return Errorf(Unsupported, "network.mode: provider %s cannot give network %q", provider, s.Network.Mode).With("field", "network.mode")
	}
	if len(s.Volumes) > 0 && !c.Volumes {
		return Errorf(Unsupported, "volumes: provider %s cannot mount host paths", provider).With("field", "volumes")
	}
	if s.OnEnd == EndPause && !slices.Contains(c.Powers, PowerPause) {
		return Errorf(Unsupported, "on_end: provider %s cannot pause, so it cannot keep memory", provider).
			With("field", "on_end").Remedy("use stop, which keeps the files, or a provider that can pause; cove doctor lists them")
	}
	if !slices.Contains(c.Templates, s.Template) {
		tenant, name := SplitTemplate(s.Template)
		build := "where Cove runs: cove template build " + name
		if tenant != "" {
			build = "again with a key of this tenant that holds the scope " + string(ScopeTemplates)
		}
		return InvalidField("template", "%.60q is unknown to provider %s, or not ready there; it has %s", name, provider, strings.Join(VisibleTemplates(tenant, c.Templates), ", ")).
			Remedy("use one of these, or build it %.120s; GET /api/templates and cove template ls say which are ready, and why not", build)
	}
	return c.checkFloors(provider, s)
}

func (c Capabilities) checkFloors(provider string, s Spec) error {
	have := c.For(s.Workspace.Kind)
	if want := s.Require.Isolation; want != "" && !have.Boundary.AtLeast(want) {
		return Errorf(Unsupported, "require.isolation: %s is wanted and provider %s gives %s", want, provider, have.Boundary).
			With("field", "require.isolation").Remedy("choose a provider with a stronger boundary; cove doctor lists them")
	}
	for _, l := range s.Floors {
		if got := have.Of(l); got != Hard {
			return Errorf(Unsupported, "the %s limit was asked for, and provider %s can enforce it here only as %q", l, provider, got).
				Reason(ReasonLimitNotEnforced).With("limit", string(l)).Remedy("leave the limit out to take what the host can do, or see cove doctor for what is missing")
		}
	}
	return nil
}

// A Sandbox is one live isolated machine. Methods are safe for concurrent use;
// after Destroy all of them but Destroy fail with NotFound.
type Sandbox interface {
	ID() ID

	// Isolation reports what really holds for this sandbox.
	Isolation() Isolation

	// Start runs a program. ctx bounds the starting, not the run. A program
	// that cannot be found or executed is no error: it gives a Process whose
	// Result is exit code 127 or 126, with the name on stderr.
	Start(ctx context.Context, cmd Command) (Process, error)

	// Files is the sandbox's file tree, seen as its own user.
	Files() Files

	Usage(ctx context.Context) (Usage, error)

	// Destroy ends all processes and frees all that the sandbox held. It is
	// idempotent, and waits until nothing is left.
	Destroy(ctx context.Context) error
}

// Usage is what a sandbox consumes.
type Usage struct {
	CPU        time.Duration `json:"cpu"`
	Memory     Bytes         `json:"memory"`
	PeakMemory Bytes         `json:"peak_memory"`
	PIDs       int           `json:"pids"`
	Disk       Bytes         `json:"disk"`
	Files      int64         `json:"files"` // in the workspace, without the workspace itself
}
