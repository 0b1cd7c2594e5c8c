package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strings"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
	"github.com/cove-sandbox/cove/provider/docker"
)

// dockerOptions says how the provider docker is measured.
type dockerOptions struct {
	host   string // where the engine listens; "" where there is none
	image  string
	rounds int
}

func dockerPart(ctx context.Context, o options) (string, []row, error) {
	if o.docker.host == "" {
		return absent(o, partDocker, "no engine was named; scripts/bench.sh starts one as root")
	}
	rows, timings, err := dockerRows(ctx, o.docker, func(dir string) (cove.Provider, error) {
		p, err := docker.New(docker.Config{Dir: dir, Host: o.docker.host, Image: o.docker.image})
		if err != nil {
			return nil, told(err)
		}
		return p, nil
	}, openLocal)
	if err != nil {
		return "", nil, err
	}
	return render("what a container costs", rows) + "\n" + renderLadder("`true`, in containers and beside them", timings), rows, nil
}

// absent is a part that cannot be measured here: an error if it was asked for.
func absent(o options, part, why string) (string, []row, error) {
	if o.only == part {
		return "", nil, fmt.Errorf("-only %s: %s", part, why)
	}
	return "The part " + part + " was not measured: " + why + ".\n", nil, nil
}

func dockerRows(ctx context.Context, o dockerOptions, ours, local opener) (_ []row, _ []measure.Timing, err error) {
	api, err := newDockerAPI(o.host)
	if err != nil {
		return nil, nil, err
	}
	out, err := exec.CommandContext(ctx, "docker", dockerRun(o, "--detach", "sleep", "infinity")...).Output() //nolint:gosec // the engine's own command, with arguments of ours
	if err != nil {
		return nil, nil, fmt.Errorf("start a container to compare with: %w", err)
	}
	id := strings.TrimSpace(string(out))
	defer func() {
		err = errors.Join(err, exec.CommandContext(context.WithoutCancel(ctx), "docker", "--host", o.host, "rm", "--force", id).Run()) //nolint:gosec // likewise
	}()
	return rung{
		rounds:   o.rounds,
		exec:     measure.Contender{Name: "exec by the Docker API", Run: func(ctx context.Context) error { return api.exec(ctx, id, "true") }},
		execMust: 0.1,
		run:      measure.Command("`docker run --rm`, same image and walls", []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, append([]string{"docker"}, dockerRun(o, "--rm", "true")...)...),
		runMust:  0.1,
	}.measure(ctx, ours, local)
}

// dockerRun is the command that gives a program the walls that a sandbox has.
func dockerRun(o dockerOptions, how string, program ...string) []string {
	return append([]string{
		"--host", o.host, "run", how, "--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--user", "1000:1000", "--workdir", "/workspace", "--log-driver", "none",
		"--tmpfs", "/workspace:rw,exec,nosuid,nodev,size=256m,nr_inodes=100000,uid=1000,gid=1000", "--tmpfs", "/tmp:rw,exec,nosuid,nodev,size=256m,mode=1777",
		"--memory", "1g", "--memory-swap", "1g", "--pids-limit", "256", "--cpus", fmt.Sprint(runtime.NumCPU()), o.image,
	}, program...)
}

// dockerAPI is as much of the engine's interface as an exec takes.
type dockerAPI struct {
	client http.Client
	base   string
}

func newDockerAPI(host string) (*dockerAPI, error) {
	network, address, ok := strings.Cut(host, "://")
	switch {
	case ok && network == "unix":
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", address)
		}
		return &dockerAPI{client: http.Client{Transport: &http.Transport{DialContext: dial}}, base: "http://docker"}, nil
	case ok && (network == "tcp" || network == "http"):
		return &dockerAPI{base: "http://" + address}, nil
	default:
		return nil, fmt.Errorf("-docker %s: use unix://PATH or tcp://HOST:PORT", host)
	}
}

// exec runs a program as the engine's clients do: made, started, read to its end
// and asked for its exit code.
func (d *dockerAPI) exec(ctx context.Context, container string, argv ...string) error {
	var made struct {
		ID string `json:"Id"`
	}
	spec := map[string]any{"Cmd": argv, "AttachStdout": true, "AttachStderr": true}
	if err := d.call(ctx, http.MethodPost, "/containers/"+container+"/exec", spec, &made); err != nil {
		return err
	}
	if err := d.call(ctx, http.MethodPost, "/exec/"+made.ID+"/start", map[string]any{}, nil); err != nil {
		return err
	}
	var state struct {
		Running  bool
		ExitCode int
	}
	if err := d.call(ctx, http.MethodGet, "/exec/"+made.ID+"/json", nil, &state); err != nil {
		return err
	}
	if state.Running || state.ExitCode != 0 {
		return fmt.Errorf("%q in a container: running %t, exit code %d", argv, state.Running, state.ExitCode)
	}
	return nil
}

// call makes one request and reads its answer to the end.
func (d *dockerAPI) call(ctx context.Context, method, path string, in, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, d.base+path, strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read to its end
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %.200s", method, path, resp.Status, answer)
	}
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}
