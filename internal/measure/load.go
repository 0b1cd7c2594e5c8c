package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// LoadConfig says how much load is put on a platform.
type LoadConfig struct {
	Creates  int           // sessions that are opened at once
	Sessions int           // that share Commands
	Commands int           // in all, spread evenly over Within
	Within   time.Duration // and done when it is over, but for a moment
	Files    int           // operations on files at once
	Churn    int           // sessions that are opened and closed, by a few callers
	Spec     cove.Spec     // of all sessions
}

// FullLoad is the load that a server of sessions must bear; QuickLoad is a little
// of everything.
func FullLoad() LoadConfig {
	return LoadConfig{Creates: 100, Sessions: 50, Commands: 1000, Within: time.Minute, Files: 100, Churn: 200}
}

// QuickLoad is to see that a platform works at all, in some seconds.
func QuickLoad() LoadConfig {
	return LoadConfig{Creates: 10, Sessions: 5, Commands: 50, Within: time.Second, Files: 10, Churn: 10}
}

// Scenario is how one kind of load went.
type Scenario struct {
	Name   string  `json:"name"`
	Done   int     `json:"done"`            // of what was asked for
	Failed int     `json:"failed"`          // the rest
	Error  string  `json:"error,omitempty"` // the first
	Median float64 `json:"median_ms"`       // of what was done
	P95    float64 `json:"p95_ms"`
	P99    float64 `json:"p99_ms"`
	Took   float64 `json:"took_s"` // all of it
}

// OK reports whether everything was done.
func (s Scenario) OK() bool { return s.Failed == 0 && s.Error == "" }

const (
	grace       = 10 * time.Second // in which the last commands may end
	churners    = 4                // callers that open and close sessions
	fileHolders = 10               // sessions that share operations on files
	fileSize    = 64 << 10
)

// Load puts each kind of load on a platform in turn and says how it went. began,
// unless nil, is called before each. All sessions that it opens it closes. Its error
// is that of ctx: what the platform does wrong is in the scenarios.
func Load(ctx context.Context, p cove.Platform, cfg LoadConfig, began func(name string)) ([]Scenario, error) {
	l := &load{LoadConfig: cfg, p: p}
	var all []Scenario
	for _, s := range []struct {
		name string
		run  func(context.Context, *tally)
	}{
		{fmt.Sprintf("%d sessions created at once", cfg.Creates), l.creates},
		{fmt.Sprintf("%d commands within %s over %d sessions", cfg.Commands, cfg.Within, cfg.Sessions), l.commands},
		{fmt.Sprintf("%d file operations at once", cfg.Files), l.files},
		{fmt.Sprintf("%d sessions created and destroyed by %d callers", cfg.Churn, churners), l.churn},
	} {
		if began != nil {
			began(s.name)
		}
		t := &tally{}
		start := time.Now()
		s.run(ctx, t)
		took := time.Since(start)
		if err := ctx.Err(); err != nil {
			return all, err
		}
		all = append(all, t.scenario(s.name, took))
	}
	return all, nil
}

// tally counts what many callers do.
type tally struct {
	mu     sync.Mutex
	took   Series // guarded by mu
	failed int    // guarded by mu
	first  error  // guarded by mu
}

// time does something and counts it.
func (t *tally) time(do func() error) {
	began := time.Now()
	err := do()
	took := time.Since(began)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.took = append(t.took, took)
		return
	}
	t.failed++
	if t.first == nil {
		t.first = err
	}
}

// blame notes an error of what was not asked for itself.
func (t *tally) blame(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil {
		t.first = err
	}
}

func (t *tally) scenario(name string, took time.Duration) Scenario {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Scenario{
		Name: name, Done: len(t.took), Failed: t.failed, Took: took.Seconds(),
		Median: millis(t.took.Median()), P95: millis(t.took.P95()), P99: millis(t.took.P99()),
	}
	if t.first != nil {
		s.Error = t.first.Error()
	}
	return s
}

// load is one run of Load.
type load struct {
	LoadConfig

	p cove.Platform
}

// Together does something n times at once.
func Together(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

func (l *load) creates(ctx context.Context, t *tally) {
	made := make([]cove.ID, l.Creates)
	Together(l.Creates, func(i int) { t.time(func() error { return l.open(ctx, &made[i]) }) })
	l.close(ctx, t, made)
}

func (l *load) open(ctx context.Context, id *cove.ID) error {
	s, err := l.p.Sessions().Open(ctx, cove.OpenRequest{Spec: l.Spec})
	if err == nil {
		*id = s.ID
	}
	return err
}

// close closes those sessions that were opened.
func (l *load) close(ctx context.Context, t *tally, ids []cove.ID) {
	ctx = context.WithoutCancel(ctx)
	Together(len(ids), func(i int) {
		if ids[i] == "" {
			return
		}
		if _, err := l.p.Sessions().Close(ctx, ids[i], false); err != nil {
			t.blame(fmt.Errorf("a session cannot be closed: %w", err))
		}
	})
}

// within does something with new sessions.
func (l *load) within(ctx context.Context, t *tally, n int, do func(ids []cove.ID)) {
	ids := make([]cove.ID, n)
	defer l.close(ctx, t, ids)
	for i := range ids {
		if err := l.open(ctx, &ids[i]); err != nil {
			t.time(func() error { return err })
			return
		}
	}
	do(ids)
}

var errLate = errors.New("the commands were not done in their time")

// commands starts one command after the other, each when its time has come and
// whether or not those before it have ended.
func (l *load) commands(ctx context.Context, t *tally) {
	l.within(ctx, t, l.Sessions, func(ids []cove.ID) {
		tick := time.NewTicker(max(1, l.Within/time.Duration(max(1, l.Commands))))
		defer tick.Stop()
		ctx, cancel := context.WithTimeoutCause(ctx, l.Within+grace, errLate)
		defer cancel()
		var all sync.WaitGroup
		defer all.Wait()
		for i := range l.Commands {
			all.Go(func() {
				t.time(func() error {
					err := l.echo(ctx, ids[i%len(ids)], i)
					if err != nil && errors.Is(context.Cause(ctx), errLate) {
						return errLate
					}
					return err
				})
			})
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
}

// echo runs a command whose answer is known.
func (l *load) echo(ctx context.Context, id cove.ID, i int) error {
	want := fmt.Sprintf("command %d", i)
	x, err := l.p.Processes(id).Exec(ctx, cove.ExecRequest{Argv: []string{"echo", want}})
	if err != nil {
		return err
	}
	if got := string(x.Stdout.Data); x.Outcome != cove.Exited || x.ExitCode != 0 || got != want+"\n" {
		return fmt.Errorf("echo %s with exit code %d and said %.80q", x.Outcome, x.ExitCode, got)
	}
	return nil
}

func (l *load) files(ctx context.Context, t *tally) {
	l.within(ctx, t, min(l.Files, fileHolders), func(ids []cove.ID) {
		Together(l.Files, func(i int) {
			t.time(func() error { return l.keepFile(ctx, ids[i%len(ids)], i) })
		})
	})
}

// keepFile writes a file, reads it and removes it.
func (l *load) keepFile(ctx context.Context, id cove.ID, i int) error {
	name := fmt.Sprintf("load/%d", i)
	want := bytes.Repeat([]byte(name), fileSize/len(name)) // no two have the same
	files := l.p.Files(id)
	if err := files.Write(ctx, name, bytes.NewReader(want), 0); err != nil {
		return err
	}
	r, err := files.Read(ctx, name, 0, 0)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(io.LimitReader(r, fileSize+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s has other bytes than were written", name)
	}
	return files.Remove(ctx, name)
}

func (l *load) churn(ctx context.Context, t *tally) {
	Together(churners, func(first int) {
		for i := first; i < l.Churn && ctx.Err() == nil; i += churners {
			t.time(func() error {
				var id cove.ID
				if err := l.open(ctx, &id); err != nil {
					return err
				}
				err := l.echo(ctx, id, i)
				_, gone := l.p.Sessions().Close(context.WithoutCancel(ctx), id, false)
				return errors.Join(err, gone)
			})
		}
	})
}
