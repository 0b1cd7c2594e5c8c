//go:build linux

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// mostAgent bounds what is read as an agent: a whole cove is less.
const mostAgent = 512 * cove.MiB

// executable is the agent of this build.
type executable struct {
	content []byte
	sum     [sha256.Size]byte
	id      string // of its content
}

// agents keeps those that were read, by their paths: they are the same for every
// provider.
var agents sync.Map

// readAgent reads the agent of the config.
func readAgent(file string) (*executable, error) {
	if file == "" {
		own, err := guest.Executable()
		if err != nil {
			return nil, err
		}
		file = own
	}
	if b, ok := agents.Load(file); ok {
		return b.(*executable), nil //nolint:forcetypeassert // only these are in it
	}
	f, err := os.Open(file) //nolint:gosec // the operator names it
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the agent of sandboxes cannot be read: %s", reasonOf(err))
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, int64(mostAgent)))
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the agent of sandboxes cannot be read: %s", reasonOf(err))
	}
	sum := sha256.Sum256(content)
	b := &executable{content: content, sum: sum, id: hex.EncodeToString(sum[:8])}
	agents.Store(file, b)
	return b, nil
}

func (p *Provider) agentVolume() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agent
}

// bring puts the agent on the engine, if it is not there: into a volume that is
// named for its content. A container that is never started shows the volume.
func (p *Provider) bring(ctx context.Context, f *facts) error {
	p.filling.Lock()
	defer p.filling.Unlock()
	if p.agentVolume() != "" {
		return nil
	}
	b, err := readAgent(p.cfg.Agent)
	if err != nil {
		return err
	}
	e, owner, err := p.mine()
	if err != nil {
		return err
	}
	do, cancel := within(ctx, makePatience)
	defer cancel()
	volume := agentPrefix + b.id
	if _, err := e.VolumeCreate(do, client.VolumeCreateOptions{Name: volume, Labels: map[string]string{labelAgent: b.id}}); err != nil {
		return e.fault(ctx, err, "make a volume")
	}
	if err := p.shown(do, ctx, e, owner, f, mount.Mount{Source: volume, Target: agentDir}, func(container string) error { return e.fill(do, container, b) }); err != nil {
		return err
	}
	p.mu.Lock()
	p.agent = volume
	p.mu.Unlock()
	p.dropOldAgents(ctx, e, volume)
	return nil
}

// shown has use look at a volume through a container that is never started, and is
// gone afterwards. do bounds it, ctx is the caller's own.
func (p *Provider) shown(do, ctx context.Context, e *engine, owner string, f *facts, m mount.Mount, use func(helper string) error) error {
	m.Type, m.VolumeOptions = mount.TypeVolume, &mount.VolumeOptions{NoCopy: true}
	name := helperPrefix + string(cove.NewID())
	_, err := e.ContainerCreate(do, client.ContainerCreateOptions{
		Name:       name,
		Config:     &container.Config{Image: f.images[Base].id, Entrypoint: []string{agentPath}, Labels: map[string]string{labelOwner: owner}, NetworkDisabled: true},
		HostConfig: &container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{m}},
	})
	if err != nil {
		return p.undo(ctx, name, e.fault(ctx, err, "make a container"))
	}
	err = use(name)
	away, stop := last(ctx)
	defer stop()
	if gone := p.remove(away, name, ""); err == nil && gone != nil {
		return gone
	}
	return e.fault(ctx, err, "take a file")
}

// fill writes the agent, unless it is there and whole.
func (e *engine) fill(ctx context.Context, into string, b *executable) error {
	if e.holds(ctx, into, b) {
		return nil
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	err := w.WriteHeader(&tar.Header{Name: path.Base(agentPath), Typeflag: tar.TypeReg, Mode: 0o555, Size: int64(len(b.content))})
	if err == nil {
		_, err = w.Write(b.content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return err
	}
	_, err = e.CopyToContainer(ctx, into, client.CopyToContainerOptions{DestinationPath: agentDir, Content: &buf})
	return err
}

// holds reports whether the agent is in a container. The name of a volume says what
// should be in it; the disk may have been full, or somebody may have written to it.
func (e *engine) holds(ctx context.Context, in string, b *executable) bool {
	got, err := e.CopyFromContainer(ctx, in, client.CopyFromContainerOptions{SourcePath: agentPath})
	if err != nil {
		return false
	}
	defer func() { _ = got.Content.Close() }()
	const all, heads = 0o555, 64 << 10
	r := tar.NewReader(io.LimitReader(got.Content, int64(len(b.content)+heads)))
	h, err := r.Next()
	if err != nil || h.Typeflag != tar.TypeReg || h.Size != int64(len(b.content)) || h.Mode&0o777 != all {
		return false
	}
	sum := sha256.New()
	_, err = io.CopyN(sum, r, h.Size)
	return err == nil && bytes.Equal(sum.Sum(nil), b.sum[:])
}

// forgetAgent is for a volume that turned out to be without its agent.
func (p *Provider) forgetAgent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agent = ""
}

// dropOldAgents removes the volumes of other builds that nobody uses. What is in
// use stays, and so does what cannot be removed: the next one tries again.
func (p *Provider) dropOldAgents(ctx context.Context, e *engine, current string) {
	do, cancel := within(ctx, doPatience)
	defer cancel()
	list, err := e.VolumeList(do, client.VolumeListOptions{Filters: client.Filters{}.Add("label", labelAgent)})
	if err != nil {
		return
	}
	for _, v := range list.Items {
		if v.Name != current {
			_, _ = e.VolumeRemove(do, v.Name, client.VolumeRemoveOptions{})
		}
	}
}
