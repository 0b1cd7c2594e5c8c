package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove/internal/measure"
)

// peers are other people's sandboxes that are here, to run the same work.
type peers struct {
	quick  []measure.Contender
	slow   []measure.Contender
	absent []absence
	stop   []func()
}

// absence is a peer that is not here, and why.
type absence struct{ name, why string }

func (p *peers) close() {
	for _, stop := range slices.Backward(p.stop) {
		stop()
	}
}

// findPeers looks for the peers and starts what has to run. The caller closes
// them. Bubblewrap is not among them: it is a baseline.
func findPeers(ctx context.Context, judge, dir string) *peers {
	p := &peers{}
	p.addIsolate(ctx)
	if judge == "" {
		p.absent = append(p.absent, absence{"go-judge", "it could not be built"})
	} else if err := p.addJudge(ctx, judge, dir); err != nil {
		p.absent = append(p.absent, absence{"go-judge", err.Error()})
	}
	p.addDocker(ctx)
	return p
}

// addIsolate adds the sandbox of programming contests, in a box that is made
// before and not counted.
func (p *peers) addIsolate(ctx context.Context) {
	path, err := exec.LookPath("isolate")
	if err != nil {
		p.absent = append(p.absent, absence{"isolate", "it is not installed"})
		return
	}
	if out, err := exec.CommandContext(ctx, path, "--init").CombinedOutput(); err != nil { //nolint:gosec // found in the PATH
		p.absent = append(p.absent, absence{"isolate", fmt.Sprintf("isolate --init says: %.200s", strings.TrimSpace(string(out)))})
		return
	}
	p.stop = append(p.stop, func() {
		_ = exec.CommandContext(context.WithoutCancel(ctx), path, "--cleanup").Run() // what it says then is theirs
	})
	p.quick = append(p.quick, measure.Command("isolate --run, in a box that is there", nil, path, "--silent", "--processes=64", "--run", "--", "/usr/bin/true"))
}

// dockerTime is how long an engine may take to say that it is there.
const dockerTime = 2 * time.Second

// addDocker adds the engine where one answers and has an image.
func (p *peers) addDocker(ctx context.Context) {
	quick, cancel := context.WithTimeout(ctx, dockerTime)
	defer cancel()
	out, err := exec.CommandContext(quick, "docker", "info", "--format", "{{.ServerVersion}}").Output()
	if err != nil || strings.TrimSpace(string(out)) == "" {
		p.absent = append(p.absent, absence{"Docker", "no engine answers"})
		return
	}
	for _, image := range []string{"debian:stable-slim", "debian", "alpine", "busybox"} {
		if exec.CommandContext(quick, "docker", "image", "inspect", image).Run() == nil { //nolint:gosec // one of the names above
			p.slow = append(p.slow, measure.Command("docker run --rm --network none "+image+" true",
				[]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, "docker", "run", "--rm", "--network", "none", image, "true"))
			return
		}
	}
	p.absent = append(p.absent, absence{"Docker", "it has no small image; run docker pull debian:stable-slim"})
}

// renderPeers returns all contenders as a Markdown table, quickest first.
func renderPeers(f findings) string {
	all := slices.SortedFunc(slices.Values(slices.Concat(f.report.Timings, f.slow)), func(a, b measure.Timing) int { return cmp.Compare(a.Median, b.Median) })
	var b strings.Builder
	b.WriteString("| `true`, beside others | median | p95 | ÷ host | ÷ bubblewrap |\n|---|---|---|---|---|\n")
	for _, t := range all {
		over := ""
		if t.OverBwrap != 0 {
			over = fmt.Sprintf("%.2f", t.OverBwrap)
		}
		fmt.Fprintf(&b, "| %s | %.2f ms | %.2f ms | %.2f | %s |\n", t.Name, t.Median, t.P95, t.OverHost, over)
	}
	for _, a := range f.absent {
		fmt.Fprintf(&b, "| %s | not here: %s | | | |\n", a.name, a.why)
	}
	return b.String()
}
