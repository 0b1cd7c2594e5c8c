package spool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/spool"
)

func TestGapsShowInTheOffsets(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o", MemoryBytes: 64, MaxBytes: 200})
	var all strings.Builder
	for i := range 100 {
		line := fmt.Sprintf("line %05d\n", i)
		all.WriteString(line)
		write(t, l, cove.Stdout, line)
	}
	l.Close()
	check := func(l *spool.Log) {
		t.Helper()
		var end int64
		gaps := 0
		for _, c := range follow(t, l, 0) {
			if c.Offset < end {
				t.Fatalf("chunk at %d after one that ends at %d", c.Offset, end)
			}
			if c.Offset > end {
				gaps++
			}
			end = c.Offset + int64(len(c.Data))
			if want := all.String()[c.Offset:end]; string(c.Data) != want {
				t.Errorf("at %d got %q, want %q", c.Offset, c.Data, want)
			}
		}
		if gaps != 1 || end != int64(all.Len()) {
			t.Errorf("got %d gaps and the end at %d of %d", gaps, end, all.Len())
		}
		// From within the gap on, the first chunk is the one after it.
		if c := follow(t, l, 300)[0]; c.Offset < 300 || string(c.Data) != all.String()[c.Offset:c.Offset+int64(len(c.Data))] {
			t.Errorf("got %+v", c)
		}
		if p := page(t, l, cove.OutputRange{Offset: 190}); p.Total != 200 || p.Next != -1 || p.Dropped != int64(all.Len())-200 || len(p.Data) != 10 {
			t.Errorf("got %+v", p)
		}
	}
	check(l)
	if err := l.Persist(); err != nil {
		t.Fatal(err)
	}
	check(l)
	again, err := spool.Open(root, "o")
	if err != nil {
		t.Fatal(err)
	}
	check(again)
}

// TestFollowerWhoKeepsUpMissesNothing also when nothing is kept any more.
func TestFollowerWhoKeepsUpMissesNothing(t *testing.T) {
	// Of one write a follower may get two chunks, so the writer waits for bytes.
	read, seen := make(chan int64, 1000), int64(0)
	l := spool.New(spool.Config{MemoryBytes: 64, OnChunk: func(c cove.Chunk) {
		for seen < c.Offset+int64(len(c.Data)) {
			seen = <-read
		}
	}})
	done := make(chan string)
	go func() {
		var got strings.Builder
		for c, err := range l.Follow(context.Background(), 0) {
			if err != nil || c.Offset != int64(got.Len()) {
				t.Errorf("got %+v, %v", c, err)
			}
			got.Write(c.Data)
			read <- int64(got.Len())
		}
		done <- got.String()
	}()
	var want strings.Builder
	for i := range 100 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		write(t, l, cove.Stdout, line)
	}
	l.Close()
	if got := <-done; got != want.String() {
		t.Error(cmp.Diff(want.String(), got))
	}
	wantCode(t, l.Err(), cove.Unavailable, "first 64 bytes", "no folder")
}

func TestBlockedCalleeDoesNotBlockReaders(t *testing.T) {
	hold := make(chan struct{})
	l := spool.New(spool.Config{OnChunk: func(cove.Chunk) { <-hold }})
	wrote := make(chan struct{})
	go func() {
		_, _ = io.WriteString(l.Writer(cove.Stdout), "hello")
		close(wrote)
	}()
	for c, err := range l.Follow(t.Context(), 0) {
		if err != nil || string(c.Data) != "hello" {
			t.Fatalf("got %+v, %v", c, err)
		}
		break
	}
	if p := page(t, l, cove.OutputRange{}); string(p.Data) != "hello" {
		t.Errorf("got %q", p.Data)
	}
	if stdout, _ := l.Summary(); string(stdout.Data) != "hello" {
		t.Errorf("got %q", stdout.Data)
	}
	select {
	case <-wrote:
		t.Error("the writer did not wait for the callee")
	default:
	}
	close(hold)
	<-wrote
}

func TestFollowEndsWithItsContext(t *testing.T) {
	l := spool.New(spool.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	write(t, l, cove.Stdout, "x")
	n := 0
	var last error
	for _, err := range l.Follow(ctx, 0) {
		n++
		last = err
		cancel()
	}
	wantCode(t, last, cove.Canceled)
	if n != 2 || !errors.Is(last, context.Canceled) {
		t.Errorf("got %d items, the last %v", n, last)
	}
	// Also in the middle of a long backlog.
	write(t, l, cove.Stderr, "y")
	for range l.Follow(ctx, 0) {
		n++
	}
	if n != 3 {
		t.Errorf("a follower whose context has ended got %d items", n-2)
	}
}

func TestManyFollowersOfManyWriters(t *testing.T) {
	root := newRoot(t)
	l := spool.New(spool.Config{Root: root, Name: "o", MemoryBytes: 512})
	const each = 300
	var followers, writers sync.WaitGroup
	for i := range 6 {
		followers.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			end := int64(0)
			for c, err := range l.Follow(ctx, 0) {
				if err != nil || c.Offset != end {
					if i%2 == 0 || err == nil {
						t.Errorf("got a chunk at %d after %d, %v", c.Offset, end, err)
					}
					return
				}
				if end += int64(len(c.Data)); i%2 == 1 && end > 3000 {
					cancel() // half of them leave early
				}
			}
			if end != l.Total() {
				t.Errorf("a follower ended at %d of %d", end, l.Total())
			}
		})
	}
	for _, s := range []cove.Stream{cove.Stdout, cove.Stderr, cove.Stdout} {
		writers.Go(func() {
			for i := range each {
				_, _ = fmt.Fprintf(l.Writer(s), "%s line %d\n", s, i)
				if i%50 == 0 {
					if _, err := l.Page(cove.OutputRange{Stream: s, Grep: "1"}); err != nil {
						t.Error(err)
					}
					l.Summary()
				}
			}
		})
	}
	writers.Wait()
	l.Close()
	followers.Wait()
}
