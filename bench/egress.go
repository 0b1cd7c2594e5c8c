package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
)

// What the way out of a sandbox must reach.
const (
	mostAdded = 3   // milliseconds of a request
	goodRate  = 150 // megabytes in a second; less where the host's own loopback is slow
	rateShare = 4   // the host's own rate may be so many times higher then
)

// egressRows compares requests and a download from inside a sandbox with the same
// ones of the host. Both ask for the name of this machine: localhost would be the
// sandbox itself.
func egressRows(ctx context.Context, o livingOptions, p cove.Provider) (rows []row, err error) {
	site, err := newSite(ctx, o.download)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, site.close()) }()
	err = inSandbox(ctx, p, cove.Network{Mode: cove.NetworkAllow, Allow: []string{site.address}}, func(box cove.Sandbox) error {
		get, err := site.compare(ctx, 10*o.rounds, box, "/")
		if err != nil {
			return err
		}
		load, err := site.compare(ctx, max(1, o.rounds/3), box, "/download")
		if err != nil {
			return err
		}
		rows = []row{addedRow(get), rateRow(o.download, load)}
		return nil
	})
	return rows, err
}

// pair is what the same thing took inside and outside, in the same rounds.
type pair struct{ inside, host measure.Series }

func addedRow(got pair) row {
	return row{
		name: "a GET from inside a sandbox − the same on the host, with the name looked up", measured: taken(got.inside), baseline: taken(got.host),
		value: micros(minus(got.inside, got.host)) / 1000, unit: " ms", must: mostAdded,
	}
}

func rateRow(size cove.Bytes, got pair) row {
	rate := func(s measure.Series) float64 { return float64(size) / 1e6 / s.Median().Seconds() }
	inside, host := rate(got.inside), rate(got.host)
	return row{
		name:     fmt.Sprintf("a download of %d MB into a sandbox; the host's own rate ÷ %d is enough", size/1_000_000, rateShare),
		measured: fmt.Sprintf("%.0f MB/s", inside), baseline: fmt.Sprintf("%.0f MB/s on the host", host),
		value: inside, unit: " MB/s", must: math.Ceil(min(goodRate, host/rateShare)), least: true,
	}
}

// site is a server at the name of this machine.
type site struct {
	address string // name and port
	server  *http.Server
	done    chan error
}

// newSite serves an empty page at / and size bytes at /download.
func newSite(ctx context.Context, size cove.Bytes) (*site, error) {
	name, at, err := ownName(ctx)
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", netip.AddrPortFrom(at[0], 0).String())
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	pages := http.NewServeMux()
	pages.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	pages.HandleFunc("GET /download", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.FormatInt(int64(size), 10))
		part := make([]byte, 1<<20)
		for left := int64(size); left > 0; left -= int64(len(part)) {
			if _, err := w.Write(part[:min(left, int64(len(part)))]); err != nil {
				return // who asked has gone, and says so
			}
		}
	})
	s := &site{address: net.JoinHostPort(name, port), server: &http.Server{Addr: l.Addr().String(), Handler: pages, ReadHeaderTimeout: time.Minute}, done: make(chan error, 1)}
	go func() { s.done <- s.server.Serve(l) }()
	return s, nil
}

func (s *site) close() error {
	err := s.server.Close()
	if ended := <-s.done; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// ownName returns the name of this machine and the addresses it leads to.
func ownName(ctx context.Context) (string, []netip.Addr, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", nil, err
	}
	name = strings.ToLower(name)
	all, err := new(net.Resolver).LookupNetIP(ctx, "ip", name)
	if err != nil || len(all) == 0 {
		return "", nil, fmt.Errorf("the name of this machine, %s, leads nowhere; give it a line in /etc/hosts, such as 127.0.1.1 %[1]s", name)
	}
	for i, a := range all {
		all[i] = a.Unmap().WithZone("")
	}
	return name, all, nil
}

// compare asks for a page from inside and from the host in the same rounds. What
// counts is what curl itself says about the request: starting it is another row.
func (s *site) compare(ctx context.Context, rounds int, box cove.Sandbox, page string) (pair, error) {
	argv := []string{"curl", "-q", "-sS", "-f", "--noproxy", "*", "-o", "/dev/null", "-w", "%{time_total}", "http://" + s.address + page}
	var got pair
	add := func(to *measure.Series, said string, err error) error {
		if err != nil {
			return err
		}
		seconds, err := strconv.ParseFloat(strings.TrimSpace(said), 64)
		if err != nil {
			return fmt.Errorf("curl says %.80q instead of a time", said)
		}
		*to = append(*to, time.Duration(seconds*float64(time.Second)))
		return nil
	}
	_, err := measure.Race(ctx, rounds,
		measure.Contender{Name: "curl in a sandbox", Run: func(ctx context.Context) error {
			said, err := runIn(ctx, box, argv)
			return add(&got.inside, said, err)
		}},
		measure.Contender{Name: "curl on the host", Run: func(ctx context.Context) error {
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the arguments above
			cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
			said, err := cmd.Output()
			if failed, ok := errors.AsType[*exec.ExitError](err); ok {
				err = fmt.Errorf("%w: %.200s", err, failed.Stderr)
			}
			return add(&got.host, string(said), err)
		}})
	if err != nil {
		return got, err
	}
	// The first rounds warmed up.
	got.inside, got.host = got.inside[len(got.inside)-rounds:], got.host[len(got.host)-rounds:]
	return got, nil
}
