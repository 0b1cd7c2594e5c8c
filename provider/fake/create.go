package fake

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/cove-sandbox/cove"
)

// marker is the file that makes a directory a sandbox. It is written when all
// else is there.
const marker = "spec.json"

// Create implements [cove.Provider].
func (p *Provider) Create(ctx context.Context, id cove.ID, spec cove.Spec) (cove.Sandbox, error) {
	spec, err := p.admit(ctx, "create.begin", id, spec)
	if err != nil {
		return nil, err
	}
	if err := p.delay(ctx); err != nil {
		return nil, err
	}
	return p.create(id, spec, p.furnish(spec.Snapshot))
}

// admit checks what is asked for and fills in what is left open.
func (p *Provider) admit(ctx context.Context, step string, id cove.ID, spec cove.Spec) (cove.Spec, error) {
	if !id.Valid() {
		return spec, cove.InvalidField("id", "%.60q is not an id", string(id))
	}
	if err := p.enter(ctx, step, id); err != nil {
		return spec, err
	}
	spec = spec.Clone()
	if spec.Workspace.Kind == "" {
		spec.Workspace.Kind = cove.WorkspaceMemory
	}
	if spec.Network.Mode == "" {
		spec.Network.Mode = cove.NetworkNone
	}
	if spec.Template == "" && len(p.cfg.Templates) > 0 {
		spec.Template = p.cfg.Templates[0]
	}
	if err := spec.Validate(); err != nil {
		return spec, err
	}
	if err := p.knows(spec.Network); err != nil {
		return spec, err
	}
	if spec.Snapshot != "" && !p.has(cove.PowerSnapshot) {
		return spec, cove.Errorf(cove.Unsupported, "provider %s has no snapshots", p.cfg.Name)
	}
	return spec, p.caps.Check(p.cfg.Name, spec)
}

// create makes the directory of a sandbox and opens it, or leaves nothing.
// fill makes the tree in the directory, and says whether it is empty.
func (p *Provider) create(id cove.ID, spec cove.Spec, fill func(box *os.Root) (empty bool, err error)) (cove.Sandbox, error) {
	if err := p.root.Mkdir(string(id), 0o700); err != nil {
		return nil, p.makeError(id, err)
	}
	return p.finish(id, spec, fill)
}

// finish turns a directory into a live sandbox. When it cannot, it removes
// what is there.
func (p *Provider) finish(id cove.ID, spec cove.Spec, fill func(box *os.Root) (bool, error)) (cove.Sandbox, error) {
	made, err := p.assemble(id, spec, fill)
	if err != nil {
		return nil, after(p.makeError(id, err), p.erase(string(id)))
	}
	return p.register(made), nil
}

func (p *Provider) assemble(id cove.ID, spec cove.Spec, fill func(box *os.Root) (bool, error)) (*sandbox, error) {
	box, err := p.root.OpenRoot(string(id))
	if err != nil {
		return nil, err
	}
	defer func() { _ = box.Close() }()
	empty, err := fill(box)
	if err != nil {
		return nil, err
	}
	if err := p.hook("create.made", id); err != nil {
		return nil, err
	}
	made, err := p.open(id, spec, box, empty)
	if err != nil {
		return nil, err
	}
	if err := mark(box, spec); err != nil {
		made.stop()
		return nil, err
	}
	return made, nil
}

// makeError words what went wrong with a directory. What a hook or a part of
// ours said stays as it is.
func (p *Provider) makeError(id cove.ID, err error) error {
	_, ours := errors.AsType[*cove.Error](err)
	_, onPath := errors.AsType[*fs.PathError](err)
	_, onLink := errors.AsType[*os.LinkError](err)
	switch {
	case ours:
		return err
	case errors.Is(err, fs.ErrExist):
		return cove.Wrap(cove.Conflict, err, "sandbox %s exists already", id)
	case onPath || onLink:
		return cove.Wrap(cove.Unavailable, err, "the directory of sandbox %s cannot be made", id)
	}
	return err
}

// furnish makes the tree of a sandbox, empty or from a snapshot.
func (p *Provider) furnish(snapshot cove.ID) func(box *os.Root) (bool, error) {
	return func(box *os.Root) (bool, error) {
		if snapshot != "" {
			return false, p.unfreeze(box, snapshot)
		}
		for _, dir := range []string{treeDir, treeDir + "/workspace", treeDir + "/tmp", treeDir + "/home"} {
			if err := box.Mkdir(dir, 0o755); err != nil {
				return true, err
			}
		}
		return true, nil
	}
}

// mark writes the spec down and with it declares the sandbox made. Half a file
// is none: it does not parse.
func mark(box *os.Root, spec cove.Spec) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the spec cannot be written down")
	}
	return box.WriteFile(marker, text, 0o600)
}

// open opens the tree of a sandbox and starts its machine.
func (p *Provider) open(id cove.ID, spec cove.Spec, box *os.Root, empty bool) (*sandbox, error) {
	if err := mend(box); err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the files of sandbox %s cannot be put back", id)
	}
	root, err := box.OpenRoot(treeDir)
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the files of sandbox %s cannot be opened", id)
	}
	t := newTree(root, p.quota(spec), func(name string) bool { return p.tools[name] != nil })
	for _, v := range spec.Volumes {
		if err := t.addVolume(v); err != nil {
			t.close()
			return nil, err
		}
		empty = false
	}
	if !empty {
		if err := t.count(); err != nil {
			t.close()
			return nil, fileError(cove.WorkspacePath, err)
		}
	}
	return newSandbox(p, id, spec, p.caps.For(spec.Workspace.Kind), t), nil
}

// quota is what a workspace is held to.
func (p *Provider) quota(spec cove.Spec) cove.Workspace {
	iso, quota := p.caps.For(spec.Workspace.Kind), spec.Workspace
	if iso.Disk != cove.Hard {
		quota.Size = 0
	}
	if iso.Files != cove.Hard {
		quota.Files = 0
	}
	return quota
}

// register makes a sandbox known and returns what callers see of it.
func (p *Provider) register(box *sandbox) cove.Sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		box.stop()
		return box.face
	}
	p.boxes[box.id] = box
	p.keep(box)
	return box.face
}

// Attach implements [cove.Provider].
func (p *Provider) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	if !id.Valid() {
		return nil, cove.Errorf(cove.NotFound, "%.60q is not an id", string(id))
	}
	if err := p.enter(ctx, "attach", id); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if box := p.boxes[id]; box != nil {
		return box.face, nil
	}
	if p.closed || !p.has(cove.PowerAttach) {
		return nil, cove.Errorf(cove.NotFound, "sandbox %s is gone", id)
	}
	if held := p.cfg.Keeper.find(id); held != nil {
		found := held.again(p)
		p.boxes[id] = found
		p.keep(found)
		return found.face, nil
	}
	spec, err := p.marked(id)
	if err != nil {
		return nil, err
	}
	box, err := p.root.OpenRoot(string(id))
	if err != nil {
		return nil, cove.Wrap(cove.NotFound, err, "sandbox %s is gone", id)
	}
	defer func() { _ = box.Close() }()
	found, err := p.open(id, spec, box, false)
	if err != nil {
		return nil, err
	}
	p.boxes[id] = found
	p.keep(found)
	return found.face, nil
}

// keep hands a sandbox to the keeper, if there is one.
func (p *Provider) keep(box *sandbox) {
	if p.has(cove.PowerAttach) {
		p.cfg.Keeper.hold(box)
	}
}

// marked reads the spec of a sandbox that was made whole.
func (p *Provider) marked(id cove.ID) (cove.Spec, error) {
	var spec cove.Spec
	text, err := p.root.ReadFile(string(id) + "/" + marker)
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil {
		return spec, cove.Wrap(cove.NotFound, err, "sandbox %s is gone, or was never made whole; remove what is left", id)
	}
	return spec, nil
}
