package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
	"github.com/cove-sandbox/cove/provider/gvisor"
)

// gvisorOptions says how the provider gvisor is measured.
type gvisorOptions struct {
	runsc  string // the executable that it is compared with; "" where there is none
	rounds int
}

func gvisorPart(ctx context.Context, o options) (string, []row, error) {
	if o.gvisor.runsc == "" {
		return absent(o, partGvisor, "no runsc was named; scripts/bench.sh builds one")
	}
	rows, timings, err := gvisorRows(ctx, o.gvisor, func(dir string) (cove.Provider, error) {
		p, err := gvisor.New(gvisor.Config{Dir: dir})
		if err != nil {
			return nil, told(err)
		}
		return p, nil
	}, openLocal)
	if err != nil {
		return "", nil, err
	}
	return render("what a kernel of its own costs", rows) + "\n" + renderLadder("`true`, under gVisor and beside it", timings), rows, nil
}

func gvisorRows(ctx context.Context, o gvisorOptions, ours, local opener) (_ []row, _ []measure.Timing, err error) {
	dir, err := os.MkdirTemp("", "cove-bench-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := runsc{path: o.runsc, state: filepath.Join(dir, "state")}
	// It keeps a namespace there, for all sandboxes without a network.
	defer func() { _ = syscall.Unmount(filepath.Join(r.state, "null-netns"), syscall.MNT_DETACH) }()
	live, once := filepath.Join(dir, "live"), filepath.Join(dir, "once")
	if err := errors.Join(writeBundle(live, "sleep", "infinity"), writeBundle(once, "true")); err != nil {
		return nil, nil, err
	}
	if err := r.do(ctx, "run", "--detach", "--bundle", live, "cove-bench"); err != nil {
		return nil, nil, fmt.Errorf("start a sandbox to compare with: %w", err)
	}
	defer func() { err = errors.Join(err, r.do(context.WithoutCancel(ctx), "delete", "--force", "cove-bench")) }()
	return rung{
		rounds:   o.rounds,
		exec:     r.command("spawned `runsc exec`", "exec", "cove-bench", "true"),
		execMust: 0.6,
		run:      r.command("`runsc run`", "run", "--bundle", once, "cove-bench-once"),
		runMust:  0.2,
	}.measure(ctx, ours, local)
}

// runsc is gVisor's own command.
type runsc struct{ path, state string }

func (r runsc) argv(args ...string) []string {
	return append([]string{
		r.path, "--root", r.state, "--platform=systrap", "--network=none", "--ignore-cgroups", "--overlay2=none", "--host-uds=none",
	}, args...)
}

func (r runsc) command(name string, args ...string) measure.Contender {
	return measure.Command(name, []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, r.argv(args...)...)
}

// do runs a command whose sandbox may outlive it, and which therefore gives no
// pipe to it.
func (r runsc) do(ctx context.Context, args ...string) error {
	argv := r.argv(args...)
	return exec.CommandContext(ctx, argv[0], argv[1:]...).Run() //nolint:gosec // the operator names it
}

// writeBundle writes what runsc makes a sandbox of: the host's programs, read-only,
// an empty workspace, a user that is not root, and no capability.
func writeBundle(dir string, argv ...string) error {
	root := filepath.Join(dir, "rootfs")
	for _, d := range []string{"usr", "proc", "dev", "tmp", "workspace"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil { //nolint:gosec // programs in the sandbox are another user
			return err
		}
	}
	for _, l := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+l, filepath.Join(root, l)); err != nil {
			return err
		}
	}
	type object = map[string]any
	none := []string{}
	memory := func(at string) object {
		return object{"destination": at, "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "nodev", "size=268435456", "mode=1777"}}
	}
	var spaces []object
	for kind := range strings.FieldsSeq("pid network ipc uts mount") {
		spaces = append(spaces, object{"type": kind})
	}
	text, err := json.Marshal(object{
		"ociVersion": "1.0.2", "hostname": "sandbox", "root": object{"path": "rootfs", "readonly": true},
		"process": object{
			"args": argv, "cwd": "/", "env": []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, "user": object{"uid": 1000, "gid": 1000},
			"noNewPrivileges": true, "capabilities": object{"bounding": none, "effective": none, "permitted": none},
		},
		"mounts": []object{
			{"destination": "/proc", "type": "proc", "source": "proc"},
			{"destination": "/usr", "type": "bind", "source": "/usr", "options": []string{"bind", "ro", "nosuid", "nodev"}},
			memory("/tmp"), memory("/workspace"),
		},
		"linux": object{"namespaces": spaces},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}
