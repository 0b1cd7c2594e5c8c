//go:build linux

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"path"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
)

// What workspaces on disk are known by.
const (
	workspacePrefix = prefix + "workspace-" // of volumes
	labelWorkspace  = "dev.cove.workspace"  // of a container: the volume it has
	trialPrefix     = prefix + "trial-"
	labelTrial      = "dev.cove.trial"
	trialSize       = 16 * cove.MiB
)

// trial is what an engine did when it was asked to bound a volume.
type trial struct {
	engine string // which it was
	bounds bool
	why    string // it does not
}

// tryQuota finds out, once for an engine, whether it bounds volumes: that depends on
// the file system below it, which the engine names nowhere.
func (p *Provider) tryQuota(ask, ctx context.Context, e *engine, f *facts, info system.Info) error {
	if f.podman {
		f.disk = trial{why: "Podman's volumes have none"}
		return nil
	}
	which := strings.Join([]string{info.ID, info.DockerRootDir, info.ServerVersion}, " ")
	p.mu.Lock()
	f.disk = p.tried
	p.mu.Unlock()
	if f.disk.engine == which {
		return nil
	}
	_, err := e.VolumeCreate(ask, client.VolumeCreateOptions{
		Name: trialPrefix + string(cove.NewID()), Labels: map[string]string{labelTrial: ""}, DriverOpts: sized(trialSize),
	})
	f.disk = trial{engine: which, bounds: err == nil}
	switch {
	case err == nil:
		if err := e.dropVolumes(ask, labelTrial); err != nil {
			return e.fault(ctx, err, "remove a volume")
		}
	case strings.Contains(err.Error(), "quota"), errdefs.IsInvalidArgument(err):
		f.disk.why = "the engine's storage has no project quotas, as xfs has that is mounted with pquota"
	default: // which says nothing about volumes
		return e.fault(ctx, err, "make a volume")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried = f.disk
	return nil
}

func sized(size cove.Bytes) map[string]string {
	return map[string]string{"size": strconv.FormatInt(int64(size), 10)}
}

// quota says how far the bounds of a workspace on disk hold. No engine bounds the
// number of files in a volume.
func (t trial) quota() cove.Quota {
	if t.bounds {
		return cove.Quota{Bytes: cove.Hard, Files: cove.Absent}
	}
	return cove.Quota{Bytes: cove.Absent, Files: cove.Absent}
}

// note says what is missing.
func (t trial) note() string {
	if t.bounds {
		return "workspaces on disk have no bound on the number of files"
	}
	return "workspaces on disk have no bounds: " + t.why
}

// workspace makes the volume of a sandbox whose workspace is on disk; "" is that of
// one whose is not. On error nothing of it is left.
func (p *Provider) workspace(ctx context.Context, e *engine, owner string, f *facts, w cove.Workspace) (string, error) {
	if w.Kind != cove.WorkspaceDisk {
		return "", nil
	}
	do, cancel := within(ctx, makePatience)
	defer cancel()
	o := client.VolumeCreateOptions{Name: workspacePrefix + string(cove.NewID()), Labels: map[string]string{labelOwner: owner}}
	if f.disk.bounds {
		o.DriverOpts = sized(w.Size)
	}
	_, err := e.VolumeCreate(do, o)
	if err != nil {
		err = e.fault(ctx, err, "make a volume")
	} else if !f.podman { // which gives a volume to the first user that it is mounted for
		err = p.give(do, ctx, e, owner, f, o.Name)
	}
	if err != nil {
		return "", p.undoVolume(ctx, o.Name, err)
	}
	return o.Name, nil
}

// give makes the root of a volume the sandbox's own. An archive cannot change the
// directory that it is unpacked in, so the volume is shown one below that.
func (p *Provider) give(do, ctx context.Context, e *engine, owner string, f *facts, volume string) error {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	below := path.Base(cove.WorkspacePath)
	err := w.WriteHeader(&tar.Header{Name: below + "/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: userID, Gid: userID})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return cove.Wrap(cove.Internal, err, "the archive of an empty workspace cannot be made")
	}
	return p.shown(do, ctx, e, owner, f, mount.Mount{Source: volume, Target: path.Join(agentDir, below)}, func(container string) error {
		_, err := e.CopyToContainer(do, container, client.CopyToContainerOptions{DestinationPath: agentDir, Content: &buf})
		return err
	})
}

// dropVolume removes the volume of a workspace, if it is there.
func (p *Provider) dropVolume(ctx context.Context, volume string) error {
	if !strings.HasPrefix(volume, workspacePrefix) {
		return nil
	}
	e, err := p.open()
	if err != nil {
		return err
	}
	do, cancel := within(ctx, removePatience)
	defer cancel()
	if _, err := e.VolumeRemove(do, volume, client.VolumeRemoveOptions{}); err != nil && !isGone(err) {
		return e.fault(ctx, err, "remove a volume")
	}
	return nil
}

// undoVolume removes the volume of what cannot be had, and keeps the reason.
func (p *Provider) undoVolume(ctx context.Context, volume string, err error) error {
	away, cancel := last(ctx)
	defer cancel()
	return joined(err, p.dropVolume(away, volume))
}

// dropVolumes removes the volumes with a label that no container has.
func (e *engine) dropVolumes(ctx context.Context, label string) error {
	list, err := e.VolumeList(ctx, client.VolumeListOptions{Filters: client.Filters{}.Add("label", label).Add("dangling", "true")})
	if err != nil {
		return err
	}
	for _, v := range list.Items {
		if _, err := e.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{}); err != nil && !isGone(err) {
			return err
		}
	}
	return nil
}
