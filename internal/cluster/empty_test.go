package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/archive"
	"github.com/cove-sandbox/cove/provider/fake"
)

// shortly has a node wait not long for a directory that is new.
func shortly(n *node) { n.lease = 3 * time.Second }

// again ends a node, in order or not, and starts it when something was done meanwhile.
func (n *node) again(crash bool, meanwhile func()) {
	n.t.Helper()
	if crash {
		n.crash()
	}
	n.close()
	n.crashed = false
	meanwhile()
	if err := n.open(); err != nil {
		n.t.Fatal(err)
	}
}

// rests makes a session with a file that runs, and one that is stopped, at a node.
func rests(t *testing.T, n *node) (running, stopped *cove.Session) {
	t.Helper()
	p := n.member.Here(somebody())
	running, stopped = open(t, p, cove.Spec{User: n.name, Thread: "1"}), open(t, p, cove.Spec{User: n.name, Thread: "2"})
	say(t, p, running.ID, "echo here > file")
	say(t, p, stopped.ID, "echo kept > file")
	if _, err := p.Sessions().Stop(t.Context(), stopped.ID); err != nil {
		t.Fatal(err)
	}
	return running, stopped
}

// left is what a node has of a session: its sandbox, its archive.
func (n *node) left(id cove.ID) (what []string) {
	n.t.Helper()
	provider, err := fake.New(fake.Config{Dir: filepath.Join(n.dir, "fake"), Keeper: n.keeper})
	n.must(err)
	defer func() { n.must(provider.Close()) }()
	for sandbox, err := range provider.List(n.t.Context()) {
		n.must(err)
		if sandbox == id {
			what = append(what, "sandbox")
		}
	}
	archives, err := archive.Open(filepath.Join(n.dir, "archives"))
	n.must(err)
	for kept, err := range archives.List(n.t.Context()) {
		n.must(err)
		if kept == id {
			what = append(what, "archive")
		}
	}
	return what
}

// TestEmptyDirectoryAtStart starts a node against a Redis that has lost all: the node
// tells it of the sessions that it has.
func TestEmptyDirectoryAtStart(t *testing.T) {
	for name, crash := range map[string]bool{"in order": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, shortly)
			running, stopped := rests(t, a)
			if _, err := a.member.As(somebody()).Volumes().Create(t.Context(), cove.VolumeRequest{Name: "data"}); err != nil {
				t.Fatal(err)
			}
			a.again(crash, a.redis.Flush)
			sees(t, b, 2)
			for _, n := range []*node{a, b} {
				p := n.member.As(somebody())
				if got := say(t, p, running.ID, "cat file"); got != "here\n" {
					t.Errorf("the session that ran has %q", got)
				}
				if again := open(t, p, cove.Spec{User: "a", Thread: "1"}); again.ID != running.ID {
					t.Errorf("its user and thread have %s, not %s", again.ID, running.ID)
				}
				if _, err := p.Volumes().Get(t.Context(), "data"); err != nil {
					t.Errorf("its volume: %v", err)
				}
			}
			p := b.member.As(somebody())
			if s, err := p.Sessions().Get(t.Context(), stopped.ID); err != nil || s.State != cove.Stopped {
				t.Fatalf("the session that was stopped: %+v, %v", s, err)
			}
			if _, err := p.Sessions().Start(t.Context(), stopped.ID); err != nil {
				t.Fatal(err)
			}
			if got := say(t, p, stopped.ID, "cat file"); got != "kept\n" {
				t.Errorf("it has %q", got)
			}
		})
	}
}

// TestBoundAfterAnEmptyDirectory has Redis lose all while a node is away: no tenant gets a
// sandbox before that one has said what it has, and the bound of the tenant holds.
func TestBoundAfterAnEmptyDirectory(t *testing.T) {
	const most = 3
	for name, all := range map[string]bool{"one node starts": false, "all nodes start": true} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, shortly)
			a.must(a.member.As(somebody()).Admin().SetTenant(t.Context(), cove.Tenant{Name: somebody().Tenant, Quota: cove.Bounds{Sessions: most}}))
			for range most {
				open(t, a.member.Here(somebody()), cove.Spec{})
			}
			if _, err := b.member.Here(somebody()).Sessions().Open(t.Context(), cove.OpenRequest{}); cove.ReasonOf(err) != cove.ReasonTenantQuota {
				t.Fatalf("one more before: %v", err)
			}
			try := func() {
				_, err := b.member.Here(somebody()).Sessions().Open(t.Context(), cove.OpenRequest{})
				if reason := cove.ReasonOf(err); reason != cove.ReasonTenantQuota && reason != cove.ReasonNoDirectory && reason != cove.ReasonFenced {
					t.Errorf("one more: %v", err)
				}
			}
			if all {
				b.close()
				a.again(true, a.redis.Flush)
				if err := b.open(); err != nil {
					t.Fatal(err)
				}
			} else {
				stop, done := make(chan struct{}), make(chan struct{})
				a.again(true, func() {
					a.redis.Flush()
					go func() {
						defer close(done)
						for {
							select {
							case <-stop:
								return
							case <-time.After(50 * time.Millisecond):
								try()
							}
						}
					}()
				})
				close(stop)
				<-done
			}
			b.must(b.member.BeatNow(t.Context()))
			for _, n := range []*node{a, b} {
				if _, err := n.member.Here(somebody()).Sessions().Open(t.Context(), cove.OpenRequest{}); cove.ReasonOf(err) != cove.ReasonTenantQuota {
					t.Errorf("one more at %s: %v", n.name, err)
				}
			}
		})
	}
}

// TestLostWhileAway has others be told that sessions are lost while their node is away:
// it ends them when it is back, also where the directory has forgotten it.
func TestLostWhileAway(t *testing.T) {
	a, b := pair(t, shortly)
	lost, _ := rests(t, a)
	_, forgotten := rests(t, b)
	a.again(true, func() {
		a.redis.Do("DEL", fmt.Sprintf("{%s}:lease:a", a.prefix))
		if _, err := b.member.As(somebody()).Sessions().Get(t.Context(), lost.ID); cove.ReasonOf(err) != cove.ReasonNodeLost {
			t.Fatalf("while the node is away: %v", err)
		}
	})
	if _, err := a.member.As(somebody()).Sessions().Get(t.Context(), lost.ID); cove.ReasonOf(err) != cove.ReasonNodeLost {
		t.Errorf("when it is back: %v", err)
	}
	if left := a.left(lost.ID); left != nil {
		t.Errorf("of a session that is lost there is %v", left)
	}
	b.again(true, func() {
		b.redis.Do("DEL", fmt.Sprintf("{%s}:lease:b", b.prefix))
		if _, err := a.member.As(somebody()).Sessions().Get(t.Context(), forgotten.ID); cove.ReasonOf(err) != cove.ReasonNodeLost {
			t.Fatalf("while the node is away: %v", err)
		}
		a.must(a.directory.DeleteSession(t.Context(), forgotten.ID))
		long := time.Now().Add(-engine.KeepEnded - time.Hour)
		b.must(os.Chtimes(filepath.Join(b.dir, "node-records", "origin"), long, long))
	})
	if left := b.left(forgotten.ID); left != nil {
		t.Errorf("of a session that ended long ago there is %v", left)
	}
}

// TestRecordLostWhileAway has the directory lose one record and nothing else, as a Redis
// does that crashes.
func TestRecordLostWhileAway(t *testing.T) {
	a, _ := pair(t, shortly)
	running, stopped := rests(t, a)
	a.again(true, func() {
		for _, s := range []*cove.Session{running, stopped} {
			a.redis.Do("DEL", fmt.Sprintf("{%s}:session:%s", a.prefix, s.ID))
		}
	})
	for id, want := range map[cove.ID]cove.State{running.ID: cove.Running, stopped.ID: cove.Stopped} {
		if s, err := a.member.As(somebody()).Sessions().Get(t.Context(), id); err != nil || s.State != want {
			t.Errorf("%+v, %v; want %s", s, err, want)
		}
	}
}

// TestRecordLostBetweenBeats has Redis lose all after a node took its lease again and
// before it told of its sessions. No caller is told that they are lost.
func TestRecordLostBetweenBeats(t *testing.T) {
	a, _ := pair(t, func(n *node) { n.lease = time.Minute })
	p := a.member.Here(somebody())
	lose := func() {
		a.redis.Flush()
		_, err := a.directory.Beat(t.Context(), cove.Node{Address: a.address, State: cove.NodeReady})
		a.must(err)
	}
	agree := func() {
		a.must(a.member.BeatNow(t.Context()))
		if _, err := a.engine.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	running, ended := open(t, p, cove.Spec{}), open(t, p, cove.Spec{})
	say(t, p, running.ID, "echo here > file")
	lose()
	for range 300 { // some of them promise numbers, which the record has
		if _, err := p.Processes(running.ID).Start(t.Context(), cove.ExecRequest{Line: "true"}); cove.CodeOf(err) == cove.NotFound {
			t.Fatalf("a session that the directory lost: %v", err)
		}
	}
	if _, err := p.Sessions().Stop(t.Context(), running.ID); cove.ReasonOf(err) != cove.ReasonNoDirectory || !waits(err) {
		t.Errorf("stop: %v", err)
	}
	if _, err := p.Sessions().Close(t.Context(), ended.ID, false); cove.ReasonOf(err) != cove.ReasonNoDirectory || !waits(err) {
		t.Errorf("close: %v", err)
	}
	agree()
	if s, err := p.Sessions().Stop(t.Context(), running.ID); err != nil || s.State != cove.Stopped {
		t.Errorf("then stop: %+v, %v", s, err)
	}
	if _, err := p.Sessions().Close(t.Context(), ended.ID, false); err != nil {
		t.Errorf("then close: %v", err)
	}
	if a.records.Keeps(ended.ID) || !a.records.Keeps(running.ID) {
		t.Error("what is told of at the next start is not the session that has not ended")
	}
}

// TestUserTakenMeanwhile has another session be opened for a user and thread after Redis
// lost all and before the node of the first one is back. Both go on.
func TestUserTakenMeanwhile(t *testing.T) {
	for name, crash := range map[string]bool{"the node was away": true, "the node was cut off": false} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, shortly)
			first, _ := rests(t, a)
			var second *cove.Session
			meanwhile := func() {
				a.redis.Flush()
				for deadline := time.Now().Add(time.Minute); second == nil && time.Now().Before(deadline); <-time.After(100 * time.Millisecond) {
					b.must(b.member.BeatNow(t.Context()))
					second, _ = b.member.Here(somebody()).Sessions().Open(t.Context(), cove.OpenRequest{Spec: cove.Spec{User: "a", Thread: "1"}})
				}
				if second == nil || second.ID == first.ID {
					t.Fatalf("the second session is %+v", second)
				}
			}
			if crash {
				a.again(true, meanwhile)
			} else {
				a.link.cut.Store(true)
				a.member.RunOut()
				meanwhile()
				a.link.cut.Store(false)
				for deadline := time.Now().Add(time.Minute); a.member.Serving() != nil && time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
					a.must(a.member.BeatNow(t.Context()))
				}
			}
			for _, n := range []*node{a, b} {
				n.member.Look(t.Context())
				p := n.member.As(somebody())
				if got := say(t, p, first.ID, "cat file"); got != "here\n" {
					t.Errorf("the first session has %q", got)
				}
				if again := open(t, p, cove.Spec{User: "a", Thread: "1"}); again.ID != second.ID {
					t.Errorf("the user and thread have %s; want %s", again.ID, second.ID)
				}
			}
		})
	}
}

// TestCopiesAreLostToo starts a node whose copies are gone, or cannot be read, against a
// Redis that lost all: its sessions are not known, and what is left of them is kept.
func TestCopiesAreLostToo(t *testing.T) {
	for name, spoil := range map[string]func(n *node, copies []string){
		"gone": func(n *node, copies []string) {
			for _, name := range append(copies, filepath.Join(n.dir, "node-records", "origin")) {
				n.must(os.Remove(name))
			}
		},
		"damaged": func(n *node, copies []string) {
			for _, name := range copies {
				n.must(os.WriteFile(name, []byte("{"), 0o600))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := pair(t, shortly)
			running, stopped := rests(t, a)
			copies, err := filepath.Glob(filepath.Join(a.dir, "node-records", "session-*.json"))
			if err != nil || len(copies) != 2 {
				t.Fatalf("the copies are %v, %v", copies, err)
			}
			a.again(true, func() {
				spoil(a, copies)
				a.redis.Flush()
			})
			for range 2 {
				if a.engine.Holds(running.ID) || a.engine.Holds(stopped.ID) {
					t.Error("a session of which nothing is known is served")
				}
				if left := append(a.left(running.ID), a.left(stopped.ID)...); !slices.Equal(left, []string{"sandbox", "archive"}) {
					t.Errorf("there is %v; want a sandbox and an archive", left)
				}
				a.again(true, func() {}) // the next start keeps it, too
			}
			// Whoever removes a copy has what is left removed.
			a.again(false, func() {
				for _, name := range copies {
					a.must(os.Remove(name))
				}
			})
			if left := append(a.left(running.ID), a.left(stopped.ID)...); left != nil {
				t.Errorf("there is %v", left)
			}
		})
	}
}
