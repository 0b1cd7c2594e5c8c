package msbapi

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/cove-sandbox/cove"
)

// What a session remembers of the config that it was started with.
const (
	metaImage   = "msb.image"
	metaWorkdir = "msb.workdir"
)

// start makes a sandbox, or leaves the one that is there as it was asked for.
func (c *call) start(p params) (any, error) {
	// Its clients know of no sandbox that is stopped: it runs, or is gone with its files.
	spec := cove.Spec{Project: Project, User: userPrefix + p.Namespace, Thread: p.Sandbox, OnEnd: cove.EndClose, Wake: true}
	if p.Config == nil || p.Config.Image == "" {
		if s, err := c.look(p); err != nil || s == nil {
			if err == nil {
				err = wrong("Sandbox configuration not found: config.image says what to start the sandbox from")
			}
			return nil, err
		}
	} else if err := c.configure(&spec, *p.Config); err != nil {
		return nil, err
	}
	session, err := c.open(spec)
	if err != nil {
		return nil, err
	}
	if dir := session.Spec.Metadata[metaWorkdir]; strings.HasPrefix(dir, cove.WorkspacePath+"/") {
		// Elsewhere a sandbox has the directories of its template.
		if err := c.platform.Files(session.ID).Mkdir(c.ctx, dir); err != nil {
			return nil, err
		}
	}
	c.spaces.add(space{c.who.Tenant, p.Namespace})
	return "Sandbox " + p.Sandbox + " started successfully", nil
}

// replaceTries bounds how often a sandbox that is in the way is replaced: another
// caller may start it anew at the same time.
const replaceTries = 3

// open opens the session. A sandbox of another config is replaced.
func (c *call) open(spec cove.Spec) (*cove.Session, error) {
	var last error
	for range replaceTries {
		s, err := c.platform.Sessions().Open(c.ctx, cove.OpenRequest{Spec: spec})
		e, ok := errors.AsType[*cove.Error](err)
		if !ok || cove.ReasonOf(err) != cove.ReasonSpecDiffers {
			return s, err
		}
		id, _ := e.Details["session_id"].(string)
		if _, err := c.platform.Sessions().Close(c.ctx, cove.ID(id), false); err != nil && cove.CodeOf(err) != cove.NotFound {
			return nil, err
		}
		last = err
	}
	return nil, last
}

// configure puts a config into a spec, or says which part of it cannot be.
func (c *call) configure(spec *cove.Spec, cfg config) (err error) {
	for _, f := range []struct {
		name string
		set  bool
		why  string
	}{
		{"ports", len(cfg.Ports) > 0, "ports of the host are not published; make a link to a port with cove sandbox port"},
		{"depends_on", len(cfg.DependsOn) > 0, "sandboxes do not start one another"},
		{"scripts", given(cfg.Scripts), "there are no scripts; run commands"},
		{"exec", cfg.Exec != "", "a sandbox starts nothing by itself; run a command"},
	} {
		if f.set {
			return wrong("config." + f.name + ": " + f.why)
		}
	}
	if spec.Template, err = c.template(c.who.Tenant, cfg.Image); err != nil {
		return err
	}
	spec.Metadata = map[string]string{metaImage: cfg.Image}
	if cfg.Workdir != "" {
		if !strings.HasPrefix(cfg.Workdir, "/") {
			return wrong("config.workdir must begin with /")
		}
		spec.Metadata[metaWorkdir] = cfg.Workdir
	}
	const mostMemory = 1 << 30 // in MiB, so that the product fits
	if m := cfg.Memory; m != nil {
		if *m <= 0 || *m > mostMemory {
			return wrong(fmt.Sprintf("config.memory: %d MiB is no size of a sandbox", *m))
		}
		spec.Resources.Memory = cove.Bytes(*m) * cove.MiB
	}
	if n := cfg.CPUs; n != nil {
		if *n <= 0 {
			return wrong("config.cpus must be more than 0")
		}
		spec.Resources.CPUs = *n
	}
	if spec.Env, err = envs(cfg.Envs); err != nil {
		return err
	}
	spec.Volumes, err = volumes(cfg.Volumes)
	return err
}

// given reports whether a JSON value says something.
func given(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && string(raw) != "null" && string(raw) != "{}" && string(raw) != "[]"
}

// envs reads NAME=value.
func envs(list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil //nolint:nilnil // no variables
	}
	env := make(map[string]string, len(list))
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, wrong(fmt.Sprintf("config.envs: %.80q is not NAME=value", pair))
		}
		env[name] = value
	}
	return env, nil
}

// volumes reads host:guest, which is for writing as in the original, and host:guest:ro.
func volumes(list []string) ([]cove.Volume, error) {
	var all []cove.Volume
	for _, text := range list {
		host, guest, ok := strings.Cut(text, ":")
		guest, mode, _ := strings.Cut(guest, ":")
		if !ok || host == "" || guest == "" || mode != "" && mode != "ro" && mode != "rw" {
			return nil, wrong(fmt.Sprintf("config.volumes: %.200q is not host:guest or host:guest:ro", text))
		}
		all = append(all, cove.Volume{Source: host, Target: guest, Write: mode != "ro"})
	}
	return all, nil
}

// stop ends a sandbox with all that is in it.
func (c *call) stop(p params) (any, error) {
	s, err := c.look(p)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, c.unknown(p)
	}
	if _, err := c.platform.Sessions().Close(c.ctx, s.ID, false); err != nil {
		return nil, err
	}
	return "Sandbox " + p.Sandbox + " stopped successfully", nil
}
