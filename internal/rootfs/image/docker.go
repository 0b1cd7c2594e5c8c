package image

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"

	"github.com/cove-sandbox/cove"
)

// dockerName is the program that is asked.
const dockerName = "docker"

// Docker is the engine that builds.
type Docker struct {
	// Env are variables beside this process's own, such as DOCKER_HOST.
	Env []string
	// Log gets what it tells.
	Log io.Writer

	program string
}

// BuildFile lets Docker build a Dockerfile with the files of dir, and writes the
// image to the archive out. Where no Docker answers it is Unsupported.
func (d Docker) BuildFile(ctx context.Context, file, dir, out string) (err error) {
	d.program, err = exec.LookPath(dockerName)
	if err == nil {
		err = d.run(ctx, io.Discard, "info")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return cove.Wrap(cove.Unsupported, err, "a Dockerfile needs Docker, and none answers here").
			Remedy("start it, or build elsewhere with docker build and docker save and use --image, or use --package")
	}
	tag := "cove-build:" + string(cove.NewID()) // images of the repository cove-template are shared templates of the provider docker
	if err := d.run(ctx, d.Log, "build", "--file", file, "--tag", tag, dir); err != nil {
		return cove.Wrap(cove.Invalid, err, "Docker could not build %s: %s", file, err)
	}
	defer func() {
		// The template has its own copy.
		if e := d.run(context.WithoutCancel(ctx), io.Discard, "rmi", tag); err == nil && e != nil {
			err = cove.Wrap(cove.Unavailable, e, "Docker could not remove the image %s: %s", tag, e)
		}
	}()
	if err := d.run(ctx, d.Log, "save", "--output", out, tag); err != nil {
		return cove.Wrap(cove.Unavailable, err, "Docker could not save the image: %s", err)
	}
	return nil
}

// mostSaid bounds what is kept of what a program says.
const mostSaid = 4 << 10

// run runs one command of Docker's.
func (d Docker) run(ctx context.Context, log io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, d.program, args...) //nolint:gosec // the operator's own docker, with arguments of ours
	cmd.Env = append(cmd.Environ(), d.Env...)
	var said tail
	out := io.MultiWriter(log, &said) // one for both, so that one goroutine writes
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if err != nil && said.Len() > 0 {
		return errors.New(said.line())
	}
	return err
}

// tail keeps the end of what was written.
type tail struct{ bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if over := t.Len() - mostSaid; over > 0 {
		t.Next(over)
	}
	return n, err
}

// line is the last line that says something.
func (t *tail) line() string {
	lines := strings.Split(strings.TrimSpace(t.String()), "\n")
	return lines[len(lines)-1]
}
