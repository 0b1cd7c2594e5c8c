//go:build linux

package microsandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/mailbox"
)

// Where our things are inside a machine: the second, where programs are not root.
const (
	rootDir     = "/cove"
	guestDir    = "/dev/shm/.cove"
	mailboxName = mailbox.Name
)

func agentIn(dir string) string { return dir + "/cove-agent" }
func mailIn(dir string) string  { return dir + "/mail" }

// user is who programs are inside.
var user = 1000

// Create implements [cove.Provider].
func (p *Provider) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	if !id.Valid() {
		return nil, cove.InvalidField("id", "%.40q is not an id", string(id))
	}
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	t, err := p.choose(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.check(t, spec); err != nil {
		return nil, err
	}
	agent, err := p.agent()
	if err != nil {
		return nil, err
	}
	n, err := p.notebook()
	if err != nil {
		return nil, err
	}
	if err := p.claim(n, id); err != nil {
		return nil, err
	}
	defer func() {
		p.mu.Lock()
		delete(p.making, id)
		p.mu.Unlock()
	}()
	rec := note{Transport: t.kind(), Spec: spec.Clone(), Fence: t.fence()}
	if err := n.save(id, rec); err != nil {
		return nil, err
	}
	box := newSandbox(p, t, n, id, rec)
	ctx, cancel := context.WithTimeout(ctx, p.cfg.StartTimeout)
	defer cancel()
	err = p.bring(ctx, box, agent)
	if err == nil {
		box.rec.Made = true
		err = n.save(id, box.rec)
	}
	if err != nil {
		return nil, box.undo(ctx, err)
	}
	return p.keep(box)
}

// check reports what of a spec cannot be had.
func (p *Provider) check(t transport, spec cove.Spec) error {
	if spec.Snapshot != "" {
		return cove.Errorf(cove.Unsupported, "snapshot: provider %s keeps none", name).With("field", "snapshot")
	}
	if err := p.capabilities(t, t.fence()).Check(name, spec); err != nil {
		return err
	}
	if cpus := spec.Resources.CPUs; cpus > 0 && cpus < 1 && slices.Contains(spec.Floors, cove.LimitCPU) {
		return cove.Errorf(cove.Unsupported, "cpu_limit: a machine of provider %s has at least one CPU", name).
			Reason(cove.ReasonLimitNotEnforced).With("limit", string(cove.LimitCPU)).Remedy("ask for one CPU, or use another provider")
	}
	return nil
}

// claim makes an id ours to make.
func (p *Provider) claim(n *notes, id cove.ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := n.read(id)
	_, making := p.making[id]
	if p.boxes[id] != nil || making || cove.CodeOf(err) != cove.NotFound {
		return cove.Errorf(cove.Conflict, "sandbox %s exists already", id)
	}
	p.making[id] = struct{}{}
	return nil
}

// bring makes the machine and what a sandbox needs in it.
func (p *Provider) bring(ctx context.Context, box *sandbox, agent []byte) error {
	r := box.rec.Spec.Resources
	m := machine{name: box.machine, image: p.cfg.Image, cpus: int(r.CPUs), memory: r.Memory, network: box.rec.Spec.Network.Mode}
	if r.CPUs == 0 {
		m.cpus = int(p.cfg.CPUs)
	}
	if r.Memory == 0 {
		m.memory = p.cfg.Memory
	}
	m.cpus = min(max(m.cpus, 1), 255)
	if err := box.t.start(ctx, m); err != nil {
		return err
	}
	if err := box.t.install(ctx, box.machine, agentIn(box.dir()), agent); err != nil {
		return err
	}
	if err := p.furnish(ctx, box); err != nil {
		return err
	}
	_, err := box.conn(ctx)
	return err
}

// furnishScript makes the workspace: $1 its user, $2 the options of a tmpfs, or
// empty for a directory, $3 our directory, $4 what it is where there is a workspace
// already. It can be run again.
const furnishScript = `umask 022
if [ "$4" = fenced ]; then
[ -d /workspace ] && [ -w /workspace ] || exit 92
else
[ "$(id -u)" = 0 ] || { echo root; exit 91; }
mkdir -p /workspace /tmp && chmod 1777 /tmp || exit 92
if [ -n "$2" ] && ! grep -q '^cove /workspace tmpfs ' /proc/mounts; then mount -t tmpfs -o "$2" cove /workspace || exit 93; fi
chown "$1:$1" /workspace && chmod 0755 /workspace || exit 92
fi
mkdir -p "$3/mail" && chmod 0700 "$3/mail" || exit 92
"$3/cove-agent" mailbox version || exit 94
grep '^oom_kill ' /proc/vmstat || :`

// furnish prepares the machine's inside.
func (p *Provider) furnish(ctx context.Context, box *sandbox) error {
	w := box.rec.Spec.Workspace
	options := ""
	if w.Kind == cove.WorkspaceMemory {
		options = fmt.Sprintf("mode=0755,uid=%d,gid=%d,nosuid,nodev", user, user)
		if w.Size > 0 {
			options += fmt.Sprintf(",size=%d", w.Size)
		}
		if w.Files > 0 {
			options += fmt.Sprintf(",nr_inodes=%d", w.Files+1) // the workspace itself is one
		}
	}
	what := ""
	if box.rec.Fence != nil {
		what = "fenced"
	}
	f, err := again(ctx, func() (finished, error) {
		return box.t.run(ctx, box.machine, "sh", "-c", furnishScript, "sh", fmt.Sprint(user), options, box.dir(), what)
	})
	if err != nil {
		return err
	}
	if f.code == 0 {
		box.killed.Store(killedIn(f.stdout))
		return nil
	}
	cause := fmt.Errorf("code %d: %.200q %.200q", f.code, f.stdout, f.stderr)
	told := map[int]string{
		91: "the image's programs do not run as root, so that Cove cannot make a workspace in it",
		92: "the workspace cannot be made in this image",
		93: "the machine cannot mount a workspace in memory",
		94: "the agent cannot run in this machine: its processor may be of another kind than Cove's, or its kernel too old",
	}[f.code]
	if told == "" {
		told = "the machine cannot be prepared"
	}
	return cove.Wrap(cove.Unsupported, cause, "%s", told).Reason(cove.ReasonSandboxCreation).Remedy("use another image (MSB_IMAGE); it needs sh, coreutils and mount, and runs as root")
}

// undo ends what was begun, also when the caller is gone. What cannot be ended
// stays written down, so that Remove can do it later.
func (s *sandbox) undo(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	s.shut()
	err := s.t.stop(ctx, s.machine)
	if err == nil {
		err = s.notes.drop(s.id)
	}
	if err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// environment is what every program has.
func environment(spec cove.Spec) map[string]string {
	env := map[string]string{
		"HOME": cove.WorkspacePath, "LANG": "C.UTF-8", "LOGNAME": "sandbox", "USER": "sandbox", "SHELL": "/bin/sh",
		"PATH": strings.Join([]string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}, ":"),
	}
	maps.Copy(env, spec.Env)
	return env
}
