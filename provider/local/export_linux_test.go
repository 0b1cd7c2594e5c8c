package local

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/egress"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// What looks at a host, for tests with a host of their own.
var (
	NewRoot         = newRoot
	AddParents      = addParents
	AddInterpreters = addInterpreters
	GroupName       = groupName
	Environment     = environment
	Joined          = joined
	RemoveTree      = removeTree
)

// MostCopied and AllCopied bound what is copied from /etc.
const (
	MostCopied = mostCopied
	AllCopied  = allCopied
	HatchCode  = hatchCode
)

// PID is that of a sandbox's agent on the host.
func PID(s cove.Sandbox) int {
	box, _ := cove.As[*sandbox](s)
	box.mu.Lock()
	defer box.mu.Unlock()
	return box.made.pid
}

// Frozen reports whether a sandbox is held.
func Frozen(s cove.Sandbox) bool {
	box, _ := cove.As[*sandbox](s)
	<-box.freezer.turn
	defer box.freezer.give()
	return box.freezer.paused
}

// RemoveGroup takes the control group of a sandbox away that has nobody left.
func RemoveGroup(ctx context.Context, s cove.Sandbox) error {
	box, _ := cove.As[*sandbox](s)
	return errors.Join(box.groups.Kill(ctx), box.groups.Remove(ctx))
}

// Measure counts what is below a directory, until it is more than enough.
func Measure(dir string, bytes, files int64) (int64, int64, bool) {
	u := measure(dir, used{bytes: bytes, files: files})
	return u.bytes, u.files, u.deep
}

// SparePID is that of a spare's agent, and SpareName the id of its groups.
func SparePID(s cove.Spare) int      { return s.(*spare).made.pid }  //nolint:forcetypeassert // tests have no other
func SpareName(s cove.Spare) cove.ID { return s.(*spare).made.name } //nolint:forcetypeassert // tests have no other

// StartBy is StartIn with a way to start of the test's own.
func StartBy(ctx context.Context, s cove.Spare, cmd cove.Command, r cove.Resources, start func(context.Context, cove.Command) (cove.Process, error)) (cove.Process, error) {
	return s.(*spare).startIn(ctx, cmd, r, start) //nolint:forcetypeassert // tests have no other
}

// SpareDone is closed when the agent of a spare is gone.
func SpareDone(s cove.Spare) <-chan struct{} { return s.(*spare).conn.Done() } //nolint:forcetypeassert // tests have no other

// Explain is what a failure to build becomes.
func Explain(p *Provider, err error) error {
	h, opened := p.open()
	if opened != nil {
		return opened
	}
	return h.explain(err)
}

// ExplainTemplate is what a failure to build from a template becomes.
func ExplainTemplate(p *Provider, template string, err error) error {
	k, _, missing := p.host.kitFor(template)
	if missing != nil {
		return missing
	}
	return k.explain(err)
}

// Groups reports whether there are control groups here.
func Groups(p *Provider) bool {
	h, err := p.open()
	if err != nil {
		return false
	}
	groups, _ := h.control()
	return groups != nil
}

// Plan is what all sandboxes have in common.
func Plan(p *Provider) (*fence.Plan, error) {
	h, err := p.open()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newPlan()
}

// GiveUpProc is what a refused /proc makes of the plan.
func GiveUpProc(p *Provider, refused error) (again, proc bool) {
	h, err := p.open()
	if err != nil {
		return false, false
	}
	again = h.giveUpProc(refused)
	h.mu.Lock()
	defer h.mu.Unlock()
	return again, h.plan != nil && h.plan.Proc
}

// NotAnAgent makes this executable one that never called Main, until undo.
func NotAnAgent() (undo func()) {
	before := answers.Swap(false)
	return func() { answers.Store(before) }
}

// Stacking says why there are no layers on this host.
var Stacking = stacking

// Layers reports whether a provider has layers.
func Layers(p *Provider) bool {
	h, err := p.open()
	return err == nil && h.layers()
}

// StoreFD is a descriptor of the store of a sandbox's workspace.
func StoreFD(s cove.Sandbox) int {
	box, _ := cove.As[*sandbox](s)
	return box.shelf.own.fd
}

// Written waits until all snapshots are on the disk.
func Written(p *Provider) { p.saved.writes.Wait() }

// Flatten gives up the layers of a provider, as a host would make it.
func Flatten(p *Provider, why error) {
	if h, err := p.open(); err == nil {
		h.flatten(why)
	}
}

// SetWorld makes connections of sandboxes go elsewhere.
func (c *Config) SetWorld(w egress.World) { c.Egress.World = w }

// Unopened says why there is no way out.
var Unopened = unopened

// Gate keeps calls out for a moment.
type Gate struct{ g gate }

// Enter, Use, Close and Open are the methods of a gate.
func (g *Gate) Enter() func()              { return g.g.enter() }
func (g *Gate) Use() func()                { return g.g.use() }
func (g *Gate) Close(d time.Duration) bool { return g.g.close(d) }
func (g *Gate) Open()                      { g.g.open() }

// KeepInMemory changes how much of snapshots is kept in memory, and returns what
// changes it back.
func KeepInMemory(n cove.Bytes) (undo func()) {
	before := inMemory
	inMemory = n
	return func() { inMemory = before }
}

// Interrupt leaves the workspace of a sandbox as a process that is killed in the
// middle of a step does: before anything changed, with nothing at /workspace or
// what was there below a trial, or with everything changed and not noted.
//
// It reports whether nothing is there.
func Interrupt(ctx context.Context, sb cove.Sandbox, how, at string) (bare bool, err error) {
	box, _ := cove.As[*sandbox](sb)
	s := box.shelf
	s.mu.Lock()
	defer s.mu.Unlock()
	at, promised := strings.CutPrefix(at, "promised ")
	if promised {
		if !s.known(step(how)) {
			return false, errors.New("it would be written down")
		}
		if err := unix.Mkdirat(s.own.fd, fence.PromiseOf(s.state.Upper), 0o700); err != nil {
			return false, err
		}
	} else if err := s.write(ctx, step(how)); err != nil {
		return false, err
	}
	switch at {
	case "after":
		return false, s.show(ctx, s.change(step(how)))
	case "bare":
		j := fence.Job{Kind: fence.JobShow, Owner: s.owner, Stack: fence.Stack{Upper: "none"}}
		_, err := s.do(ctx, j, s.namespace, s.own.fd)
		return err != nil, nil
	}
	return false, nil
}

// Layered counts the directories of a workspace's store that are no files of the
// sandbox, as they are noted.
func Layered(sb cove.Sandbox) (names []string, extra int64) {
	box, _ := cove.As[*sandbox](sb)
	names, _ = namesIn(box.shelf.own.fd, ".")
	box.shelf.mu.Lock()
	defer box.shelf.mu.Unlock()
	return names, box.shelf.state.Extra
}

// WorkspaceOf reads a line of a list of mounts.
var WorkspaceOf = workspaceOf

// SaveCutShort makes a snapshot that is not written, as by a process that is
// killed before.
func SaveCutShort(ctx context.Context, sb cove.Sandbox, name cove.ID) error {
	box, _ := cove.As[*sandbox](sb)
	files, err := box.shelf.freeze(ctx)
	if err == nil {
		_, err = box.p.holdSnapshot(ctx, name, files, box.shelf.crew)
	}
	return err
}

// FailedSave waits for the writes of snapshots, and reports what became of one.
func FailedSave(p *Provider, name cove.ID) error {
	p.saved.writes.Wait()
	p.saved.mu.Lock()
	defer p.saved.mu.Unlock()
	return p.saved.kept[name].failed
}

// MakerPID is that of the spawner of a sandbox.
func MakerPID(sb cove.Sandbox) int {
	box, _ := cove.As[*sandbox](sb)
	socket, process, err := box.kept.maker.Link()
	if err != nil {
		return 0
	}
	defer closeAll([]int{socket, process})
	text, _ := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(process))
	_, rest, _ := strings.Cut(string(text), "\nPid:")
	word, _, _ := strings.Cut(rest, "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(word))
	return pid
}

// Lull and Drowsy are lull and drowsy.
const Drowsy = drowsy

func Lull() { lull() }

// RestKits ends the spawners of templates that nobody has a sandbox of, as time
// does.
func RestKits(p *Provider) {
	for _, k := range p.host.kits {
		k.rest()
	}
}

// TreeRoot is the root of a template that is a tree, and LayerRoot that of one
// that lies over a host.
func TreeRoot(tree string) (fence.Root, error) { return treeRoot(tree) }

// LayerRoot is the root of a host with a layer over it.
func LayerRoot(top, tree string) (fence.Root, error) {
	r := newRoot(top, "")
	err := addLayer(&r, tree)
	return r, err
}
