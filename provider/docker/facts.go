//go:build linux

package docker

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
)

// factsAge is for how long what is known of an engine is taken as it was, by who
// makes a sandbox. Probe always looks anew.
const factsAge = 30 * time.Second

// imageRemedy is what to do about an image that is missing.
const imageRemedy = "build it where the engine is: docker build -t cove-sandbox images/sandbox, or scripts/docker.sh image on a machine without a registry; or set DOCKER_IMAGE"

// facts is what is known of an engine.
type facts struct {
	at         time.Time
	podman     bool
	memory     cove.Bytes // of its machine
	processors int        // of its machine
	bounds     cove.Isolation
	images     map[string]image // by template
	volumes    bool
	disk       trial  // of volumes
	why        string // it cannot be used
	remedy     string
	notes      []string
	apart      string // why containers have no bound together; "" where they can
}

// image is what a template is made of.
type image struct {
	id  string
	env map[string]string
}

// learn asks the engine what it is. An engine that cannot be used is told by the
// facts, one that cannot be asked by the error.
func (p *Provider) learn(ctx context.Context, e *engine) (*facts, error) {
	f := &facts{at: time.Now(), images: map[string]image{}, volumes: e.local}
	if err := p.greet(ctx, e, f); err != nil {
		return nil, err
	}
	ask, cancel := within(ctx, doPatience/6)
	defer cancel()
	info, err := e.Info(ask, client.InfoOptions{})
	if err != nil {
		return nil, e.fault(ctx, err, "say what it is")
	}
	if info.Info.ServerVersion == "" && info.Info.ID == "" {
		return nil, e.stranger(errors.New("it names no version"))
	}
	f.memory, f.processors = cove.Bytes(info.Info.MemTotal), info.Info.NCPU
	f.apart = f.canBound(e, info.Info)
	p.boundsOf(f, info.Info)
	if e.plain {
		f.notes = append(f.notes, "the engine is spoken to without TLS across a network: who is on the way can do what it likes; set DOCKER_TLS_VERIFY")
	}
	if f.why != "" {
		return f, nil
	}
	if err := p.findImages(ask, ctx, e, f); err != nil || f.why != "" {
		return f, err
	}
	return f, p.tryQuota(ask, ctx, e, f, info.Info)
}

// greet finds out whether an engine answers, and which.
func (p *Provider) greet(ctx context.Context, e *engine, f *facts) error {
	ask, cancel := within(ctx, askPatience)
	defer cancel()
	pong, err := e.Ping(ask, client.PingOptions{NegotiateAPIVersion: true})
	if err != nil {
		return e.fault(ctx, err, "answer")
	}
	if pong.APIVersion == "" {
		return e.stranger(errors.New("it names no version of the API"))
	}
	v, err := e.ServerVersion(ask, client.ServerVersionOptions{})
	if err != nil {
		return e.fault(ctx, err, "say its version")
	}
	f.podman = slices.ContainsFunc(v.Components, func(c system.ComponentVersion) bool { return strings.Contains(c.Name, "Podman") })
	if v.Os != "" && v.Os != "linux" {
		f.why, f.remedy = "the Docker engine runs containers of "+v.Os, "switch it to Linux containers"
	}
	return nil
}

// boundsOf reads what an engine can enforce.
func (p *Provider) boundsOf(f *facts, info system.Info) {
	hard := func(ok bool) cove.Enforcement {
		if ok {
			return cove.Hard
		}
		return cove.Absent
	}
	f.bounds = cove.Isolation{
		Boundary: cove.BoundaryNamespaces, Network: cove.Hard, Memory: hard(info.MemoryLimit), CPU: hard(info.CPUCfsQuota), PIDs: hard(info.PidsLimit),
		Policy: cove.Soft,                         // until an agent has seen the engine's kernel
		Disk:   cove.Hard, Files: hard(!f.podman), // Podman knows no bound on the files of a tmpfs
	}
	if info.MemoryLimit && !info.SwapLimit {
		f.bounds.Memory = cove.Soft
		f.notes = append(f.notes, "the engine's kernel does not count swap: a sandbox can use more memory than its limit, on disk; boot it with swapaccount=1")
	}
	if !slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.Contains(o, "seccomp") }) {
		f.notes = append(f.notes, "the engine filters no system calls: its kernel or its settings have no seccomp")
	}
	if slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.Contains(o, "rootless") }) {
		f.notes = append(f.notes, "the engine runs without root: which limits hold depends on the control groups that its user was given")
	}
	name := p.cfg.Runtime
	if name == "" {
		name = info.DefaultRuntime
	}
	r, known := info.Runtimes[name]
	if p.cfg.Runtime != "" && !known {
		f.why = "the Docker engine has no runtime " + p.cfg.Runtime + "; it has " + strings.Join(slices.Sorted(maps.Keys(info.Runtimes)), ", ")
		f.remedy = "add it to daemon.json of the engine and restart it, or unset DOCKER_RUNTIME"
		return
	}
	what := name + " " + path.Base(r.Path) + " " + r.Type
	switch {
	case strings.Contains(what, "runsc"):
		// It counts no files, what bounds processes is told only its own threads, and what
		// is too large for it ends with it.
		f.bounds.Boundary, f.bounds.Files, f.bounds.PIDs = cove.BoundaryUserKernel, cove.Absent, cove.Absent
		if f.bounds.Memory == cove.Hard {
			f.bounds.Memory = cove.Soft
		}
		f.notes = append(f.notes, "with runsc a sandbox that takes more memory than its limit ends as a whole")
	case strings.Contains(what, "kata"):
		f.bounds.Boundary = cove.BoundaryMicroVM
	}
}

// findImages finds what sandboxes can be made of. ask bounds the questions, ctx is
// the caller's own.
func (p *Provider) findImages(ask, ctx context.Context, e *engine, f *facts) error {
	base, err := e.look(ask, p.cfg.Image)
	switch {
	case errdefs.IsNotFound(err):
		f.why, f.remedy = "the image "+p.cfg.Image+" is not on the Docker engine", imageRemedy
		return nil
	case err != nil:
		return e.fault(ctx, err, "look at the image "+p.cfg.Image)
	}
	f.images[Base] = base
	list, err := e.ImageList(ask, client.ImageListOptions{Filters: client.Filters{}.Add("reference", templateImages)})
	if err != nil {
		return e.fault(ctx, err, "list its images")
	}
	for _, i := range list.Items {
		for _, tag := range i.RepoTags {
			repository, template, ok := strings.Cut(path.Base(tag), ":")
			if !ok || repository != templateImages || template == Base || len(f.images) >= mostTemplates {
				continue
			}
			if f.images[template], err = e.look(ask, i.ID); err != nil {
				return e.fault(ctx, err, "look at the image "+tag)
			}
		}
	}
	return nil
}

// mostTemplates bounds what an engine is asked about.
const mostTemplates = 100

// look reads an image.
func (e *engine) look(ctx context.Context, name string) (image, error) {
	i, err := e.ImageInspect(ctx, name)
	if err != nil {
		return image{}, err
	}
	found := image{id: i.ID, env: map[string]string{}}
	if i.Config == nil {
		return found, nil
	}
	if n := len(i.Config.Volumes); n > 0 {
		return image{}, cove.Errorf(cove.Unsupported, "image %.200s declares %d volumes, which no limit holds for", name, n).Remedy("build it without VOLUME")
	}
	for _, line := range i.Config.Env {
		if key, value, ok := strings.Cut(line, "="); ok {
			found.env[key] = value
		}
	}
	return found, nil
}

// capabilities is the report of what is known.
func (p *Provider) capabilities(f *facts) cove.Capabilities {
	bounds := f.bounds
	if policy := p.policy.Load(); policy != nil {
		bounds.Policy = *policy
	}
	notes := append(p.apart(f), f.notes...)
	c := cove.Capabilities{
		Ready: f.why == "", Why: f.why, Remedy: f.remedy, Isolation: bounds,
		Workspaces: map[cove.WorkspaceKind]cove.Quota{
			cove.WorkspaceMemory: {Bytes: f.bounds.Disk, Files: f.bounds.Files},
			cove.WorkspaceDisk:   f.disk.quota(),
		},
		Networks:  []cove.NetworkMode{cove.NetworkNone, cove.NetworkAllow},
		Templates: []string{Base}, Volumes: f.volumes,
		Powers: []cove.Power{
			cove.PowerPause, cove.PowerSnapshot, cove.PowerFork, cove.PowerDial, cove.PowerPrepare, cove.PowerTerminal, cove.PowerAttach, cove.PowerResume, cove.PowerEgress,
		},
		Notes: append([]string{"snapshots and forks have the files of the workspace, and no memory", f.disk.note()}, notes...),
	}
	if p.cfg.Network {
		c.Networks = append(c.Networks, cove.NetworkOpen)
		c.Notes = append(c.Notes, "network open is the engine's own: nobody watches it, and private addresses can be reached")
	}
	for _, t := range slices.Sorted(maps.Keys(f.images)) {
		if t != Base {
			c.Templates = append(c.Templates, t)
		}
	}
	return c
}

// Probe implements [cove.Provider]. It asks the engine, and makes nothing but, once,
// a volume to see whether it can be bounded.
func (p *Provider) Probe(ctx context.Context) (cove.Capabilities, error) {
	if err := ctx.Err(); err != nil {
		return cove.Capabilities{}, err
	}
	if err := p.books.Enter(); err != nil {
		return cove.Capabilities{}, err
	}
	defer p.books.Leave()
	f, err := p.ask(ctx, 0)
	if err == nil {
		return p.capabilities(f), nil
	}
	if _, ok := errors.AsType[*cove.Error](err); !ok || ctx.Err() != nil {
		return cove.Capabilities{}, err
	}
	return cove.Capabilities{
		Why: cove.MessageOf(err), Remedy: cove.RemedyOf(err),
		Isolation: cove.Isolation{Boundary: cove.BoundaryNamespaces}, // at the least: another runtime may give more
	}, nil
}

// ask returns what is known of the engine, if it is not older than age.
func (p *Provider) ask(ctx context.Context, age time.Duration) (*facts, error) {
	p.mu.Lock()
	known := p.facts
	p.mu.Unlock()
	if known != nil && time.Since(known.at) < age {
		return known, nil
	}
	e, err := p.open()
	if err != nil {
		return nil, err
	}
	f, err := p.learn(ctx, e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.facts = nil
		return nil, err
	}
	if f.why == "" {
		p.facts = f
	}
	return f, nil
}
