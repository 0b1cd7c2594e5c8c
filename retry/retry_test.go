package retry_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a platform in which sessions are numbers and do what they are told.
// What it does not have is never asked for.
type world struct {
	cove.Platform

	mu     sync.Mutex
	opened []cove.OpenRequest
	runs   []run

	open func(ctx context.Context) error       // nil: it works
	exec func(run, cove.ExecRequest) error     // nil: it works
	code func(cove.ID, cove.CodeRequest) error // nil: it works

	links *worldLinks
}

type run struct {
	Session cove.ID
	Reason  string
	Input   string
}

func (w *world) Sessions() cove.Sessions             { return worldSessions{w: w} }
func (w *world) Processes(id cove.ID) cove.Processes { return worldProcesses{w: w, id: id} }
func (w *world) Links() cove.Links                   { return w.links }
func (w *world) Contexts(id cove.ID) cove.Contexts   { return worldContexts{w: w, id: id} }

type worldSessions struct {
	cove.Sessions

	w *world
}

func (s worldSessions) Open(ctx context.Context, req cove.OpenRequest) (*cove.Session, error) {
	if s.w.open != nil {
		if err := s.w.open(ctx); err != nil {
			return nil, err
		}
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.opened = append(s.w.opened, req)
	return &cove.Session{ID: cove.ID(strconv.Itoa(len(s.w.opened)))}, nil
}

type worldProcesses struct {
	cove.Processes

	w  *world
	id cove.ID
}

func (p worldProcesses) Exec(ctx context.Context, req cove.ExecRequest) (*cove.Execution, error) {
	r := run{Session: p.id, Reason: retry.Reason(ctx)}
	if req.Stdin != nil {
		data, err := io.ReadAll(req.Stdin)
		if err != nil {
			return nil, err
		}
		r.Input = string(data)
	}
	p.w.mu.Lock()
	p.w.runs = append(p.w.runs, r)
	p.w.mu.Unlock()
	if p.w.exec != nil {
		if err := p.w.exec(r, req); err != nil {
			return nil, err
		}
	}
	return &cove.Execution{Session: p.id}, nil
}

type worldContexts struct {
	cove.Contexts

	w  *world
	id cove.ID
}

func (c worldContexts) Run(_ context.Context, req cove.CodeRequest) (*cove.CodeResult, error) {
	if err := c.w.code(c.id, req); err != nil {
		return nil, err
	}
	return &cove.CodeResult{Execution: cove.Execution{Session: c.id}}, nil
}

var errExpired = cove.Errorf(cove.NotFound, "the session has expired").Reason(cove.ReasonSessionExpired)

var errLost = cove.Errorf(cove.NotFound, "the session was lost").Reason(cove.ReasonNodeLost)

// expiring refuses sessions by their ids.
func expiring(ids ...cove.ID) func(run, cove.ExecRequest) error {
	return func(r run, _ cove.ExecRequest) error {
		if slices.Contains(ids, r.Session) {
			return errExpired
		}
		return nil
	}
}

func open(t *testing.T, p cove.Platform, req cove.OpenRequest) cove.ID {
	t.Helper()
	s, err := p.Sessions().Open(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

// TestEveryPartFollows: a part that is about a session must lead to its newest
// one. A part that somebody adds fails here until package retry has it.
func TestEveryPartFollows(t *testing.T) {
	p := reflect.ValueOf(retry.On(&world{}))
	for m := range reflect.TypeFor[cove.Platform]().Methods() {
		if m.Type.NumIn() == 0 {
			continue
		}
		part := p.MethodByName(m.Name).Call([]reflect.Value{reflect.ValueOf(cove.ID("1"))})[0].Elem()
		if pkg := part.Type().PkgPath(); !strings.HasSuffix(pkg, "/retry") {
			t.Errorf("%s is that of %s: it does not follow a session that was opened anew", m.Name, pkg)
		}
	}
}

// worldLinks notes for which sessions links are made.
type worldLinks struct {
	cove.Links

	asked []cove.ID
}

func (l *worldLinks) note(id cove.ID) (*cove.Link, error) {
	l.asked = append(l.asked, id)
	return &cove.Link{}, nil
}

func (l *worldLinks) Download(_ context.Context, r cove.FileLink) (*cove.Link, error) {
	return l.note(r.Session)
}

func (l *worldLinks) Upload(_ context.Context, r cove.FileLink) (*cove.Link, error) {
	return l.note(r.Session)
}

func (l *worldLinks) Port(_ context.Context, r cove.PortLink) (*cove.Link, error) {
	return l.note(r.Session)
}

func TestLinksFollow(t *testing.T) {
	w := &world{exec: expiring("1"), links: &worldLinks{}}
	p := retry.On(w)
	id := open(t, p, cove.OpenRequest{})
	if _, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "x"}); err != nil {
		t.Fatal(err)
	}
	_, err1 := p.Links().Download(t.Context(), cove.FileLink{Session: id})
	_, err2 := p.Links().Upload(t.Context(), cove.FileLink{Session: id})
	_, err3 := p.Links().Port(t.Context(), cove.PortLink{Session: id})
	if err := errors.Join(err1, err2, err3); err != nil || !slices.Equal(w.links.asked, []cove.ID{"2", "2", "2"}) {
		t.Errorf("asked for links to %q, %v", w.links.asked, err)
	}
}

func TestWhatIsSentAgain(t *testing.T) {
	w := &world{exec: expiring("1")}
	p := retry.On(w)
	spec := cove.Spec{User: "u", Env: map[string]string{"A": "1"}, Ports: []int{80}}
	id := open(t, p, cove.OpenRequest{Spec: spec, OnFull: cove.WaitWhenFull, IdempotencyKey: "k", OnQueue: func(int) {}})
	spec.Env["A"], spec.Ports[0] = "2", 81 // the caller's own by now
	for i, in := range []io.Reader{strings.NewReader("text"), nil} {
		x, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "x", Stdin: in})
		if err != nil || x.Recreated != (i == 0) || x.Session != "2" {
			t.Fatalf("%d: %+v, %v", i, x, err)
		}
	}
	want := cove.OpenRequest{Spec: cove.Spec{User: "u", Env: map[string]string{"A": "1"}, Ports: []int{80}}, OnFull: cove.WaitWhenFull}
	if len(w.opened) != 2 || w.opened[1].OnQueue != nil {
		t.Fatalf("opened by %+v", w.opened)
	}
	if diff := cmp.Diff(want, w.opened[1]); diff != "" {
		t.Errorf("the request that opens again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]run{{Session: "1", Input: "text"}, {Session: "2", Reason: "session_expired", Input: "text"}, {Session: "2"}}, w.runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotRepeated(t *testing.T) {
	broken := cove.Errorf(cove.Unavailable, "the connection broke off").Reason(cove.ReasonSessionExpired)
	for name, c := range map[string]struct {
		err error
		req cove.ExecRequest
		say bool
	}{
		"a broken connection": {err: broken},
		"closed":              {err: cove.Errorf(cove.NotFound, "closed").Reason(cove.ReasonSessionClosed)},
		"lost while it ran":   {err: cove.Errorf(cove.Conflict, "lost").Reason(cove.ReasonNodeLost)},
		"a node that is away": {err: cove.Errorf(cove.Unavailable, "away").Reason(cove.ReasonNodeAway)},
		"no answer of a node": {err: cove.Errorf(cove.Unavailable, "no answer").Reason(cove.ReasonOutcomeUnknown)},
		"a lost lease":        {err: cove.Errorf(cove.Unavailable, "fenced").Reason(cove.ReasonFenced)},
		"no directory":        {err: cove.Errorf(cove.Unavailable, "settling").Reason(cove.ReasonNoDirectory)},
		"a broken answer":     {err: cove.Errorf(cove.Unavailable, "broken").Reason(cove.ReasonNodeLost)},
		"unknown":             {err: cove.Errorf(cove.NotFound, "unknown")},
		"not ours":            {err: io.ErrUnexpectedEOF},
		"a stream":            {err: errExpired, req: cove.ExecRequest{Stdin: io.LimitReader(strings.NewReader("x"), 1)}},
		"much input":          {err: errExpired, req: cove.ExecRequest{Stdin: strings.NewReader(strings.Repeat("x", 1<<20+1))}},
		"output":              {err: errExpired, req: cove.ExecRequest{OnOutput: func(cove.Chunk) {}}, say: true},
	} {
		w := &world{exec: func(_ run, req cove.ExecRequest) error {
			if c.say {
				req.OnOutput(cove.Chunk{Data: []byte("x")})
			}
			return c.err
		}}
		p := retry.On(w)
		id := open(t, p, cove.OpenRequest{})
		if _, err := p.Processes(id).Exec(t.Context(), c.req); !errors.Is(err, c.err) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if len(w.runs) != 1 || len(w.opened) != 1 {
			t.Errorf("%s: %d runs in %d sessions", name, len(w.runs), len(w.opened))
		}
	}
}

// TestLost: a session that was lost is opened again as one that expired is, and
// who cannot have another is told what became of the first.
func TestLost(t *testing.T) {
	w := &world{exec: func(r run, _ cove.ExecRequest) error {
		if r.Session == "1" {
			return errLost
		}
		return nil
	}}
	p := retry.On(w)
	id := open(t, p, cove.OpenRequest{Spec: cove.Spec{User: "u"}})
	w.open = func(context.Context) error { return cove.Errorf(cove.Exhausted, "full") }
	_, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{})
	if text := cove.MessageOf(err); cove.CodeOf(err) != cove.Exhausted || !strings.HasPrefix(text, "the session was lost") || strings.Contains(text, "expired") {
		t.Errorf("the error is %v", err)
	}
	w.open = nil
	if x, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{}); err != nil || !x.Recreated || x.Session != "2" {
		t.Errorf("%+v, %v", x, err)
	}
	if last := w.runs[len(w.runs)-1]; last.Reason != cove.ReasonNodeLost || w.opened[1].Spec.User != "u" {
		t.Errorf("the repeated call is %+v, in what %+v opened", last, w.opened[1])
	}
}

// TestOnlyTwice: a new session that has expired at once is told to the caller.
func TestOnlyTwice(t *testing.T) {
	w := &world{exec: func(run, cove.ExecRequest) error { return errExpired }}
	p := retry.On(w)
	id := open(t, p, cove.OpenRequest{})
	if _, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{}); !errors.Is(err, errExpired) || len(w.runs) != 2 || len(w.opened) != 2 {
		t.Errorf("%v after %d runs in %d sessions", err, len(w.runs), len(w.opened))
	}
}

// TestSaidLater: a new session whose first answer did not come is still a new
// one to the caller.
func TestSaidLater(t *testing.T) {
	lost := cove.Errorf(cove.Unavailable, "the connection broke off")
	w := &world{exec: func(r run, _ cove.ExecRequest) error {
		switch {
		case r.Session == "1":
			return errExpired
		case r.Reason != "":
			return lost
		}
		return nil
	}}
	p := retry.On(w)
	id := open(t, p, cove.OpenRequest{})
	if _, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{}); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	for i := range 2 {
		if x, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{}); err != nil || x.Recreated != (i == 0) {
			t.Errorf("answer %d: %+v, %v", i, x, err)
		}
	}
}

func TestCannotBeOpenedAgain(t *testing.T) {
	for _, cause := range []error{cove.Errorf(cove.Exhausted, "full").Reason(cove.ReasonCapacity).Remedy("wait"), io.ErrClosedPipe} {
		w := &world{exec: expiring("1")}
		p := retry.On(w)
		id := open(t, p, cove.OpenRequest{})
		w.open = func(context.Context) error { return cause }
		_, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{})
		if ours, ok := errors.AsType[*cove.Error](cause); ok {
			if cove.ReasonOf(err) != cove.ReasonCapacity || cove.RemedyOf(err) != "wait" || !strings.HasSuffix(cove.MessageOf(err), ours.Message) || cove.MessageOf(err) == ours.Message {
				t.Errorf("the error is %v", err)
			}
		} else if !errors.Is(err, cause) {
			t.Errorf("the error is %v", err)
		}
		w.open = nil
		if x, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{}); err != nil || !x.Recreated {
			t.Errorf("when there is room: %+v, %v", x, err)
		}
	}
}

// TestWaitForTheOther: who waits for another call to open a session goes when
// its own context ends.
func TestWaitForTheOther(t *testing.T) {
	w := &world{exec: expiring("1")}
	p := retry.On(w)
	id := open(t, p, cove.OpenRequest{})
	began, let := make(chan struct{}), make(chan struct{})
	w.open = func(context.Context) error {
		close(began)
		<-let
		return nil
	}
	done := make(chan error)
	go func() {
		_, err := p.Processes(id).Exec(t.Context(), cove.ExecRequest{})
		done <- err
	}()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Processes(id).Exec(ctx, cove.ExecRequest{}); cove.CodeOf(err) != cove.Canceled {
		t.Errorf("the error is %v", err)
	}
	close(let)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestForgets: what was not used for longest is forgotten, and says so.
func TestForgets(t *testing.T) {
	large := cove.Spec{Metadata: map[string]string{"note": strings.Repeat("x", 1<<20)}}
	w := &world{exec: func(r run, _ cove.ExecRequest) error {
		if r.Reason == "" {
			return errExpired
		}
		return nil
	}}
	p := retry.On(w)
	var all []cove.ID
	for range 40 {
		all = append(all, open(t, p, cove.OpenRequest{Spec: large}))
	}
	if _, err := p.Processes(all[0]).Exec(t.Context(), cove.ExecRequest{}); !errors.Is(err, errExpired) {
		t.Errorf("the oldest of 40 MiB is still known: %v", err)
	}
	if x, err := p.Processes(all[39]).Exec(t.Context(), cove.ExecRequest{}); err != nil || !x.Recreated {
		t.Errorf("the newest is not known: %+v, %v", x, err)
	}
}

func TestCode(t *testing.T) {
	runs := 0
	w := &world{code: func(id cove.ID, req cove.CodeRequest) error {
		runs++
		if req.OnOutput != nil && req.Code == "say" {
			req.OnOutput(cove.Chunk{})
		}
		if id == "1" {
			return errExpired
		}
		return nil
	}}
	p := retry.On(w)
	id := open(t, p, cove.OpenRequest{})
	for _, req := range []cove.CodeRequest{{Context: "named"}, {Code: "say", OnOutput: func(cove.Chunk) {}}} {
		if _, err := p.Contexts(id).Run(t.Context(), req); !errors.Is(err, errExpired) {
			t.Errorf("%+v: %v", req, err)
		}
	}
	if r, err := p.Contexts(id).Run(t.Context(), cove.CodeRequest{OnOutput: func(cove.Chunk) {}}); err != nil || !r.Recreated || r.Session != "2" || runs != 4 {
		t.Errorf("%+v, %v after %d runs", r, err, runs)
	}
}
