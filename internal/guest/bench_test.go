//go:build linux

package guest_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/guest"
	"github.com/cove-sandbox/cove/internal/guest/agent"
)

// benchPlaces are the ways to run the agent that is shipped.
func benchPlaces() map[string]place {
	return map[string]place{
		"plain":  {lean: true},
		"locked": {locked: true},
		"framed": {lean: true, framed: true},
	}
}

func pathOfTrue(b *testing.B) string {
	b.Helper()
	path, err := exec.LookPath("true")
	if err != nil {
		b.Skip(err)
	}
	return path
}

// through runs a program through an agent.
func through(b *testing.B, c *guestAt, cmd cove.Command) error {
	p, err := c.Start(b.Context(), cmd)
	if err == nil {
		_, err = p.Wait(b.Context())
	}
	return err
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkTrue compares a program through an agent with one of the host, turn
// by turn, so that a busy machine is busy for both.
func BenchmarkTrue(b *testing.B) {
	path := pathOfTrue(b)
	for name, p := range benchPlaces() {
		b.Run(name, func(b *testing.B) { compare(b, connect(b, p), path, false) })
		b.Run(name+" captured", func(b *testing.B) { compare(b, connect(b, p), path, true) })
	}
}

func compare(b *testing.B, c *guestAt, path string, captured bool) {
	b.Helper()
	var inside, host []time.Duration
	for b.Loop() {
		inner, outer := cove.Command{Argv: []string{path}}, exec.CommandContext(b.Context(), path)
		if captured {
			inner.Stdout, inner.Stderr = new(bytes.Buffer), new(bytes.Buffer)
			outer.Stdout, outer.Stderr = new(bytes.Buffer), new(bytes.Buffer)
		}
		begun := time.Now()
		if err := through(b, c, inner); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		if err := outer.Run(); err != nil {
			b.Fatal(err)
		}
		inside, host = append(inside, between.Sub(begun)), append(host, time.Since(between))
	}
	b.ReportMetric(float64(median(inside))/float64(median(host)), "ratio")
	b.ReportMetric(float64((median(inside) - median(host)).Microseconds()), "added-µs/op")
}

// BenchmarkManyTrue measures programs that are started by many at once.
func BenchmarkManyTrue(b *testing.B) {
	path := pathOfTrue(b)
	const many = 32
	crowd := func(run func() error) time.Duration {
		begun := time.Now()
		var wg sync.WaitGroup
		for range many {
			wg.Go(func() {
				for range 4 {
					if err := run(); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return time.Since(begun)
	}
	for name, p := range benchPlaces() {
		b.Run(name, func(b *testing.B) {
			c := connect(b, p)
			var inside, host []time.Duration
			for b.Loop() {
				inside = append(inside, crowd(func() error { return through(b, c, cove.Command{Argv: []string{path}}) }))
				host = append(host, crowd(func() error { return exec.CommandContext(b.Context(), path).Run() }))
			}
			b.ReportMetric(float64(median(host))/float64(median(inside)), "throughput-ratio")
		})
	}
}

// BenchmarkHello measures how long an agent takes to be there, compared with a
// program of the host, and what it holds then.
func BenchmarkHello(b *testing.B) {
	path := pathOfTrue(b)
	image := leanAgent(b)
	var inside, host []time.Duration
	var private int64
	for b.Loop() {
		begun := time.Now()
		if err := exec.CommandContext(b.Context(), path).Run(); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			b.Fatal(err)
		}
		theirs := os.NewFile(uintptr(fds[1]), "agent")
		cmd := exec.CommandContext(b.Context(), image)
		cmd.Args, cmd.Env, cmd.ExtraFiles = []string{agent.Name}, agent.Env(), []*os.File{theirs}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		theirs.Close()
		tr, err := guest.Descriptors(fds[0])
		if err != nil {
			b.Fatal(err)
		}
		c, err := guest.Connect(b.Context(), tr, guest.Options{Dir: "/"})
		if err != nil {
			b.Fatal(err)
		}
		inside, host = append(inside, time.Since(between)), append(host, between.Sub(begun))
		private += held(b, cmd.Process.Pid)
		_ = c.Close()
		_ = cmd.Wait()
	}
	b.ReportMetric(float64(median(inside))/float64(median(host)), "ratio")
	b.ReportMetric(float64(private)/float64(len(inside))/1024, "anonymous-KiB")
}

// held is the memory that a process has for itself alone, without what comes from
// its file and is shared with others like it.
func held(b *testing.B, pid int) int64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Skip(err)
	}
	var sum int64
	for line := range strings.Lines(string(text)) {
		var kib int64
		if name, rest, _ := strings.Cut(line, ":"); name == "Anonymous" {
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				b.Fatal(err)
			}
			sum += kib << 10
		}
	}
	return sum
}
