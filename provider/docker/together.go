//go:build linux

package docker

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/system"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/linux"
	"github.com/cove-sandbox/cove/internal/linux/cgroup"
)

// together is the control group around all containers, which bounds their memory with
// that of the sandboxes of other providers. It is guarded by the provider's mu.
type together struct {
	groups *cgroup.Manager // nil where there is none
	opened bool
	apart  string // why containers have no bound together
}

// canBound says why the containers of an engine cannot be in a group of ours; "" if they can.
func (f *facts) canBound(e *engine, info system.Info) string {
	switch {
	case !e.local:
		return "the engine is elsewhere"
	case f.podman:
		return "Podman makes its control groups itself"
	case slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.Contains(o, "rootless") }):
		return "the engine runs without root"
	case info.CgroupDriver != "cgroupfs":
		return "the engine has systemd make its control groups"
	}
	return ""
}

// parent is the control group that containers are made in; "" is the engine's own.
func (p *Provider) parent(f *facts) string {
	if p.cfg.Together == 0 {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &p.together
	if t.apart = cmp.Or(t.apart, f.apart); t.apart != "" {
		return ""
	}
	if !t.opened {
		t.opened = true
		groups, err := cgroup.Open(cgroup.Config{Name: name, Around: p.cfg.Around, Memory: int64(p.cfg.Together)})
		if err == nil {
			t.groups, err = groups, groups.Support().Memory
		}
		if err != nil {
			t.apart = err.Error() + "; " + linux.RemedyOf(err)
			return ""
		}
	}
	return t.groups.Path()
}

// placed looks whether a container that runs is where it should be: the control groups of
// the engine may be others than those that we see, as where one of us is in a container.
func (p *Provider) placed(container string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &p.together
	if t.groups == nil || t.apart != "" {
		return
	}
	if _, err := t.groups.Group(container); err != nil {
		t.apart = "the engine's control groups are not those of this process"
	}
}

// apart is what to know of an engine whose containers have no bound together.
func (p *Provider) apart(f *facts) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	why := cmp.Or(p.together.apart, f.apart)
	if p.cfg.Together == 0 || why == "" {
		return nil
	}
	return []string{"each sandbox has a bound on memory, and all together have only what admission counts: " + why}
}

// leaveGroups removes the group, where nothing is left in it. The engine makes it in more
// hierarchies than we need, and removes it from none.
func (p *Provider) leaveGroups() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	groups := p.together.groups
	if groups == nil {
		return nil
	}
	err := groups.Close()
	if dirs, _ := filepath.Glob("/sys/fs/cgroup/*" + groups.Path()); groups.Path() != "" {
		for _, dir := range dirs {
			for _, d := range []string{dir, filepath.Dir(dir)} {
				if os.Remove(d) != nil {
					break // something is in it, or it is gone
				}
			}
		}
	}
	if err != nil {
		return cove.Wrap(cove.Unavailable, err, "the control group of provider %s cannot be removed", name)
	}
	return nil
}
