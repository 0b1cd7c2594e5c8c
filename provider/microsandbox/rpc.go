//go:build linux

package microsandbox

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// rpc is the transport to a server.
type rpc struct {
	client    *rpcClient
	namespace string

	packing sync.Mutex
	packed  []byte // what was installed last, by gzip; guarded by packing
	size    int    // of it before; likewise

	told atomic.Pointer[cove.Isolation] // what the server said of its machines
}

func newRPC(cfg Config) *rpc {
	return &rpc{client: newRPCClient(cfg.ServerURL, cfg.APIKey), namespace: cfg.Namespace}
}

func (r *rpc) kind() string { return transportRPC }

// networks: the server has no word for the network of a machine.
func (r *rpc) networks() ([]cove.NetworkMode, cove.Enforcement) {
	return []cove.NetworkMode{cove.NetworkOpen}, cove.Absent
}

// fence is what the server said when it was last asked about all machines. The
// original says nothing.
func (r *rpc) fence() *cove.Isolation { return r.told.Load() }

// believed is what a server says of its machines, as far as it can be: a boundary that
// we do not know is none, and none is stronger than that of the original.
func believed(i *cove.Isolation) *cove.Isolation {
	if i == nil {
		return nil
	}
	all := *i
	switch {
	case !all.Boundary.AtLeast(cove.BoundaryNone):
		all.Boundary = cove.BoundaryNone
	case all.Boundary.AtLeast(cove.BoundaryMicroVM):
		all.Boundary = cove.BoundaryMicroVM
	}
	all.Memory, all.CPU = all.Of(cove.LimitMemory), all.Of(cove.LimitCPU)
	return &all
}

// probe asks whether there is a server, and whether it lets us in.
func (r *rpc) probe(ctx context.Context) error {
	if err := r.client.health(ctx); err != nil {
		return err
	}
	_, err := r.metrics(ctx, "")
	return err
}

func (r *rpc) params(name string, more ...any) map[string]any {
	p := map[string]any{"namespace": r.namespace, "sandbox": name}
	for i := 0; i+1 < len(more); i += 2 {
		if key, ok := more[i].(string); ok {
			p[key] = more[i+1]
		}
	}
	return p
}

// measured is what the server says of a machine.
type measured struct {
	Name    string   `json:"name"`
	Running bool     `json:"running"`
	Memory  *float64 `json:"memory_usage"` // in MiB
}

// metrics asks about one machine, or all. It changes nothing, so it is asked again
// where no answer came.
func (r *rpc) metrics(ctx context.Context, name string) ([]measured, error) {
	p := r.params(name)
	if name == "" {
		delete(p, "sandbox")
	}
	var last error
	for try := range metricsTries {
		if try > 0 {
			if err := pause(ctx, time.Duration(rand.Int64N(int64(100*time.Millisecond)<<try))); err != nil { //nolint:gosec // no secret
				return nil, blamed(err, last)
			}
		}
		bounded, cancel := context.WithTimeout(ctx, metricsTime/time.Duration(try+1))
		result, err := r.client.call(bounded, "sandbox.metrics.get", p)
		cancel()
		if err == nil {
			var all struct {
				Sandboxes *[]measured     `json:"sandboxes"`
				Isolation *cove.Isolation `json:"isolation"`
			}
			// No list is not an empty one: what is not in it counts as ended.
			if json.Unmarshal(result, &all) != nil || all.Sandboxes == nil {
				return nil, r.client.stranger(0, result)
			}
			if name == "" {
				r.told.Store(believed(all.Isolation))
			}
			return *all.Sandboxes, nil
		}
		if cove.CodeOf(err) == cove.NotFound {
			return nil, nil // nobody has made the namespace yet
		}
		if last = err; !errors.Is(err, errSilent) {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, blamed(err, last)
		}
	}
	return nil, last
}

const metricsTries = 3

// blamed says why nothing came in time: a caller that has left is the cause, and a
// server that was silent until the time was over.
func blamed(err, last error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return last
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start asks once. Where the server does not say that the machine is up, or says
// nothing, the machine itself is asked.
func (r *rpc) start(ctx context.Context, m machine) error {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok { // some time must be left for asking the machine
		bounded, cancel = context.WithTimeout(ctx, time.Duration(float64(time.Until(deadline))*startShare))
	}
	defer cancel()
	result, err := r.client.call(bounded, "sandbox.start", r.params(m.name, "config", map[string]any{
		"image": m.image, "memory": int64(m.memory / cove.MiB), "cpus": m.cpus, "workdir": "/", "shell": "/bin/sh",
	}))
	switch {
	case err != nil && errors.Is(err, errSilent) && ctx.Err() == nil:
		if up, merr := r.runs(ctx, m.name); merr != nil || !up {
			return errors.Join(err, merr)
		}
	case err != nil && ctx.Err() != nil:
		return r.tooLate(ctx, err)
	case err != nil:
		return err
	default:
		var text string
		if json.Unmarshal(result, &text) != nil {
			return r.client.stranger(0, result)
		}
	}
	return r.up(ctx, m.name)
}

// up waits until programs can be run. Asking changes nothing, so it is done again.
func (r *rpc) up(ctx context.Context, name string) error {
	var last error
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		bounded, cancel := context.WithTimeout(ctx, upTime)
		f, err := r.run(bounded, name, "true")
		cancel()
		switch {
		case err == nil && f.code == 0:
			return nil
		case err == nil:
			return cove.Errorf(cove.Unavailable, "the image cannot run the program true: it ended with %d", f.code).Remedy("check MSB_IMAGE")
		case final(err):
			return err
		}
		last = err
		if err := pause(ctx, wait); err != nil {
			return r.tooLate(ctx, last)
		}
	}
}

const upTime = 10 * time.Second

// tooLate is the error of a machine that did not come up.
func (r *rpc) tooLate(ctx context.Context, cause error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return cove.Wrap(cove.Timeout, cause, "the machine was started and did not come up in time").
		Reason(cove.ReasonSandboxCreation).Remedy("give it more with MSB_SANDBOX_START_TIMEOUT; the first start of an image downloads it")
}

// stop ends a machine. The server answers the same whether it was there or not, so
// what it lists decides.
func (r *rpc) stop(ctx context.Context, name string) error {
	bounded, cancel := context.WithTimeout(ctx, stopTime)
	_, err := r.client.call(bounded, "sandbox.stop", r.params(name))
	cancel()
	if cove.CodeOf(err) == cove.NotFound {
		return nil
	}
	up, merr := r.runs(ctx, name)
	switch {
	case merr != nil:
		return errors.Join(err, merr)
	case up && err == nil:
		return cove.Errorf(cove.Unavailable, "the microsandbox server says that it stopped the machine %.80s, which runs on", name).Remedy("look at the server's log")
	case up:
		return err
	}
	return nil
}

func (r *rpc) runs(ctx context.Context, name string) (bool, error) {
	all, err := r.metrics(ctx, name)
	for _, m := range all {
		if m.Name == name && m.Running {
			return true, nil
		}
	}
	return false, err
}

func (r *rpc) machines(ctx context.Context) (map[string]bool, error) {
	all, err := r.metrics(ctx, "")
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, m := range all {
		// What has stopped is only an entry of a file, which the server keeps.
		if m.Running {
			found[m.Name] = true
		}
	}
	return found, nil
}

func (r *rpc) memory(ctx context.Context, name string) cove.Bytes {
	all, _ := r.metrics(ctx, name)
	for _, m := range all {
		if m.Name == name && m.Memory != nil && *m.Memory > 0 && *m.Memory < 1<<30 {
			return cove.Bytes(*m.Memory * float64(cove.MiB))
		}
	}
	return 0
}

// run asks once. Where the server says that something failed, it says no more, so
// its list decides whether the machine is there.
func (r *rpc) run(ctx context.Context, name string, argv ...string) (finished, error) {
	bound := runTime
	if deadline, ok := ctx.Deadline(); ok {
		bound = max(time.Until(deadline), time.Second)
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, bound)
		defer cancel()
	}
	args := argv[1:]
	if args == nil {
		args = []string{}
	}
	result, err := r.client.call(ctx, "sandbox.command.run", r.params(name, "command", argv[0], "args", args, "timeout", int64(bound.Seconds())+1))
	if err != nil {
		if errors.Is(err, errBroken) && ctx.Err() == nil {
			if up, merr := r.runs(ctx, name); merr == nil && !up {
				return finished{}, gone(name)
			}
		}
		return finished{}, err
	}
	var ran struct {
		ExitCode *int `json:"exit_code"`
		Output   []struct {
			Stream string `json:"stream"`
			Text   string `json:"text"`
		} `json:"output"`
	}
	if json.Unmarshal(result, &ran) != nil || ran.ExitCode == nil {
		return finished{}, r.client.stranger(0, result)
	}
	f := finished{code: *ran.ExitCode}
	var stdout, stderr strings.Builder
	for _, line := range ran.Output {
		to := &stdout
		if line.Stream == "stderr" {
			to = &stderr
		}
		to.WriteString(line.Text + "\n")
	}
	f.stdout, f.stderr = stdout.String(), stderr.String()
	return f, nil
}

// Uploading: a request of the server's may have 2 MB.
const (
	uploadPiece = 72 << 10 // of one argument, before it is encoded
	uploadCall  = 12 * uploadPiece
)

const (
	// partScript writes one part under its own name, so that it can be sent again.
	partScript = `p=$1; shift; umask 077; mkdir -p "${p%/*}" && printf %s "$@" | base64 -d > "$p" && wc -c < "$p"`
	// wholeScript puts the parts together: $1 is the file, $2 how many there are. Run
	// again when they are gone, it says what it made of them.
	wholeScript = `umask 077; i=0
if ! [ -e "$1.part0" ]; then wc -c < "$1"; exit; fi
while [ $i -lt "$2" ]; do cat "$1.part$i" || exit 1; i=$((i+1)); done | gzip -dc > "$1.new" || exit 1
chmod 0555 "$1.new" && cp -p "$1.new" "$1.all" && mv -f "$1.all" "$1" && chmod 0755 "${1%/*}" && wc -c < "$1" && rm -f "$1".part* "$1.new"`
)

func (r *rpc) install(ctx context.Context, name, path string, content []byte) error {
	small, err := r.squeezed(content)
	if err != nil {
		return err
	}
	parts := 0
	for at := 0; at < len(small); at += uploadCall {
		part := small[at:min(at+uploadCall, len(small))]
		args := []string{"sh", "-c", partScript, "sh", fmt.Sprintf("%s.part%d", path, parts)}
		for len(part) > 0 {
			n := min(len(part), uploadPiece)
			args = append(args, base64.StdEncoding.EncodeToString(part[:n]))
			part = part[n:]
		}
		if err := r.sized(ctx, name, min(uploadCall, len(small)-at), args...); err != nil {
			return err
		}
		parts++
	}
	return r.sized(ctx, name, len(content), "sh", "-c", wholeScript, "sh", path, fmt.Sprint(parts))
}

// squeezed is content by gzip. There is one agent, so it is done once.
func (r *rpc) squeezed(content []byte) ([]byte, error) {
	r.packing.Lock()
	defer r.packing.Unlock()
	if r.packed != nil && r.size == len(content) {
		return r.packed, nil
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the agent cannot be packed")
	}
	r.packed, r.size = b.Bytes(), len(content)
	return r.packed, nil
}

// sized runs a script that prints how many bytes it wrote, until it says so.
func (r *rpc) sized(ctx context.Context, name string, want int, argv ...string) error {
	_, err := again(ctx, func() (finished, error) {
		bounded, cancel := context.WithTimeout(ctx, runTime)
		defer cancel()
		f, err := r.run(bounded, name, argv...)
		if got := strings.TrimSpace(f.stdout); err == nil && (f.code != 0 || got != fmt.Sprint(want)) {
			err = cove.Wrap(cove.Unavailable, fmt.Errorf("code %d, %.20q of %d bytes: %.200q", f.code, got, want, f.stderr), "the agent cannot be put into the machine").
				Reason(cove.ReasonSandboxCreation).Remedy("check that MSB_IMAGE has sh, base64, gzip and room for a few megabytes")
		}
		return f, err
	})
	return err
}

// again does something that is safe to repeat, a few times.
func again(ctx context.Context, do func() (finished, error)) (f finished, err error) {
	const tries = 4
	for try := range tries {
		if try > 0 {
			if perr := pause(ctx, mailPause<<try); perr != nil {
				return f, perr
			}
		}
		if f, err = do(); err == nil || final(err) || ctx.Err() != nil {
			return f, err
		}
	}
	return f, err
}

// final reports whether asking again cannot help.
func final(err error) bool {
	code := cove.CodeOf(err)
	return code == cove.NotFound || code == cove.Denied || code == cove.Canceled || cove.ReasonOf(err) == cove.ReasonConfiguration
}

func (r *rpc) connect(ctx context.Context, name, dir string) (io.ReadWriteCloser, error) {
	return openMail(ctx, func(ctx context.Context, wait time.Duration, words ...string) (string, error) {
		bounded, cancel := context.WithTimeout(ctx, wait+askTime)
		defer cancel()
		f, err := r.run(bounded, name, append([]string{agentIn(dir), mailboxName, mailIn(dir)}, words...)...)
		if err != nil {
			return "", err
		}
		return f.stdout, nil
	})
}
