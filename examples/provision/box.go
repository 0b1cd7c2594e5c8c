package main

import (
	"archive/tar"
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cove-sandbox/cove"
)

// Box is the sandbox of one agent.
type Box struct {
	platform cove.Platform
	id       cove.ID
}

// Provision makes a sandbox and copies a project into its workspace. A sandbox
// that does not get the project is not left behind. Close ends it.
func Provision(ctx context.Context, p cove.Platform, project string) (*Box, error) {
	s, err := p.Sessions().Open(ctx, cove.OpenRequest{
		Spec: cove.Spec{
			Project: filepath.Base(project),
			Flavor:  "medium", // 2 CPUs and 2 GB
			Network: cove.Network{Mode: cove.NetworkNone},
		},
		OnFull: cove.WaitWhenFull,
	})
	if err != nil {
		return nil, err
	}
	b := &Box{platform: p, id: s.ID}
	if err := b.copyIn(ctx, project); err != nil {
		_ = b.Close(ctx) // the first error says more
		return nil, err
	}
	return b, nil
}

// copyIn streams a folder into the workspace.
func (b *Box) copyIn(ctx context.Context, folder string) error {
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		err := t.AddFS(os.DirFS(folder))
		if err == nil {
			err = t.Close()
		}
		_ = w.CloseWithError(err) // it never fails
	}()
	err := b.platform.Files(b.id).Unpack(ctx, ".", r)
	_ = r.Close() // ends the goroutine where not all was read
	return err
}

// Run runs a command of the agent in the project.
func (b *Box) Run(ctx context.Context, command string) (*cove.Execution, error) {
	return b.platform.Processes(b.id).Exec(ctx, cove.ExecRequest{Line: command, Limits: cove.Limits{Wall: 10 * time.Minute}})
}

// maxReport bounds what is believed of a file that a sandbox made.
const maxReport = 1 << 20

// Report reads a result.
func (b *Box) Report(ctx context.Context, name string) (string, error) {
	f, err := b.platform.Files(b.id).Read(ctx, name, 0, maxReport)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(f)
	return string(text), err
}

// Close destroys the sandbox, also for an agent that was interrupted.
func (b *Box) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_, err := b.platform.Sessions().Close(ctx, b.id, false)
	return err
}
