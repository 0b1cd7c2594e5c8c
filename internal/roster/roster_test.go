package roster_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/roster"
)

type (
	box   struct{ n int }
	spare struct{ n int }
)

func open() *roster.Roster[*box, *spare] { return roster.New[*box, *spare]("x") }

func TestAnIDIsTakenOnce(t *testing.T) {
	r := open()
	if err := r.Reserve("a", nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Reserve("a", nil); cove.CodeOf(err) != cove.Conflict {
		t.Errorf("a second one of that id: %v", err)
	}
	if err := r.Reserve("b", func() bool { return true }); cove.CodeOf(err) != cove.Conflict {
		t.Errorf("one that somebody else has: %v", err)
	}
	if b, known := r.Get("a"); b != nil || !known {
		t.Errorf("one that is being made is %v, %v", b, known)
	}
	if len(r.All()) != 0 {
		t.Error("one that is being made counts as made")
	}
	mine := &box{1}
	if err := r.Put("a", mine); err != nil {
		t.Fatal(err)
	}
	if b, _ := r.Get("a"); b != mine || !slices.Equal(r.All(), []*box{mine}) {
		t.Errorf("what was put is %v", b)
	}
	r.Drop("a", &box{2})
	if _, known := r.Get("a"); !known {
		t.Error("another one's id was dropped")
	}
	r.Drop("a", mine)
	if _, known := r.Get("a"); known {
		t.Error("it is still there")
	}
	if err := r.Reserve("a", nil); err != nil {
		t.Errorf("after it is gone: %v", err)
	}
	r.Release("a")
	if ids := r.IDs("c"); !slices.Equal(ids, []cove.ID{"c"}) {
		t.Errorf("the ids are %v", ids)
	}
}

func TestIDsAreNamedOnce(t *testing.T) {
	r := open()
	for _, id := range []cove.ID{"a", "b"} {
		if err := r.Reserve(id, nil); err != nil {
			t.Fatal(err)
		}
	}
	ids := r.IDs("b", "c")
	slices.Sort(ids)
	if !slices.Equal(ids, []cove.ID{"a", "b", "c"}) {
		t.Errorf("%v", ids)
	}
}

func TestTakingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open()
		if b, ours, err := r.TakeUp(t.Context(), "a", func() bool { return false }); b != nil || ours || err != nil {
			t.Errorf("nothing to be taken up: %v, %v, %v", b, ours, err)
		}
		if _, ours, err := r.TakeUp(t.Context(), "a", nil); !ours || err != nil {
			t.Fatalf("the first: %v, %v", ours, err)
		}
		if err := r.Reserve("a", nil); cove.CodeOf(err) != cove.Conflict {
			t.Errorf("what is taken up can be made: %v", err)
		}
		mine := &box{1}
		got := make(chan *box)
		go func() {
			b, ours, err := r.TakeUp(t.Context(), "a", nil)
			if ours || err != nil {
				t.Errorf("the second: %v, %v", ours, err)
			}
			got <- b
		}()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := r.TakeUp(ctx, "a", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("who leaves: %v", err)
		}
		synctest.Wait()
		r.TookUp("a", mine)
		if b := <-got; b != mine {
			t.Errorf("the second has %v", b)
		}
	})
}

func TestTakingUpFails(t *testing.T) {
	r := open()
	if _, ours, _ := r.TakeUp(t.Context(), "a", nil); !ours {
		t.Fatal("it is not ours")
	}
	r.TookUp("a", nil)
	if _, known := r.Get("a"); known {
		t.Error("what could not be taken up is known")
	}
	if _, ours, _ := r.TakeUp(t.Context(), "a", nil); !ours {
		t.Error("nobody can try again")
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open()
		mine, extra := &box{1}, &spare{1}
		for _, err := range []error{r.Put("a", mine), r.Reserve("b", nil), r.Keep(extra), r.Keep(&spare{2}), r.Enter(), r.Open()} {
			if err != nil {
				t.Fatal(err)
			}
		}
		r.Use(extra)
		hurried := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			boxes, spares, first := r.Close(func() { close(hurried) })
			if !first || !slices.Equal(boxes, []*box{mine}) || len(spares) != 1 || spares[0].n != 2 {
				t.Errorf("closed with %v, %v, %v", boxes, spares, first)
			}
		}()
		<-hurried
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("it did not wait for who entered")
		default:
		}
		for what, err := range map[string]error{
			"Enter": r.Enter(), "Open": r.Open(), "Put": r.Put("b", mine), "Reserve": r.Reserve("c", nil), "Keep": r.Keep(&spare{3}),
		} {
			if cove.CodeOf(err) != cove.Unavailable || cove.MessageOf(err) != "provider x is closed" {
				t.Errorf("%s after the end: %v", what, err)
			}
		}
		r.Leave()
		<-done
		if _, _, first := r.Close(nil); first {
			t.Error("it was closed for the first time twice")
		}
	})
}

func TestList(t *testing.T) {
	down := errors.New("down")
	for _, err := range roster.List(func() ([]cove.ID, error) { return nil, down }) {
		if !errors.Is(err, down) {
			t.Errorf("%v", err)
		}
	}
	for id := range roster.List(func() ([]cove.ID, error) { return []cove.ID{"a", "b"}, nil }) {
		if id != "a" {
			t.Errorf("%s after the caller had enough", id)
		}
		break
	}
}
