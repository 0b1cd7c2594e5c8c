package ticket_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/ticket"
	"github.com/cove-sandbox/cove/store/redis"
	"github.com/cove-sandbox/cove/store/redis/redistest"
)

// notes is what servers note together, in one process.
type notes struct {
	mu    sync.Mutex
	until map[string]time.Time
	asked int
	fail  error
}

func (n *notes) SpendOnce(_ context.Context, name string, remember time.Duration) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fail != nil {
		return false, n.fail
	}
	if time.Now().Before(n.until[name]) {
		return false, nil
	}
	if n.until == nil {
		n.until = map[string]time.Time{}
	}
	n.until[name] = time.Now().Add(remember)
	return true, nil
}

func (n *notes) Spent(_ context.Context, name string) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	return time.Now().Before(n.until[name]), n.fail
}

func (n *notes) breaks(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = err
}

// server is one of those that share a key and notes.
func server(shared ticket.Shared) (*ticket.Book, *ticket.Desk) {
	b := ticket.Join(newKey(1), shared)
	return b, ticket.NewDesk(b, somebody)
}

// TestGoodAtEveryServer: what one server made every other takes.
func TestGoodAtEveryServer(t *testing.T) {
	var n notes
	a, here := server(&n)
	_, there := server(&n)
	for _, kind := range []cove.GrantKind{cove.GrantDownload, cove.GrantUpload, cove.GrantPort, cove.GrantLogin} {
		if _, _, _, err := there.Redeem(t.Context(), a.Issue(grant(kind)), kind); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	in := entered(t, a, here)
	isIn(t, there, in, "signed in elsewhere")
	_, later := server(&n)
	isIn(t, later, in, "at a server that came later")
	stranger := ticket.Join(newKey(2), &n)
	refused(t, there, stranger.Issue(grant(cove.GrantPort)), cove.GrantPort, "of another cluster")
	refused(t, there, a.Issue(grant(cove.GrantConsole)), cove.GrantConsole, "whom nobody let in")
}

// TestUsedOnceAtAll: many servers are shown one login link, and one takes it.
func TestUsedOnceAtAll(t *testing.T) {
	var n notes
	a, _ := server(&n)
	text := a.Issue(grant(cove.GrantLogin))
	var good atomic.Int32
	var all sync.WaitGroup
	for range 5 {
		_, d := server(&n)
		for range 4 {
			all.Go(func() {
				switch _, _, err := d.Enter(t.Context(), text); {
				case err == nil:
					good.Add(1)
				case !errors.Is(err, cove.Unauthenticated):
					t.Errorf("%v", err)
				}
			})
		}
	}
	all.Wait()
	if good.Load() != 1 {
		t.Errorf("%d came in with one link", good.Load())
	}
	_, d := server(&n)
	refused(t, d, text, cove.GrantLogin, "used elsewhere")
}

// TestOutEverywhere: who signed out is out at once where he did, a second later
// everywhere, and for good.
func TestOutEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		a, here := server(&n)
		_, there := server(&n)
		in, stays := entered(t, a, here), entered(t, a, here)
		isIn(t, there, in, "before")
		if err := here.Leave(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		refused(t, here, in, cove.GrantConsole, "signed out here")
		<-time.After(time.Second)
		refused(t, there, in, cove.GrantConsole, "signed out there")
		if err := there.Leave(t.Context(), in); err != nil {
			t.Errorf("once more: %v", err)
		}
		for range 11 {
			<-time.After(time.Hour)
			_, fresh := server(&n)
			refused(t, fresh, in, cove.GrantConsole, "signed out hours ago")
			isIn(t, fresh, stays, "who stays")
		}
		<-time.After(time.Hour)
		refused(t, there, stays, cove.GrantConsole, "expired")
	})
}

// TestNotAskedEachTime: a browser that asks all the time costs a question in a while.
func TestNotAskedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		a, d := server(&n)
		in := entered(t, a, d)
		before := n.asked
		for range 1000 {
			isIn(t, d, in, "again")
			<-time.After(10 * time.Millisecond)
		}
		if asked := n.asked - before; asked > 2*11 {
			t.Errorf("asked %d times in ten seconds", asked)
		}
	})
}

// TestLostNotes: what is forgotten lets nobody in.
func TestLostNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		a, d := server(&n)
		in, out := entered(t, a, d), entered(t, a, d)
		if err := d.Leave(t.Context(), out); err != nil {
			t.Fatal(err)
		}
		clear(n.until)
		<-time.After(time.Second)
		_, fresh := server(&n)
		for _, each := range []*ticket.Desk{d, fresh} {
			refused(t, each, in, cove.GrantConsole, "in, and forgotten")
			refused(t, each, out, cove.GrantConsole, "out, and forgotten")
		}
	})
}

// TestNobodyToAsk: without an answer nobody is signed in, and is told why.
func TestNobodyToAsk(t *testing.T) {
	var n notes
	a, d := server(&n)
	in, link := entered(t, a, d), a.Issue(grant(cove.GrantLogin))
	_, fresh := server(&n)
	n.breaks(cove.Errorf(cove.Unavailable, "redis.example is down").Reason(cove.ReasonNoDirectory))
	wants := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, cove.Unavailable) || cove.ReasonOf(err) != cove.ReasonNoDirectory || cove.RemedyOf(err) == "" || strings.Contains(cove.MessageOf(err), "redis.example") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, _, _, err := fresh.Redeem(t.Context(), in, cove.GrantConsole)
	wants("a sign-in", err)
	_, _, _, err = fresh.Redeem(t.Context(), link, cove.GrantLogin)
	wants("a look at a link", err)
	_, _, err = fresh.Enter(t.Context(), link)
	wants("a link", err)
	wants("signing out", d.Leave(t.Context(), in))
	refused(t, d, in, cove.GrantConsole, "signed out here, whatever the others know")
	if _, _, _, err := fresh.Redeem(t.Context(), a.Issue(grant(cove.GrantPort)), cove.GrantPort); err != nil {
		t.Errorf("a link that needs nobody: %v", err)
	}
	n.breaks(nil)
	if err := d.Leave(t.Context(), in); err != nil {
		t.Errorf("signing out once more: %v", err)
	}
	refused(t, fresh, in, cove.GrantConsole, "signed out")
	if _, _, err := fresh.Enter(t.Context(), link); err != nil {
		t.Errorf("a link that nobody could look up: %v", err)
	}
}

// TestOverRedis: the same with a directory, whose nodes come and go.
func TestOverRedis(t *testing.T) {
	r := redistest.Start(t)
	node := func(name string) *redis.Store {
		s, err := redis.Open(t.Context(), redis.Config{URL: r.URL(), Node: name, Instance: string(cove.NewID()), Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if _, err := s.Beat(t.Context(), cove.Node{ID: name, Address: "127.0.0.1:1"}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, two := node("one"), node("two")
	a, here := server(one)
	_, there := server(two)
	link := a.Issue(grant(cove.GrantLogin))
	in, _, err := there.Enter(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, here, link, cove.GrantLogin, "used at the other node")
	isIn(t, here, in, "signed in at the other node")
	if err := here.Leave(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := one.Leave(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	_, later := server(node("three"))
	refused(t, later, in, cove.GrantConsole, "signed out at a node that is gone")
	if _, _, err := here.Enter(t.Context(), a.Issue(grant(cove.GrantLogin))); !errors.Is(err, cove.Unavailable) {
		t.Errorf("at a node without a lease: %v", err)
	}
	stays := entered(t, a, there)
	r.Stop()
	if _, _, _, err := later.Redeem(t.Context(), stays, cove.GrantConsole); !errors.Is(err, cove.Unavailable) {
		t.Errorf("without Redis: %v", err)
	}
}
