package e2bapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/cove-sandbox/cove"
)

// newSandbox is the body that asks for a sandbox, in both versions of the API.
type newSandbox struct {
	Template   string            `json:"templateID"`
	Timeout    *float64          `json:"timeout"`
	Metadata   map[string]string `json:"metadata"`
	Env        map[string]string `json:"envVars"`
	Internet   *bool             `json:"allow_internet_access"`
	Network    networkConfig     `json:"network"`
	AutoPause  bool              `json:"autoPause"`
	KeepMemory *bool             `json:"autoPauseMemory"`
	AutoResume struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
	Volumes []volumeMount   `json:"volumeMounts"`
	IAM     json.RawMessage `json:"iam"`
	MCP     json.RawMessage `json:"mcp"`
}

// Times of sandboxes.
const (
	usualTime   = 5 * time.Minute      // of one whose client says nothing
	longestTime = 366 * 24 * time.Hour // that a session can have
)

// timeOf reads a number of seconds. None is the usual time; 0 is as short as it gets.
func timeOf(seconds *float64) (time.Duration, error) {
	if seconds == nil {
		return usualTime, nil
	}
	if !(*seconds >= 0 && *seconds <= longestTime.Seconds()) {
		return 0, cove.InvalidField("timeout", "%g is not a time; use 0 to %.0f seconds", *seconds, longestTime.Seconds())
	}
	return max(time.Duration(*seconds*float64(time.Second)), time.Second), nil
}

// specOf translates all of a body but its template. usual is the network of one that
// says nothing about it, and most is what any may have.
func specOf(b newSandbox, usual cove.NetworkMode, most ceiling) (cove.Spec, error) {
	if err := b.unsupported(); err != nil {
		return cove.Spec{}, err
	}
	idle, err := timeOf(b.Timeout)
	if err != nil {
		return cove.Spec{}, err
	}
	if b.Internet != nil && *b.Internet && most != ceiling(cove.NetworkOpen) {
		b.Internet = nil // JavaScript up to 2.39 and Python up to 2.45 send true whatever their caller said
	}
	network, err := b.Network.translate(b.Internet, usual)
	if err == nil {
		err = most.refuse(network.Mode)
	}
	if err != nil {
		return cove.Spec{}, err
	}
	s := cove.Spec{
		Network: network, Env: b.Env, Metadata: b.Metadata, Wake: b.AutoResume.Enabled,
		// Their timeout is when a sandbox ends, whatever it does, and the only end there is.
		Idle: idle, FixedEnd: true, Lifetime: longestTime, OnEnd: cove.EndClose,
		PublicPorts: b.Network.Public == nil || *b.Network.Public, Volumes: volumesOf(b.Volumes),
	}
	switch {
	case b.AutoPause && b.KeepMemory != nil && !*b.KeepMemory:
		s.OnEnd = cove.EndStop
	case b.AutoPause:
		s.OnEnd = cove.EndPause
	}
	return s, s.Validate()
}

// unsupported names what a body asks for that no sandbox here has.
func (b newSandbox) unsupported() error {
	switch {
	case isThere(b.IAM):
		return notHere("iam", "workload identities")
	case isThere(b.MCP) || b.Template == "mcp-gateway":
		return notHere("mcp", "gateway inside").Remedy("use this server's own MCP at /mcp")
	}
	return nil
}

// notHere is the answer to a field that asks for what there is not: it is never left
// out silently.
func notHere(field, what string) *cove.Error {
	return cove.Errorf(cove.Unsupported, "%s: sandboxes here have no %s", field, what).With("field", field).Remedy("leave it out")
}

// isThere reports whether an optional object was sent and holds something.
func isThere(raw json.RawMessage) bool {
	text := string(raw)
	return text != "" && text != "null" && text != "{}"
}

// create opens a session.
func (c *call) create() error {
	var b newSandbox
	if err := c.body(&b); err != nil {
		return err
	}
	most := c.h.ceiling()
	spec, err := specOf(b, most.usual(c.who.Defaults.Network.Mode), most)
	if err != nil {
		return err
	}
	if err := c.from(&spec, b.Template); err != nil {
		return err
	}
	s, err := c.open(spec, b.Internet == nil && b.Network.silent())
	if err != nil {
		return asked(err)
	}
	c.answer(http.StatusCreated, c.sandboxOf(s))
	return nil
}

// open opens a session. Where its network is only what silence means and the provider
// has none, it has none.
func (c *call) open(spec cove.Spec, silent bool) (*cove.Session, error) {
	ctx, sessions, key := c.r.Context(), c.platform.Sessions(), c.r.Header.Get("Idempotency-Key")
	s, err := sessions.Open(ctx, cove.OpenRequest{Spec: spec, IdempotencyKey: key})
	if silent && spec.Network.Mode == cove.NetworkOpen && cove.CodeOf(err) == cove.Unsupported && fieldOf(err) == "network.mode" {
		spec.Network = cove.Network{Mode: cove.NetworkNone}
		if key != "" {
			key += "-offline" // the key as it is stands for the other request
		}
		return sessions.Open(ctx, cove.OpenRequest{Spec: spec, IdempotencyKey: key})
	}
	return s, err
}

func fieldOf(err error) string {
	if e, ok := errors.AsType[*cove.Error](err); ok {
		field, _ := e.Details["field"].(string)
		return field
	}
	return ""
}

// asked puts an error of Open into the words of who asked here.
func asked(err error) error {
	e, ok := errors.AsType[*cove.Error](err)
	switch {
	case !ok:
	case e.Code == cove.Invalid && fieldOf(err) == "template":
		return cove.Wrap(cove.NotFound, err, "%s", e.Message).Remedy("%s", cove.RemedyOf(err))
	case e.Code == cove.Unsupported && fieldOf(err) == "on_end":
		return cove.Wrap(cove.Unsupported, err, "%s", e.Message).Remedy("have it pause without its memory: autoPauseMemory false, in SDKs onTimeout {action: 'pause', keepMemory: false}")
	}
	return err
}

// from sets what a sandbox is made from: a snapshot of the caller's, by its id or its
// name, or a template.
func (c *call) from(spec *cove.Spec, name string) error {
	switch name {
	case "", "base":
		return nil
	case "code-interpreter-v1":
		if c.h.cfg.CodeTemplate != nil {
			spec.Template = c.h.cfg.CodeTemplate()
		}
		return nil
	}
	snapshot, err := c.snapshotBy(c.r.Context(), name)
	if err != nil {
		return err
	}
	if snapshot == nil {
		if cove.ID(name).Valid() {
			return cove.Errorf(cove.NotFound, "there is no template or snapshot %q", clip(name))
		}
		spec.Template = templateName(name)
		return nil
	}
	// What lies around the files is what they were made with.
	spec.Snapshot, spec.Template, spec.Provider = snapshot.ID, snapshot.Template, snapshot.Provider
	return nil
}

// snapshotBy returns the snapshot of an id, or the newest of a name, or nil.
func (c *call) snapshotBy(ctx context.Context, name string) (*cove.Snapshot, error) {
	var found *cove.Snapshot
	for s, err := range c.platform.Snapshots().List(ctx, cove.SnapshotFilter{Limit: maxListed}) {
		if err != nil {
			return nil, err
		}
		if string(s.ID) == name {
			return s, nil
		}
		if s.Name == name && (found == nil || found.CreatedAt.Before(s.CreatedAt)) {
			found = s
		}
	}
	return found, nil
}
