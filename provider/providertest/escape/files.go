package escape

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

func fileAttacks() []Attack {
	write := native("write_outside", "write and make files in the host's tree, by every name that leads there")
	write.run = writeOutside
	submounts := kernel("submounts", "find a mount of the host's file systems that can be written to")
	submounts.run = writableMounts
	settings := native("host_settings", "read the settings of the host that lie beside its programs, such as npm's with its tokens")
	settings.run = settingsTold
	return []Attack{
		native("read_outside", "read a file of the host by its name, by .. and through /proc"),
		write,
		submounts,
		settings,
		native("hard_links", "link files of the host into the workspace"),
		kernel("device_nodes", "make nodes for memory and disks"),
		kernel("devices", "open the devices that are there"),
	}
}

func settingsTold(ctx context.Context, r *round) verdict {
	v, facts := r.attack(ctx, "host_settings")
	if !v.held {
		return v
	}
	return v.also(same(facts))
}

func writeOutside(ctx context.Context, r *round) verdict {
	v, facts := r.attack(ctx, "write_outside")
	// What was made inside counts only if it is on the host: a sandbox may have
	// a tree of its own that can be written to.
	for _, name := range facts {
		text, err := os.ReadFile(name)
		if err == nil && string(text) == r.token {
			_ = os.Remove(name)
			return breach("made a file of the host: " + clip(name))
		}
	}
	if len(facts) > 0 {
		v = v.also(heldBy("what could be written is the sandbox's own copy"))
	}
	return v.also(r.unharmed())
}

// mounted is one line of mountinfo.
type mounted struct {
	device string // major:minor
	root   string
	point  string
	flags  []string
	kind   string
}

func parseMount(line string) (mounted, bool) {
	before, after, ok := strings.Cut(line, " - ")
	f, kind := strings.Fields(before), strings.Fields(after)
	if !ok || len(f) < 6 || len(kind) < 1 {
		return mounted{}, false
	}
	return mounted{device: f[2], root: f[3], point: f[4], flags: strings.Split(f[5], ","), kind: kind[0]}, true
}

// writableMounts compares the mounts inside with those of the host: a file
// system that both have must be read-only inside, the whole way down.
func writableMounts(ctx context.Context, r *round) verdict {
	v, facts := r.attack(ctx, "submounts")
	if !v.held {
		return v
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return failed(err)
	}
	hosts := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if m, ok := parseMount(line); ok {
			hosts[m.device] = true
		}
	}
	seen, shared := 0, 0
	for _, line := range facts {
		m, ok := parseMount(line)
		if !ok {
			continue
		}
		seen++
		if !hosts[m.device] {
			continue
		}
		shared++
		if !slices.Contains(m.flags, "ro") && !expectedMount(m) {
			return breach(clip(fmt.Sprintf("%s is a %s of the host and can be written to", m.point, m.kind)))
		}
	}
	if seen == 0 {
		return v
	}
	return heldBy(fmt.Sprintf("%d mounts, the %d of the host's file systems are read-only", seen, shared))
}

// expectedMount reports whether a mount may be of the host and writable: a
// single device, a workspace on the host's disk, and the volume that is for it.
func expectedMount(m mounted) bool {
	device := strings.HasPrefix(m.point, "/dev/") && m.root != "/" && m.kind == "devtmpfs"
	return device || m.point == cove.WorkspacePath || m.point == writeTarget
}
