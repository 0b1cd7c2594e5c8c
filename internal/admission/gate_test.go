package admission_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/admission"
)

func claim(tenant string, memory cove.Bytes) admission.Claim {
	return admission.Claim{Tenant: tenant, Memory: memory}
}

func mustTry(t *testing.T, g *admission.Gate, c admission.Claim) *admission.Ticket {
	t.Helper()
	ticket, err := g.Try(c)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func TestTryRefusesWhenFull(t *testing.T) {
	g := admission.New(admission.Config{Sessions: 2, Memory: 10})
	a := mustTry(t, g, claim("a", 4))
	mustTry(t, g, claim("a", 6))
	_, err := g.Try(claim("b", 1))
	if cove.CodeOf(err) != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonCapacity {
		t.Errorf("a full gate gives %v", err)
	}
	a.Leave()
	a.Leave()
	if n, mem, _ := g.Used(); n != 1 || mem != 6 {
		t.Errorf("after leaving twice %d sessions and %d bytes are used", n, mem)
	}
	if _, err := g.Try(claim("b", 5)); cove.CodeOf(err) != cove.Exhausted {
		t.Errorf("five bytes where four are free give %v", err)
	}
	mustTry(t, g, claim("b", 4))
	var none *admission.Ticket
	none.Leave()
}

func TestWhatCanNeverFitIsRefusedAtOnce(t *testing.T) {
	g := admission.New(admission.Config{Memory: 10, Queue: 5})
	if _, err := g.Wait(t.Context(), claim("a", 11), nil); cove.ReasonOf(err) != cove.ReasonCapacity {
		t.Errorf("too much memory gives %v", err)
	}
	c := admission.Claim{Tenant: "a", Memory: 5, Quota: cove.Bounds{Memory: 4}}
	if _, err := g.Try(c); cove.ReasonOf(err) != cove.ReasonTenantQuota {
		t.Errorf("more than the quota gives %v", err)
	}
}

func TestTenantQuota(t *testing.T) {
	g := admission.New(admission.Config{})
	c := admission.Claim{Tenant: "a", Quota: cove.Bounds{Sessions: 1}}
	mustTry(t, g, c)
	if _, err := g.Try(c); cove.ReasonOf(err) != cove.ReasonTenantQuota {
		t.Errorf("the second of one gives %v", err)
	}
	mustTry(t, g, claim("b", 0))
	if n, _ := g.Of("a"); n != 1 {
		t.Errorf("tenant a has %d", n)
	}
}

func TestTurnsGoRoundTheTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Config{Sessions: 1, Queue: 10})
		hold := mustTry(t, g, claim("x", 0))
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for _, who := range []string{"a1", "a2", "a3", "b1", "c1", "b2"} {
			wg.Go(func() {
				ticket, err := g.Wait(t.Context(), claim(who[:1], 0), nil)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, who)
				mu.Unlock()
				ticket.Leave()
			})
			synctest.Wait() // they queue in this order
		}
		hold.Leave()
		wg.Wait()
		if want := []string{"a1", "b1", "c1", "a2", "b2", "a3"}; !slices.Equal(order, want) {
			t.Errorf("they came in as %v, want %v", order, want)
		}
	})
}

func TestPositionsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Config{Sessions: 1, Queue: 10})
		hold := mustTry(t, g, claim("x", 0))
		told := make(chan int, 10)
		first := make(chan *admission.Ticket, 1)
		go func() {
			ticket, _ := g.Wait(t.Context(), claim("a", 0), nil)
			first <- ticket
		}()
		synctest.Wait()
		done := make(chan struct{})
		go func() {
			defer close(done)
			ticket, err := g.Wait(t.Context(), claim("b", 0), func(at int) { told <- at })
			if err != nil {
				t.Error(err)
				return
			}
			ticket.Leave()
		}()
		synctest.Wait()
		hold.Leave()
		synctest.Wait()
		(<-first).Leave()
		<-done
		close(told)
		var got []int
		for at := range told {
			got = append(got, at)
		}
		if want := []int{2, 1}; !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Config{Sessions: 1, Queue: 1})
		hold := mustTry(t, g, claim("a", 0))
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := g.Wait(ctx, claim("a", 0), nil)
			gone <- err
		}()
		synctest.Wait()
		if _, err := g.Wait(t.Context(), claim("b", 0), nil); cove.ReasonOf(err) != cove.ReasonQueueFull {
			t.Errorf("the second in a queue for one gives %v", err)
		}
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who goes away gets %v", err)
		}
		if _, _, waiting := g.Used(); waiting != 0 {
			t.Errorf("%d still wait", waiting)
		}
		hold.Leave()
		mustTry(t, g, claim("b", 0))
	})
}

func TestALargeClaimIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Config{Memory: 10, Queue: 10})
		small := mustTry(t, g, claim("a", 5))
		got := make(chan *admission.Ticket, 1)
		go func() {
			ticket, err := g.Wait(t.Context(), claim("b", 8), nil)
			if err != nil {
				t.Error(err)
			}
			got <- ticket
		}()
		synctest.Wait()
		if _, err := g.Try(claim("a", 1)); cove.CodeOf(err) != cove.Exhausted {
			t.Errorf("a small one passed the large one that waits: %v", err)
		}
		small.Leave()
		(<-got).Leave()
	})
}

func TestATenantAtItsQuotaHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Config{Sessions: 2, Queue: 10})
		capped := admission.Claim{Tenant: "a", Quota: cove.Bounds{Sessions: 1}}
		mine := mustTry(t, g, capped)
		got := make(chan *admission.Ticket, 1)
		go func() {
			ticket, _ := g.Wait(t.Context(), capped, nil)
			got <- ticket
		}()
		synctest.Wait()
		mustTry(t, g, claim("b", 0)).Leave()
		mine.Leave()
		(<-got).Leave()
	})
}

func TestExchangePassesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Config{Sessions: 1, Memory: 10, Queue: 10})
		old := mustTry(t, g, claim("a", 5))
		got := make(chan *admission.Ticket, 1)
		go func() {
			ticket, _ := g.Wait(t.Context(), claim("b", 1), nil)
			got <- ticket
		}()
		synctest.Wait()
		if n, mem := g.Shortfall(claim("a", 8)); n != 1 || mem != 3 {
			t.Errorf("the shortfall is %d sessions and %d bytes, want 1 and 3", n, mem)
		}
		fresh, err := g.Exchange([]*admission.Ticket{old}, claim("a", 8))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 0 {
			t.Error("somebody else got the room")
		}
		if _, err := g.Exchange([]*admission.Ticket{fresh}, claim("a", 11)); cove.CodeOf(err) != cove.Exhausted {
			t.Errorf("too much gives %v", err)
		}
		(<-got).Leave() // the failed exchange let the next one in
	})
}

func TestServeLetsTheTenantsOwnCallerIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.New(admission.Config{Sessions: 1, Queue: 10})
		mine := mustTry(t, g, claim("a", 0))
		got := map[string]chan *admission.Ticket{"b": make(chan *admission.Ticket, 1), "a": make(chan *admission.Ticket, 1)}
		for _, who := range []string{"b", "a"} { // b came first
			go func() {
				ticket, err := g.Wait(t.Context(), claim(who, 0), nil)
				if err != nil {
					t.Error(err)
				}
				got[who] <- ticket
			}()
			synctest.Wait()
		}
		if heads := g.Waiting(); len(heads) != 2 || heads[0].Tenant != "b" {
			t.Errorf("waiting are %+v", heads)
		}
		g.Serve([]*admission.Ticket{mine}, "a")
		synctest.Wait()
		if len(got["b"]) != 0 {
			t.Error("what a gave up went to b")
		}
		(<-got["a"]).Leave()
		(<-got["b"]).Leave()
		g.Serve(nil, "nobody")
	})
}

func TestAdmitMayOverfill(t *testing.T) {
	g := admission.New(admission.Config{Sessions: 1})
	g.Admit(claim("a", 1))
	g.Admit(claim("a", 1))
	if n, mem, _ := g.Used(); n != 2 || mem != 2 {
		t.Errorf("%d sessions, %d bytes", n, mem)
	}
}

// TestNothingIsCountedTwice tries many takings and leavings at once and looks
// whether the sums are right at the end.
func TestNothingIsCountedTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 60).Draw(rt, "steps")
		g := admission.New(admission.Config{Sessions: 3, Memory: 9, Queue: 4})
		var held []*admission.Ticket
		for i, s := range steps {
			if s == 0 && len(held) > 0 {
				held[0].Leave()
				held = held[1:]
				continue
			}
			if ticket, err := g.Try(claim(fmt.Sprint("t", i%3), cove.Bytes(s))); err == nil {
				held = append(held, ticket)
			}
			if n, mem, _ := g.Used(); n > 3 || mem > 9 || n != len(held) {
				rt.Fatalf("%d sessions and %d bytes are used, %d tickets are out", n, mem, len(held))
			}
		}
		for _, ticket := range held {
			ticket.Leave()
		}
		if n, mem, waiting := g.Used(); n != 0 || mem != 0 || waiting != 0 {
			rt.Fatalf("%d, %d and %d are left", n, mem, waiting)
		}
	})
}

// TestAside: what is no session takes memory, and the place of no session.
func TestAside(t *testing.T) {
	g := admission.New(admission.Config{Sessions: 1, Memory: 3 * cove.GiB})
	aside := g.Admit(admission.Claim{Memory: 2 * cove.GiB, Aside: true})
	if sessions, memory, _ := g.Used(); sessions != 0 || memory != 2*cove.GiB {
		t.Errorf("%d sessions and %s are used", sessions, memory)
	}
	if _, err := g.Try(admission.Claim{Tenant: "a", Memory: 2 * cove.GiB}); cove.CodeOf(err) != cove.Exhausted {
		t.Errorf("there was no memory left: %v", err)
	}
	ticket, err := g.Try(admission.Claim{Tenant: "a", Memory: cove.GiB})
	if err != nil {
		t.Fatal(err)
	}
	ticket.Leave()
	aside.Leave()
	aside.Leave()
	if sessions, memory, _ := g.Used(); sessions != 0 || memory != 0 {
		t.Errorf("%d sessions and %s are used by nobody", sessions, memory)
	}
}
