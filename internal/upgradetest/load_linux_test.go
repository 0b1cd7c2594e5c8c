package upgradetest_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// load is clients that hold sessions, write files and read them back, each through
// any node, while nodes are restarted.
type load struct {
	c    *cluster
	spec cove.Spec

	mu       sync.Mutex
	perishes string          // the node whose sandboxes do not outlive its restart
	down     map[string]bool // nodes that are being restarted
	downs    int             // how often that began
	sessions []*held
	done     map[string]int // what was answered
	refused  map[string]int // what was not, by its reason
	wrong    []string
}

// held is a session of one of the clients.
type held struct {
	id    cove.ID
	home  string
	files map[string]string // what a client was told is written
	lost  atomic.Bool       // it was seen to be, and is to be
}

// Bounds of one client.
const (
	mostSessions = 4
	mostFiles    = 60 // in a session
	mostWrong    = 20 // that are told
)

// startLoad starts clients that go on until the function that it returns is called.
func startLoad(c *cluster, clients int, spec cove.Spec) (*load, func()) {
	l := &load{c: c, spec: spec, down: map[string]bool{}, done: map[string]int{}, refused: map[string]int{}}
	ctx, cancel := context.WithCancel(c.t.Context())
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { l.work(ctx, i) })
	}
	stop := sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	c.t.Cleanup(stop)
	return l, stop
}

// work is one client. What it asked is waited for.
func (l *load) work(ctx context.Context, client int) {
	asking := context.WithoutCancel(ctx)
	var own []*held
	for n := 0; ctx.Err() == nil; n++ {
		at := l.c.nodes[rand.IntN(len(l.c.nodes))]
		if len(own) < 2 || len(own) < mostSessions && n%40 == 39 {
			if h := l.open(asking, at); h != nil {
				own = append(own, h)
			}
		} else {
			l.use(asking, at, own[rand.IntN(len(own))], fmt.Sprintf("c%d-%d", client, n))
			own = slices.DeleteFunc(own, func(h *held) bool { return h.lost.Load() })
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (l *load) open(ctx context.Context, at *node) *held {
	before := l.began("")
	s, err := at.client.Sessions().Open(ctx, cove.OpenRequest{Spec: l.spec})
	if l.judge("open", at, &held{}, before, err); err != nil {
		return nil
	}
	h := &held{id: s.ID, home: s.Node, files: map[string]string{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions = append(l.sessions, h)
	return h
}

// use writes a new file, or reads one that is there.
func (l *load) use(ctx context.Context, at *node, h *held, name string) {
	before := l.began(h.home, at.name)
	known, want := h.any()
	switch kind := rand.IntN(3); {
	case known == "" || kind == 0 && len(h.files) < mostFiles:
		text := strings.Repeat(name+" ", 1+rand.IntN(1000))
		err := at.client.Files(h.id).Write(ctx, name, strings.NewReader(text), 0o644)
		if err == nil {
			h.files[name] = text
		}
		l.judge("write", at, h, before, err)
	case kind == 1:
		x, err := at.client.Processes(h.id).Exec(ctx, cove.ExecRequest{Argv: []string{"cat", known}})
		if err == nil && (x.ExitCode != 0 || string(x.Stdout.Data) != want) {
			l.tell("%s asked at %s: cat %s exits with %d, %d bytes of %d: %s", h.id, at.name, known, x.ExitCode, len(x.Stdout.Data), len(want), x.Stderr.Data)
		}
		l.judge("exec", at, h, before, err)
	default:
		got, err := read(ctx, at, h.id, known)
		if err == nil && got != want {
			l.tell("%s asked at %s: %s has %d bytes of %d", h.id, at.name, known, len(got), len(want))
		}
		l.judge("read", at, h, before, err)
	}
}

// any is one of the files that are there.
func (h *held) any() (name, text string) {
	for name, text := range h.files { // in no order
		return name, text
	}
	return "", ""
}

func read(ctx context.Context, at *node, id cove.ID, name string) (string, error) {
	r, err := at.client.Files(id).Read(ctx, name, 0, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }() // it was read
	text, err := io.ReadAll(r)
	return string(text), err
}

// moment is how the nodes were that a call is about when it began.
type moment struct {
	downs int
	down  bool // one of them was being restarted
}

// began is the moment for a call about some nodes; about all where the first is "".
func (l *load) began(nodes ...string) moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := moment{downs: l.downs}
	for _, name := range nodes {
		m.down = m.down || l.down[name] || name == "" && len(l.down) > 0
	}
	return m
}

// judge says what is wrong with an answer. Only what is about a node that is being
// restarted may be refused, and only for a while; only at that node itself a
// connection may break.
func (l *load) judge(what string, at *node, h *held, before moment, err error) {
	home := h.home
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.done[what]++
		return
	}
	reason := cove.ReasonOf(err)
	l.refused[string(cove.CodeOf(err))+" "+reason]++
	restarted := func(name string) bool { return l.down[name] || before.downs != l.downs }
	excused := before.down || restarted(at.name) || home != "" && restarted(home) || home == "" && (len(l.down) > 0 || before.downs != l.downs)
	switch {
	case home != "" && home == l.perishes && cove.CodeOf(err) == cove.NotFound && reason == cove.ReasonNodeLost:
		h.lost.Store(true)
	case !excused:
		l.tellLocked("%s asked at %s for a session of %q, and neither is being restarted: %v", what, at.name, home, err)
	case cove.CodeOf(err) != cove.Unavailable:
		l.tellLocked("%s asked at %s for a session of %q: %v", what, at.name, home, err)
	case reason == cove.ReasonConnection && !before.down && !restarted(at.name):
		l.tellLocked("%s breaks off at %s, which is not being restarted: %v", what, at.name, err)
	case reason == cove.ReasonOutcomeUnknown && (what == "read" || at.name == home):
		l.tellLocked("%s asked at %s for a session of %q: nothing of it was handed on that changes something: %v", what, at.name, home, err)
	case reason == cove.ReasonConnection || reason == cove.ReasonOutcomeUnknown || reason == cove.ReasonNodeAway || reason == cove.ReasonFenced || reason == cove.ReasonNoDirectory:
	case strings.Contains(err.Error(), "the server is shutting down"):
	default:
		l.tellLocked("%s asked at %s for a session of %q: %q is no reason to refuse: %v", what, at.name, home, reason, err)
	}
}

func (l *load) tell(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tellLocked(format, args...)
}

// tellLocked writes down what is wrong. The caller holds mu.
func (l *load) tellLocked(format string, args ...any) {
	if len(l.wrong) < mostWrong {
		l.wrong = append(l.wrong, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
	}
}

// perish says that the sandboxes of a node will not outlive its restart.
func (l *load) perish(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.perishes = name
}

// restarting says that a node is being restarted, or is back.
func (l *load) restarting(name string, now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now {
		l.down[name] = true
		l.downs++
	} else {
		delete(l.down, name)
	}
}

// all are the sessions that there are.
func (l *load) all() []*held {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*held(nil), l.sessions...)
}

// check fails the test for what was wrong, and where too little happened.
func (l *load) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%d sessions; done %v, refused %v", len(l.sessions), l.done, l.refused)
	for _, w := range l.wrong {
		t.Error(w)
	}
	for _, what := range []string{"open", "write", "exec", "read"} {
		if l.done[what] < 10 {
			t.Errorf("too little happened: %d of %s", l.done[what], what)
		}
	}
}

// checkFiles wants every file that a client was told of, through every node. The load
// must have ended.
func (l *load) checkFiles(t *testing.T) {
	t.Helper()
	var each sync.WaitGroup
	for _, at := range l.c.nodes {
		each.Go(func() {
			for _, h := range l.sessions {
				if h.lost.Load() {
					continue
				}
				for name, want := range h.files {
					if got, err := read(t.Context(), at, h.id, name); err != nil || got != want {
						t.Errorf("%s of %s, asked at %s: %s has %d bytes of %d: %v", h.id, h.home, at.name, name, len(got), len(want), err)
					}
				}
			}
		})
	}
	each.Wait()
}
