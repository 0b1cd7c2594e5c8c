//go:build linux

package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/cove-sandbox/cove"
)

// TestAgentVolume is about the volume that brings the agent in: who removes it
// costs the next sandbox time, and nothing else.
func TestAgentVolume(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	engine := engineClient(t, cfg.Host)
	agent := func() (names []string) {
		list, err := engine.VolumeList(t.Context(), client.VolumeListOptions{Filters: client.Filters{}.Add("label", "dev.cove.agent")})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list.Items {
			names = append(names, v.Name)
		}
		return names
	}
	old, err := engine.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: "cove-agent-of-long-ago", Labels: map[string]string{"dev.cove.agent": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	p := openAt(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	s := create(t, p, cove.Spec{})
	for _, name := range agent() {
		if name == old.Volume.Name {
			t.Error("the volume of an old agent is still there")
		}
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range agent() {
		_, _ = engine.VolumeRemove(t.Context(), name, client.VolumeRemoveOptions{}) // another test may use it
	}
	s = create(t, p, cove.Spec{})
	if err := s.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir)
}

// TestForeignAgent is about a volume in which something else is than its name says.
func TestForeignAgent(t *testing.T) {
	cfg := engineAt(t, "COVE_TEST_DOCKER_HOST")
	engine := engineClient(t, cfg.Host)
	agent, err := os.ReadFile(cfg.Agent)
	if err != nil {
		t.Fatal(err)
	}
	// An agent of its own, so that no other test uses the volume.
	agent = append(agent, t.Name()...)
	cfg.Agent = filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(cfg.Agent, agent, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(agent)
	volume := "cove-agent-" + hex.EncodeToString(sum[:8])
	defer func() {
		_, _ = engine.VolumeRemove(context.WithoutCancel(t.Context()), volume, client.VolumeRemoveOptions{Force: true})
	}()
	made, err := engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config:     &container.Config{Image: testImage, Cmd: []string{"true"}},
		HostConfig: &container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: "/cove"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err = w.WriteHeader(&tar.Header{Name: "cove-agent", Typeflag: tar.TypeReg, Mode: 0o555, Size: int64(len(agent))})
	_, wrote := w.Write(bytes.Repeat([]byte("x"), len(agent)))
	if err := errors.Join(err, wrote, w.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = engine.CopyToContainer(t.Context(), made.ID, client.CopyToContainerOptions{DestinationPath: "/cove", Content: &b})
	_, gone := engine.ContainerRemove(t.Context(), made.ID, client.ContainerRemoveOptions{Force: true})
	if err = errors.Join(err, gone); err != nil {
		t.Fatal(err)
	}
	p := openAt(t, cfg)
	defer func() { _ = p.Close() }()
	draft := filepath.Join(cfg.Dir, "snapshots", ".draft-1")
	if err := errors.Join(os.MkdirAll(filepath.Dir(draft), 0o700), os.WriteFile(draft, nil, 0o600), os.Chtimes(draft, time.Unix(1, 0), time.Unix(1, 0))); err != nil {
		t.Fatal(err)
	}
	s := create(t, p, cove.Spec{})
	if got := output(t, s, "echo on"); got != "on\n" {
		t.Errorf("it prints %q", got)
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, cfg.Host, cfg.Dir) // nor the draft of somebody who was killed
}
