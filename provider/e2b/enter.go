//go:build linux

package e2b

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
)

// image is the agent as it is put into machines.
type image struct {
	bytes []byte
	path  string // inside
}

// agentName begins the name under which it lies in a machine until it runs.
const agentName = "/tmp/.cove-agent-"

// maxImage bounds what is sent into every machine.
const maxImage = 256 << 20

// loadImage reads the agent from a file, or takes the one of this build where none
// is named.
func loadImage(path string) (image, error) {
	b, err := readImage(path)
	if err != nil {
		return image{}, err
	}
	sum := sha256.Sum256(b)
	return image{b, agentName + hex.EncodeToString(sum[:8])}, nil
}

func readImage(path string) ([]byte, error) {
	if path == "" {
		b, _, err := guest.Image()
		return b, err
	}
	const remedy = "name one that this process may read, or none"
	f, err := os.Open(path) //nolint:gosec // who makes the provider names it
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the agent cannot be read").Remedy(remedy)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxImage))
	if err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the agent cannot be read").Remedy(remedy)
	}
	return b, nil
}

// environment is what every program of a sandbox has.
func environment(spec map[string]string) map[string]string {
	env := map[string]string{
		"HOME": cove.WorkspacePath, "LANG": "C.UTF-8", "LOGNAME": "user", "USER": "user", "SHELL": "/bin/bash",
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	maps.Copy(env, spec)
	return env
}

// furnish makes the workspace of a new machine.
func (m *machine) furnish(ctx context.Context) error {
	const look = `[ -d "$1" ] && [ -w "$1" ] && exit 0; id -u; id -g; exit 3`
	code, out, err := m.run(ctx, "", look, cove.WorkspacePath)
	if err != nil || code == 0 {
		return err
	}
	if owner := strings.Fields(out); code == 3 && len(owner) == 2 {
		const make = `mkdir -p "$1" && chown "$2:$3" "$1"`
		if code, _, err = m.run(ctx, root, make, cove.WorkspacePath, owner[0], owner[1]); err != nil || code == 0 {
			return err
		}
	}
	return cove.Errorf(cove.Unsupported, "%s cannot be made in a machine of this template", cove.WorkspacePath).
		Remedy("set E2B_TEMPLATE to a template that has it, or a shell and a user root")
}

// agentTag marks the agent among the programs of a machine.
const agentTag = "cove-agent"

// board puts the agent into a machine, starts it and connects to it. When it runs it
// removes its own file, so that programs find nothing of it.
func (m *machine) board(ctx context.Context, i image, opts guest.Options) (*guest.Conn, error) {
	if err := m.upload(ctx, "", i.path, i.bytes); err != nil {
		return nil, err
	}
	// By this name the executable knows what it is to be.
	const script = `cd / && chmod 0700 "$1" && exec -a cove-agent "$1" stdio "$1"`
	program := shell(script, i.path)
	program.Cmd = "/bin/bash"
	s, pid, err := m.start(ctx, "", program, agentTag, true)
	if err != nil {
		return nil, err
	}
	conn, err := guest.Connect(ctx, guest.Framed(newLink(m, pid, s)), opts)
	if err != nil {
		return nil, cove.Wrap(cove.CodeOf(err), err, "the agent does not run in %s", whomMachine).
			Remedy("check that the template in E2B_TEMPLATE is Linux on this machine's architecture, with bash")
	}
	return conn, nil
}

// Bounds on ending an agent that an earlier process left.
const (
	endTime  = 10 * time.Second
	mostOver = 16
)

// clear ends agents that others left in a machine, with all they started.
func (m *machine) clear(ctx context.Context) error {
	var list struct {
		Processes []struct {
			PID int    `json:"pid"`
			Tag string `json:"tag"`
		} `json:"processes"`
	}
	if err := m.rpc(ctx, procList, struct{}{}, &list); err != nil {
		return err
	}
	n := 0
	for _, p := range list.Processes {
		if p.Tag != agentTag || n == mostOver {
			continue
		}
		n++
		if err := m.end(ctx, p.PID); err != nil {
			return err
		}
	}
	return nil
}

// end closes an agent's link, upon which it kills everything and ends.
func (m *machine) end(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	which := map[string]selector{"process": {pid}}
	s, err := m.open(ctx, procConnect, "", which)
	if err != nil {
		if cove.CodeOf(err) == cove.NotFound {
			return nil
		}
		return err
	}
	defer s.close()
	defer context.AfterFunc(ctx, s.close)()
	if err := m.rpc(ctx, procClose, which, nil); err != nil && cove.CodeOf(err) != cove.NotFound {
		return err
	}
	for {
		e, err := s.next()
		if errors.Is(err, io.EOF) || e.End != nil {
			return nil
		}
		if err != nil {
			// It did not end in time, or nobody can tell: then at once.
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
			defer cancel()
			err = m.rpc(after, procSignal, struct {
				Process selector `json:"process"`
				Signal  string   `json:"signal"`
			}{selector{pid}, "SIGNAL_SIGKILL"}, nil)
			if cove.CodeOf(err) == cove.NotFound {
				return nil
			}
			return err
		}
	}
}
