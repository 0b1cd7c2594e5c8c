package gvisor

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/linux/userns"
)

// The parts of an OCI runtime configuration that a sandbox needs.
type (
	ociConfig struct {
		Version  string     `json:"ociVersion"`
		Process  ociProcess `json:"process"`
		Root     ociRoot    `json:"root"`
		Hostname string     `json:"hostname"`
		Mounts   []ociMount `json:"mounts"`
		Linux    ociLinux   `json:"linux"`
	}
	ociProcess struct {
		User            ociUser   `json:"user"`
		Args            []string  `json:"args"`
		Env             []string  `json:"env"`
		Cwd             string    `json:"cwd"`
		Capabilities    ociCaps   `json:"capabilities"`
		Rlimits         []ociRlim `json:"rlimits"`
		NoNewPrivileges bool      `json:"noNewPrivileges"`
	}
	ociUser struct {
		UID uint32 `json:"uid"`
		GID uint32 `json:"gid"`
	}
	ociCaps struct {
		Bounding    []string `json:"bounding"`
		Effective   []string `json:"effective"`
		Permitted   []string `json:"permitted"`
		Inheritable []string `json:"inheritable"`
		Ambient     []string `json:"ambient"`
	}
	ociRlim struct {
		Type string `json:"type"`
		Hard uint64 `json:"hard"`
		Soft uint64 `json:"soft"`
	}
	ociRoot struct {
		Path     string `json:"path"`
		Readonly bool   `json:"readonly"`
	}
	ociMount struct {
		Destination string   `json:"destination"`
		Type        string   `json:"type"`
		Source      string   `json:"source"`
		Options     []string `json:"options,omitempty"`

		UIDMappings []ociMapping `json:"uidMappings,omitempty"`
		GIDMappings []ociMapping `json:"gidMappings,omitempty"`
	}
	ociLinux struct {
		Namespaces  []ociNamespace `json:"namespaces"`
		UIDMappings []ociMapping   `json:"uidMappings,omitempty"`
		GIDMappings []ociMapping   `json:"gidMappings,omitempty"`
	}
	ociNamespace struct {
		Type string `json:"type"`
	}
	ociMapping struct {
		ContainerID uint32 `json:"containerID"`
		HostID      uint32 `json:"hostID"`
		Size        uint32 `json:"size"`
	}
)

// plan is what a sandbox is made of.
type plan struct {
	root    *root
	volumes []cove.Volume
	mapped  bool          // in a user namespace, where this process is not root
	lease   *userns.Lease // its users of the host; nil is none
}

// tempMount is a file system in memory that is there until the sandbox has its
// own at the same place: see [places].
func tempMount(at string) ociMount {
	return ociMount{Destination: at, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=0555", "size=65536"}}
}

// setUser is what the agent needs to stand apart from programs, and gives up before
// there is one: gVisor does not protect a first process from them.
var setUser = []string{"CAP_SETUID"}

// config is the configuration of a sandbox.
func (p plan) config() ociConfig {
	c := ociConfig{
		Version: "1.0.2",
		Process: ociProcess{
			User: ociUser{UID: agentUser, GID: user}, Args: append(guest.ListenArgs(agentName), strconv.Itoa(user)), Env: []string{agentEnv, "GOMAXPROCS=2"}, Cwd: "/",
			Capabilities:    ociCaps{Bounding: setUser, Effective: setUser, Permitted: setUser, Inheritable: setUser, Ambient: setUser},
			Rlimits:         []ociRlim{{Type: "RLIMIT_NOFILE", Hard: openFiles, Soft: openFiles}, {Type: "RLIMIT_CORE", Hard: 1, Soft: 1}, fileSize()},
			NoNewPrivileges: true,
		},
		Root:     ociRoot{Path: p.root.path, Readonly: true},
		Hostname: host,
		Mounts: []ociMount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			tempMount("/tmp"), tempMount("/dev/shm"), tempMount(cove.WorkspacePath),
		},
	}
	for _, b := range p.root.binds {
		source := cmp.Or(b.Source, p.root.path+emptyFile)
		c.Mounts = append(c.Mounts, ociMount{Destination: b.Path, Type: "bind", Source: source, Options: []string{"bind", "ro", "nosuid", "nodev"}})
	}
	for _, path := range p.root.empty {
		c.Mounts = append(c.Mounts, tempMount(path))
	}
	for _, v := range p.volumes {
		c.Mounts = append(c.Mounts, p.show(v))
	}
	for _, kind := range []string{"pid", "network", "ipc", "uts", "mount"} {
		c.Linux.Namespaces = append(c.Linux.Namespaces, ociNamespace{kind})
	}
	switch {
	case p.lease != nil:
		// gVisor itself is the first, and what programs make in volumes is the second's.
		c.Linux.UIDMappings = []ociMapping{{ContainerID: 0, HostID: p.lease.First, Size: 1}, {ContainerID: user, HostID: p.lease.First + 1, Size: 1}}
		c.Linux.GIDMappings = c.Linux.UIDMappings
	case p.mapped:
		c.Linux.UIDMappings = []ociMapping{{ContainerID: 0, HostID: uint32(os.Geteuid()), Size: 1}} //nolint:gosec // ids are no more
		c.Linux.GIDMappings = []ociMapping{{ContainerID: 0, HostID: uint32(os.Getegid()), Size: 1}} //nolint:gosec // ids are no more
	default:
		return c
	}
	c.Linux.Namespaces = append(c.Linux.Namespaces, ociNamespace{"user"})
	return c
}

// show is how a volume is mounted.
func (p plan) show(v cove.Volume) ociMount {
	m := ociMount{Destination: v.Target, Type: "bind", Source: v.Source, Options: []string{"bind", "ro", "nosuid", "nodev"}}
	if v.Write {
		m.Options[1] = "rw"
	}
	if v.Write && p.lease != nil {
		m.UIDMappings, m.GIDMappings = owners(v, p.lease.First+1)
	}
	return m
}

// write puts the configuration where the runtime looks for it.
func (p plan) write(dir string) error {
	text, err := json.Marshal(p.config())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}

// fileSize bounds the size of one file: gVisor does not tell holes from content,
// so that what is mostly hole is read as if it were none.
func fileSize() ociRlim {
	most := uint64(allMemory()) //nolint:gosec // not negative
	return ociRlim{Type: "RLIMIT_FSIZE", Hard: most, Soft: most}
}
