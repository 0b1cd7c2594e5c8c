//go:build linux

package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
	"github.com/cove-sandbox/cove/provider/docker"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// onDisk is a provider that has no workspaces in memory, so that the suite takes
// those on disk.
type onDisk struct{ outward }

// Unwrap lets [cove.As] find the powers below.
func (o onDisk) Unwrap() cove.Provider { return o.outward }

// Probe implements [cove.Provider].
func (o onDisk) Probe(ctx context.Context) (cove.Capabilities, error) {
	caps, err := o.outward.Probe(ctx)
	delete(caps.Workspaces, cove.WorkspaceMemory)
	return caps, err
}

// TestConformanceDisk is a part of the suite with workspaces on disk, without quotas.
func TestConformanceDisk(t *testing.T) {
	tier.Full(t, "TestDisk and TestDiskSize use workspaces on disk")
	engineAt(t, "COVE_TEST_DOCKER_HOST")
	providertest.Run(t, func(t *testing.T) cove.Provider {
		cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
		cfg.Egress.World = &world{web()}
		return onDisk{outward{openAt(t, cfg)}}
	}, "spec", "snapshot", "prepare", "attach", "usage")
}

// TestDiskOnPodman is about an engine that gives volumes to who uses them first.
func TestDiskOnPodman(t *testing.T) {
	tier.Full(t, "TestDisk uses Docker")
	cfg := engineAt(t, "COVE_TEST_PODMAN_HOST")
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	s := create(t, p, cove.Spec{Workspace: disk})
	if got := output(t, s, "ls -A; echo in > f && cat f"); got != "in\n" {
		t.Errorf("the workspace says %q", got)
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
}

var (
	disk        = cove.Workspace{Kind: cove.WorkspaceDisk, Size: 16 * cove.MiB}
	diskMold    = cove.Mold{Provider: "docker", Template: docker.Base, Workspace: cove.WorkspaceDisk}
	absentQuota = cove.Quota{Bytes: cove.Absent, Files: cove.Absent}
)

// TestDisk is about workspaces on disk where no storage driver bounds them.
func TestDisk(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	caps, err := p.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if caps.Workspaces[cove.WorkspaceDisk] != absentQuota {
		t.Skip("the engine bounds volumes")
	}
	if !strings.Contains(strings.Join(caps.Notes, "\n"), "workspaces on disk have no bounds: the engine's storage has no project quotas") {
		t.Errorf("the notes are %q", caps.Notes)
	}
	_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Workspace: disk, Floors: []cove.Limit{cove.LimitDisk}})
	if cove.CodeOf(err) != cove.Unsupported || cove.ReasonOf(err) != cove.ReasonLimitNotEnforced {
		t.Errorf("a bound that was asked for gives %v", err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
	s := create(t, p, cove.Spec{Workspace: disk})
	if s.Isolation().Disk != cove.Absent || s.Isolation().Files != cove.Absent {
		t.Errorf("the isolation is %+v", s.Isolation())
	}
	if got := output(t, s, "stat -c '%u:%g %a' /workspace; ls -A /workspace"); got != "1000:1000 755\n" {
		t.Errorf("the workspace is %q", got)
	}
	output(t, s, "head -c 3000000 /dev/zero > f && ln f g && mkdir d && echo x > d/x && sync f")
	if u, err := s.Usage(t.Context()); err != nil || u.Files != 4 || u.Disk < 3_000_000 || u.Disk > 4_000_000 {
		t.Errorf("the usage is %+v, %v", u, err)
	}
	// What would fill the disk of the server is not saved.
	output(t, s, "head -c 40000000 /dev/zero | tr '\\0' x > large")
	shot, _ := cove.As[cove.Snapshotter](s)
	if _, err := shot.Snapshot(t.Context(), cove.NewID()); cove.CodeOf(err) != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonWorkspaceFull {
		t.Errorf("a snapshot of much more than was asked for gives %v", err)
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
}

// TestDiskVolumesGo is about the volumes of sandboxes that end otherwise than by
// Destroy.
func TestDiskVolumesGo(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	engine := engineClient(t, cfg.Host)
	p := openAt(t, cfg)
	behind := func(id cove.ID) {
		if _, err := engine.ContainerRemove(t.Context(), "cove-"+string(id), client.ContainerRemoveOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
		if n := len(volumes(t, cfg.Host, cfg.Dir)); n != 1 {
			t.Fatalf("there are %d volumes; want the one that was left", n)
		}
	}
	t.Run("removed by somebody else", func(t *testing.T) {
		s := create(t, p, cove.Spec{Workspace: disk})
		behind(s.ID())
		if err := s.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
		nothingLeft(t, cfg.Host, cfg.Dir)
	})
	t.Run("a spare that nobody wants", func(t *testing.T) {
		spare, err := p.Prepare(t.Context(), diskMold)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(volumes(t, cfg.Host, cfg.Dir)); n != 1 {
			t.Errorf("there are %d volumes", n)
		}
		if err := spare.Discard(t.Context()); err != nil {
			t.Error(err)
		}
		nothingLeft(t, cfg.Host, cfg.Dir)
	})
	t.Run("a name that is taken", func(t *testing.T) {
		s := create(t, p, cove.Spec{})
		elsewhere := cfg
		elsewhere.Dir = t.TempDir()
		other := openAt(t, elsewhere)
		if _, err := other.Create(t.Context(), s.ID(), cove.Spec{Workspace: disk}); cove.CodeOf(err) != cove.Conflict {
			t.Errorf("it gives %v", err)
		}
		_ = other.Close()
		nothingLeft(t, cfg.Host, elsewhere.Dir)
		if err := s.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	})
	var ids []cove.ID
	for range 2 {
		ids = append(ids, create(t, p, cove.Spec{Workspace: disk}).ID())
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	t.Run("of an earlier process", func(t *testing.T) {
		if err := p.Remove(t.Context(), ids[0]); err != nil {
			t.Error(err)
		}
		behind(ids[1])
		if err := p.Remove(t.Context(), ids[1]); err != nil {
			t.Error(err)
		}
		nothingLeft(t, cfg.Host, cfg.Dir)
	})
	t.Run("half-made", func(t *testing.T) {
		owner, err := os.ReadFile(filepath.Join(cfg.Dir, "owner"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: "cove-workspace-" + string(cove.NewID()), Labels: map[string]string{"dev.cove.owner": string(owner)}}); err != nil {
			t.Fatal(err)
		}
		if err := create(t, p, cove.Spec{}).Destroy(t.Context()); err != nil {
			t.Error(err)
		}
		nothingLeft(t, cfg.Host, cfg.Dir)
	})
}

// bounding stands before an engine whose volumes have no bounds, as one whose have:
// it notes the bound of each, and does not pass it on.
type bounding struct {
	mu    sync.Mutex
	sizes []string
}

func (b *bounding) proxy(t *testing.T, host string) string {
	t.Helper()
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	var d net.Dialer
	forward.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", strings.TrimPrefix(host, "unix://"))
	}}
	forward.FlushInterval = -1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/volumes/create") {
			var asked map[string]any
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			if o, ok := asked["DriverOpts"].(map[string]any); ok && o["size"] != nil {
				b.mu.Lock()
				b.sizes = append(b.sizes, o["size"].(string))
				b.mu.Unlock()
				delete(asked, "DriverOpts")
			}
			text, _ := json.Marshal(asked)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return "tcp://" + s.Listener.Addr().String()
}

// TestDiskSize is about what an engine is asked for that bounds volumes.
func TestDiskSize(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	if !strings.HasPrefix(cfg.Host, "unix://") {
		t.Skip("the engine is not on a socket")
	}
	host := cfg.Host
	var b bounding
	cfg.Host = b.proxy(t, host)
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	for range 2 { // it is tried once
		caps, err := p.Probe(t.Context())
		if want := (cove.Quota{Bytes: cove.Hard, Files: cove.Absent}); err != nil || caps.Workspaces[cove.WorkspaceDisk] != want {
			t.Errorf("the bounds are %+v, %v", caps.Workspaces, err)
		}
	}
	s := create(t, p, cove.Spec{Workspace: disk, Floors: []cove.Limit{cove.LimitDisk}})
	if s.Isolation().Disk != cove.Hard || s.Isolation().Files != cove.Absent {
		t.Errorf("the isolation is %+v", s.Isolation())
	}
	spare, err := p.Prepare(t.Context(), diskMold) // as asked for last
	if err != nil {
		t.Fatal(err)
	}
	larger := disk
	larger.Size *= 2
	again, err := spare.Claim(t.Context(), cove.NewID(), cove.Spec{Workspace: larger})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []cove.Sandbox{s, again} {
		if err := s.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}
	want := []string{"16777216", "16777216", "16777216", "33554432"} // the trial, the sandbox, the spare, and one in its place
	if diff := cmp.Diff(want, b.sizes); diff != "" {
		t.Errorf("the bounds that were asked for (-want +got):\n%s", diff)
	}
	nothingLeft(t, host, cfg.Dir)
	left, err := engineClient(t, host).VolumeList(t.Context(), client.VolumeListOptions{Filters: client.Filters{}.Add("label", "dev.cove.trial")})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("the trial left %+v, %v", left.Items, err)
	}
}

// quotas is a file system that bounds directories. Not every kernel can have one.
func quotas(t *testing.T, dir string) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "xfs")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 512<<20); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"mkfs.xfs", "-q", image}, {"mount", "-o", "loop,pquota", image, dir}} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Skipf("xfs with project quotas cannot be had here (package xfsprogs, and a kernel with CONFIG_XFS_QUOTA): %s: %v\n%s", argv[0], err, out)
		}
	}
}

// TestDiskQuota is about an engine that bounds volumes.
func TestDiskQuota(t *testing.T) {
	cfg, _ := private(t, quotas)
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	caps, err := p.Probe(t.Context())
	if want := (cove.Quota{Bytes: cove.Hard, Files: cove.Absent}); err != nil || caps.Workspaces[cove.WorkspaceDisk] != want {
		t.Fatalf("the bounds are %+v, %v", caps.Workspaces, err)
	}
	s := create(t, p, cove.Spec{Workspace: disk, Floors: []cove.Limit{cove.LimitDisk}})
	if err := s.Files().Write(t.Context(), "fits", io.LimitReader(zeros{}, int64(disk.Size/2)), 0); err != nil {
		t.Error(err)
	}
	if u, err := s.Usage(t.Context()); err != nil || u.Disk < disk.Size/2 || u.Disk > disk.Size {
		t.Errorf("the usage is %+v, %v", u, err)
	}
	err = s.Files().Write(t.Context(), "more", io.LimitReader(zeros{}, int64(disk.Size)), 0)
	if cove.CodeOf(err) != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonWorkspaceFull {
		t.Errorf("more than fits gives %v", err)
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
}
