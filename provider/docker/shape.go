//go:build linux

package docker

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux"
)

// What a sandbox gets when nobody says anything else.
const (
	workspaceFiles = 100_000
	tempFiles      = 65_536
	sharedSize     = 64 * cove.MiB
	mostFiles      = 16_384 // open, of the agent; programs may have half of them
	mostProcesses  = 32_768 // of the user, which others may share; Podman can give no more
	// agentThreads are those that the agent and its door have at least: they count as
	// processes of the sandbox.
	agentThreads = 22
)

// shape is what a container is made with and cannot change, or only slowly.
type shape struct {
	resources cove.Resources
	workspace cove.Workspace
	temp      cove.Bytes // in /tmp
	open      bool       // it is on the engine's own network
}

// kind is of sandboxes that are mostly asked for alike.
type kind struct {
	template  string
	workspace cove.WorkspaceKind
}

// shapeOf is what a spec asks for.
func (p *Provider) shapeOf(f *facts, spec cove.Spec) shape {
	s := shape{resources: spec.Resources, workspace: spec.Workspace, open: spec.Network.Mode == cove.NetworkOpen}
	s.workspace.Size, s.temp = spec.Room()
	if s.workspace.Files == 0 {
		s.workspace.Files = workspaceFiles
	}
	if s.workspace.Kind == cove.WorkspaceDisk { // what does not hold makes no difference
		s.workspace.Files = 0
		if !f.disk.bounds {
			s.workspace.Size = 0
		}
	}
	return s
}

// limits are the resources of a container.
func (f *facts) limits(r cove.Resources) container.Resources {
	var c container.Resources
	if r.CPUs > 0 {
		c.NanoCPUs = int64(r.CPUs * 1e9)
	}
	if r.Memory > 0 {
		c.Memory, c.MemorySwap = int64(r.Memory), int64(r.Memory)
	}
	if r.PIDs > 0 && f.bounds.PIDs == cove.Hard {
		most := int64(r.PIDs) + agentThreads
		c.PidsLimit = &most
	}
	return c
}

// tmpfs is how a directory in memory is mounted.
func (f *facts) tmpfs(size cove.Bytes, files int64, more string) string {
	o := fmt.Sprintf("rw,exec,nosuid,nodev,size=%d,%s", size, more)
	if !f.podman { // which does not know it
		o += fmt.Sprintf(",nr_inodes=%d", files+1) // the directory itself is one
	}
	return o
}

// host is all that fences a container in.
func (p *Provider) host(f *facts, s shape, workspace string, volumes []cove.Volume) *container.HostConfig {
	no := false
	h := &container.HostConfig{
		NetworkMode:    "none",
		ReadonlyRootfs: true,
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges"},
		MaskedPaths:    f.masked(),
		IpcMode:        container.IPCModePrivate,
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		LogConfig:      container.LogConfig{Type: "none"},
		Init:           &no, // the agent is one
		Runtime:        p.cfg.Runtime,
		ShmSize:        int64(sharedSize),
		DNS:            []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, // the agent, if there is a way out
		Sysctls:        map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"},
		Resources:      f.limits(s.resources),
		Tmpfs:          map[string]string{tempDir: f.tmpfs(s.temp, tempFiles, "mode=1777")},
		Mounts: []mount.Mount{{
			Type: mount.TypeVolume, Source: p.agentVolume(), Target: agentDir, ReadOnly: true, VolumeOptions: &mount.VolumeOptions{NoCopy: true},
		}},
	}
	h.CgroupParent = p.parent(f)
	if workspace == "" {
		h.Tmpfs[cove.WorkspacePath] = f.tmpfs(s.workspace.Size, s.workspace.Files, f.owned())
	} else {
		h.Mounts = append(h.Mounts, mount.Mount{
			Type: mount.TypeVolume, Source: workspace, Target: cove.WorkspacePath, VolumeOptions: &mount.VolumeOptions{NoCopy: true},
		})
	}
	files := 2 * int64(linux.OpenFiles(s.resources.PIDs, mostFiles/2)) //nolint:gosec // at most mostFiles
	h.Ulimits = []*container.Ulimit{
		{Name: "nofile", Soft: files, Hard: files},
		{Name: "nproc", Soft: mostProcesses, Hard: mostProcesses},
		{Name: "core", Soft: 1, Hard: 1}, // with 0 a handler of the host would still be started for a crash
	}
	if f.bounds.Boundary == cove.BoundaryNamespaces { // as netns.Narrow
		h.Sysctls["net.core.somaxconn"], h.Sysctls["net.ipv4.tcp_max_tw_buckets"], h.Sysctls["net.ipv4.tcp_rmem"] = "128", "16384", "4096 8192 65536"
	}
	if s.open {
		h.NetworkMode, h.DNS = "", nil // the engine's own
	}
	for _, v := range volumes {
		h.Mounts = append(h.Mounts, mount.Mount{
			Type: mount.TypeBind, Source: v.Source, Target: v.Target, ReadOnly: !v.Write,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: true},
		})
	}
	return h
}

// masked is what of the kernel's files is hidden: what engines hide unless they are told
// otherwise, of which what we say takes the place, and what tells of their machine
// besides, as provider/local has it.
var masked = []string{
	"/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
	"/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",

	"/proc/bootconfig", "/proc/cmdline", "/proc/config.gz", "/proc/diskstats", "/proc/interrupts", "/proc/key-users", "/proc/modules", "/proc/partitions",
	"/proc/pressure", "/proc/schedstat", "/proc/softirqs", "/proc/swaps",
}

// masked adds what newer engines hide of each processor.
func (f *facts) masked() []string {
	all := slices.Clone(masked)
	for n := range f.processors {
		all = append(all, fmt.Sprintf("/sys/devices/system/cpu/cpu%d/thermal_throttle", n))
	}
	return all
}

// owned makes a directory in memory the sandbox's own.
func (f *facts) owned() string {
	if f.podman {
		return "mode=1777"
	}
	return "uid=1000,gid=1000,mode=0755"
}

// config is the rest of a container.
func (p *Provider) config(f *facts, owner, workspace string, i image) *container.Config {
	listen := guest.ListenArgs(agentName)
	if f.bounds.Boundary == cove.BoundaryNamespaces { // otherwise its kernel is nobody else's
		listen = guest.FilteredArgs(agentName)
	}
	labels := map[string]string{labelOwner: owner}
	if workspace != "" {
		labels[labelWorkspace] = workspace
	}
	return &container.Config{
		Image: i.id, Hostname: hostname, User: user, WorkingDir: cove.WorkspacePath,
		Entrypoint: listen, Cmd: []string{},
		// Programs get nothing of it. It is found by its name alone, which a path would
		// not be.
		Env:         []string{"GOMAXPROCS=2", "PATH=" + agentDir},
		Labels:      labels,
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
}

// checkVolumes reports the first volume that cannot be had.
func checkVolumes(f *facts, volumes []cove.Volume) error {
	if len(volumes) == 0 || !f.volumes {
		return nil
	}
	for _, v := range volumes {
		taken := func(dir string) bool { return v.Target == dir || strings.HasPrefix(v.Target, dir+"/") }
		// Who could replace the agent would be root as a door, and speak to the host.
		if taken(agentDir) || v.Target == tempDir || taken(egress.TrustDir) {
			return cove.InvalidField("volumes", "nothing can be mounted at %q in a container; use a path such as /data", v.Target)
		}
		if _, err := os.Stat(v.Source); err != nil {
			return cove.Wrap(cove.Invalid, err, "volumes: %.200q cannot be mounted: %s", v.Source, reasonOf(err)).With("field", "volumes")
		}
	}
	return nil
}
