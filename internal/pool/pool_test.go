package pool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/pool"
)

// spare counts how many of it are discarded.
type spare struct {
	mold    cove.Mold
	dropped *int
}

func (*spare) Claim(context.Context, cove.ID, cove.Spec) (cove.Sandbox, error) {
	return nil, errors.New("not in this test")
}

func (s *spare) Discard(context.Context) error {
	*s.dropped++
	return nil
}

func newPool(size, most int) (p *pool.Pool, dropped *int) {
	dropped = new(int)
	return pool.New(pool.Config{Size: size, Max: most, Prepare: func(_ context.Context, m cove.Mold) (cove.Spare, error) {
		switch m.Template {
		case "unsupported":
			return nil, cove.Errorf(cove.Unsupported, "no")
		case "broken":
			return nil, cove.Errorf(cove.Unavailable, "broken")
		}
		return &spare{m, dropped}, nil
	}}), dropped
}

func mold(name string) cove.Mold { return cove.Mold{Provider: "p", Template: name} }

func fill(t *testing.T, p *pool.Pool, want int64) {
	t.Helper()
	if n, err := p.Fill(t.Context()); err != nil || n != want {
		t.Fatalf("filling made %d spares (%v), want %d", n, err, want)
	}
}

func TestTakeLearnsWhatIsWanted(t *testing.T) {
	p, dropped := newPool(2, 10)
	fill(t, p, 0)
	if _, ok := p.Take(mold("a")); ok {
		t.Fatal("an empty pool gave a spare")
	}
	fill(t, p, 2)
	for range 2 {
		s, ok := p.Take(mold("a"))
		if !ok || s.(*spare).mold != mold("a") {
			t.Fatal("a filled pool gave no spare of its mold")
		}
	}
	if _, ok := p.Take(mold("a")); ok {
		t.Fatal("two spares were taken three times")
	}
	fill(t, p, 2)
	if want, have := p.Size(); want != 2 || have != 2 {
		t.Errorf("size says %d of %d", have, want)
	}
	if err := p.Close(t.Context()); err != nil || *dropped != 2 {
		t.Errorf("closing discarded %d (%v), want 2", *dropped, err)
	}
	if _, ok := p.Take(mold("a")); ok {
		t.Error("a closed pool gave a spare")
	}
	fill(t, p, 0)
}

func TestOffMeansOff(t *testing.T) {
	p, _ := newPool(0, 10)
	p.Take(mold("a"))
	p.Want(mold("a"))
	fill(t, p, 0)
}

func TestTheSumIsBounded(t *testing.T) {
	p, _ := newPool(4, 6)
	p.Want(mold("old"))
	p.Want(mold("new"))
	fill(t, p, 6)
	for range 4 {
		if _, ok := p.Take(mold("new")); !ok {
			t.Fatal("what was wanted last is filled first")
		}
	}
}

func TestMoldsNobodyWantsAreDropped(t *testing.T) {
	p, dropped := newPool(1, 100)
	for i := range 16 {
		p.Want(mold(fmt.Sprint(i)))
	}
	fill(t, p, 16)
	p.Want(mold("one more"))
	fill(t, p, 1)
	if *dropped != 1 {
		t.Errorf("%d spares were discarded, want the oldest mold's one", *dropped)
	}
}

func TestWhatCannotBePreparedIsForgotten(t *testing.T) {
	p, _ := newPool(1, 10)
	p.Want(mold("unsupported"))
	fill(t, p, 0)
	p.Want(mold("broken"))
	p.Want(mold("fine"))
	n, err := p.Fill(t.Context())
	if n != 1 || cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("made %d spares with error %v", n, err)
	}
	fill(t, p, 0)
}

func TestASpareMadeWhileClosingIsDiscarded(t *testing.T) {
	dropped := 0
	var p *pool.Pool
	p = pool.New(pool.Config{Size: 1, Max: 1, Prepare: func(ctx context.Context, m cove.Mold) (cove.Spare, error) {
		return &spare{m, &dropped}, p.Close(ctx)
	}})
	p.Want(mold("a"))
	fill(t, p, 0)
	if dropped != 1 {
		t.Errorf("%d discarded, want 1", dropped)
	}
}

func TestManyTakersGetDifferentSpares(t *testing.T) {
	p, _ := newPool(50, 50)
	p.Want(mold("a"))
	fill(t, p, 50)
	var mu sync.Mutex
	seen := map[cove.Spare]bool{}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if s, ok := p.Take(mold("a")); ok {
				mu.Lock()
				defer mu.Unlock()
				if seen[s] {
					t.Error("one spare was given out twice")
				}
				seen[s] = true
			}
		})
	}
	wg.Wait()
	if len(seen) != 50 {
		t.Errorf("%d of 50 were given out", len(seen))
	}
}
