package measure_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/measure"
)

// toy is a platform that opens sessions, echoes and keeps files, and that can be
// broken.
type toy struct {
	cove.Platform

	openFails, closeFails, execFails, readFails, removeFails error

	says  string        // the answer to every command, if not ""
	lies  bool          // files come back as others
	sleep time.Duration // of each command

	mu     sync.Mutex
	open   map[cove.ID]bool
	files  map[string][]byte
	opened int
	most   int // sessions at once
}

func newToy() *toy { return &toy{open: map[cove.ID]bool{}, files: map[string][]byte{}} }

func (p *toy) Sessions() cove.Sessions          { return toySessions{p: p} }
func (p *toy) Processes(cove.ID) cove.Processes { return toyProcesses{p: p} }
func (p *toy) Files(id cove.ID) cove.Files      { return toyFiles{p: p, id: id} }

type toySessions struct {
	cove.Sessions

	p *toy
}

func (s toySessions) Open(context.Context, cove.OpenRequest) (*cove.Session, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.p.openFails != nil {
		return nil, s.p.openFails
	}
	id := cove.NewID()
	s.p.open[id] = true
	s.p.opened++
	s.p.most = max(s.p.most, len(s.p.open))
	return &cove.Session{ID: id}, nil
}

func (s toySessions) Close(_ context.Context, id cove.ID, _ bool) (cove.ID, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	delete(s.p.open, id)
	return "", s.p.closeFails
}

type toyProcesses struct {
	cove.Processes

	p *toy
}

func (s toyProcesses) Exec(ctx context.Context, req cove.ExecRequest) (*cove.Execution, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(s.p.sleep):
	}
	said := req.Argv[1] + "\n"
	if s.p.says != "" {
		said = s.p.says
	}
	return &cove.Execution{Result: cove.Result{Outcome: cove.Exited}, Stdout: cove.Output{Data: []byte(said)}}, s.p.execFails
}

type toyFiles struct {
	cove.Files

	p  *toy
	id cove.ID
}

func (f toyFiles) Write(_ context.Context, name string, r io.Reader, _ fs.FileMode) error {
	data, err := io.ReadAll(r)
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	f.p.files[string(f.id)+name] = data
	return err
}

func (f toyFiles) Read(_ context.Context, name string, _, _ int64) (io.ReadCloser, error) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	data := f.p.files[string(f.id)+name]
	if f.p.lies {
		data = data[1:]
	}
	return io.NopCloser(bytes.NewReader(data)), f.p.readFails
}

func (f toyFiles) Remove(_ context.Context, name string) error {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	delete(f.p.files, string(f.id)+name)
	return f.p.removeFails
}

func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newToy()
		p.sleep = time.Second
		var began []string
		found, err := measure.Load(t.Context(), p, measure.FullLoad(), func(name string) { began = append(began, name) })
		if err != nil {
			t.Fatal(err)
		}
		second := 1000.0
		want := []measure.Scenario{
			{Name: "100 sessions created at once", Done: 100},
			{Name: "1000 commands within 1m0s over 50 sessions", Done: 1000, Median: second, P95: second, P99: second, Took: 61},
			{Name: "100 file operations at once", Done: 100},
			{Name: "200 sessions created and destroyed by 4 callers", Done: 200, Median: second, P95: second, P99: second, Took: 50},
		}
		found[1].Took = float64(int(found[1].Took + 0.5))
		if diff := cmp.Diff(want, found); diff != "" {
			t.Error(diff)
		}
		if len(began) != 4 || p.most != 100 || p.opened != 100+50+10+200 {
			t.Errorf("%q, %d at once, %d in all", began, p.most, p.opened)
		}
		if len(p.open)+len(p.files) != 0 {
			t.Errorf("left: %v, %v", p.open, p.files)
		}
	})
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		change func(*toy)
		failed string // which scenarios, as p and F
		says   string
	}{
		"open":    {func(p *toy) { p.openFails = broken }, "FFFF", "broken"},
		"close":   {func(p *toy) { p.closeFails = broken }, "FFFF", "cannot be closed"},
		"exec":    {func(p *toy) { p.execFails = broken }, "pFpF", "broken"},
		"echo":    {func(p *toy) { p.says = "else" }, "pFpF", `said "else"`},
		"slow":    {func(p *toy) { p.sleep = time.Hour }, "pFpp", "not done in their time"},
		"read":    {func(p *toy) { p.readFails = broken }, "ppFp", "broken"},
		"content": {func(p *toy) { p.lies = true }, "ppFp", "other bytes"},
		"remove":  {func(p *toy) { p.removeFails = broken }, "ppFp", "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newToy()
				tt.change(p)
				found, err := measure.Load(t.Context(), p, measure.QuickLoad(), nil)
				if err != nil {
					t.Fatal(err)
				}
				got, said := "", ""
				for _, s := range found {
					if s.OK() {
						got += "p"
					} else {
						got += "F"
						said += s.Error + "\n"
					}
				}
				if got != tt.failed || !strings.Contains(said, tt.says) {
					t.Errorf("%s, want %s with %q: %s", got, tt.failed, tt.says, said)
				}
				if len(p.open) != 0 {
					t.Errorf("left: %v", p.open)
				}
			})
		})
	}
}

func TestLoadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := newToy()
	found, err := measure.Load(ctx, p, measure.QuickLoad(), func(name string) {
		if strings.Contains(name, "commands") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(found) != 1 || len(p.open) != 0 {
		t.Errorf("%v, %v, left %v", found, err, p.open)
	}
}
