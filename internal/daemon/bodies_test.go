package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

// mostGrowth is how much more memory the server may use while bodies come in.
const mostGrowth = 150 << 20

// TestBodiesAreBounded: keys with and without the scope send large bodies with many
// elements, half a body, and code that is too long, all at once. The server's memory
// stays within a bound, another key is served meanwhile, and nothing is left.
func TestBodiesAreBounded(t *testing.T) {
	w := plug(t)
	reader, full, other := w.newKey("reader", cove.ScopeRead), w.newKey("full", cove.ScopeAll), w.newKey("other", cove.ScopeAll)
	peak := watchHeap(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var flood, half sync.WaitGroup
	execute, code := "/api/sandboxes/"+string(w.id)+"/execute", "/api/sandboxes/"+string(w.id)+"/code"
	elements := `{"command":[` + strings.Repeat(`"",`, (8<<20-20)/3) + `""]}`
	for _, key := range []string{reader, full} {
		want := map[string][]int{reader: {403}, full: {413, 429}}[key]
		for range 40 {
			half.Go(func() { w.halfBody(ctx, key, execute) })
		}
		for range 12 {
			flood.Go(func() { w.flood(key, execute, strings.NewReader(elements), int64(len(elements)), want...) })
		}
		for range 60 {
			flood.Go(func() {
				w.flood(key, code, io.MultiReader(strings.NewReader(`{"code":"`), io.LimitReader(letters{}, 23<<20), strings.NewReader(`"}`)), 23<<20+11, want...)
			})
		}
	}
	over := make(chan struct{})
	go func() { flood.Wait(); close(over) }()
	for busy := true; busy; {
		if status, text := w.as(other).send("POST", "/execute", strings.NewReader(`{"command":"true"}`)); status != 200 {
			t.Errorf("another key: %d %s", status, text)
		}
		select {
		case <-over:
			busy = false
		default:
		}
	}
	stop()
	half.Wait()
	if grown := peak(); grown > mostGrowth {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	large := `{"command":"true","stdin":"` + strings.Repeat("x", 7<<20) + `"}`
	w.until(func() bool { // the server may not have seen yet that the clients left
		status, text := w.as(full).send("POST", "/execute", strings.NewReader(large))
		if status != 200 && status != 429 {
			t.Fatalf("afterwards: %d %s", status, text)
		}
		return status == 200
	})
}

// newKey makes a key with a scope.
func (w *wired) newKey(name string, scope cove.Scope) (secret string) {
	w.t.Helper()
	_, secret, err := dial(w.t, w.url, w.key).Admin().CreateKey(w.t.Context(), cove.KeyRequest{Name: name, Scopes: []cove.Scope{scope}})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// as is the same server with another key.
func (w *wired) as(key string) *wired {
	other := *w
	other.key = key
	return &other
}

// flood sends a body and demands one of these statuses. A server that has answered may
// break the connection off while the rest of the body is on its way.
func (w *wired) flood(key, path string, body io.Reader, length int64, want ...int) {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+path, body)
	if err != nil {
		w.t.Error(err)
		return
	}
	req.ContentLength = length
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := w.http.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if slices.Contains(want, resp.StatusCode) {
		return
	}
	said, _ := io.ReadAll(resp.Body)
	w.t.Errorf("%s: %d %.300s", path, resp.StatusCode, said)
}

// halfBody sends half of a body and no more until ctx ends.
func (w *wired) halfBody(ctx context.Context, key, path string) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", path, key, 8<<20)
	_, _ = io.CopyN(conn, letters{}, 4<<20) // the server may have enough before
	<-ctx.Done()
}

// letters is text without an end.
type letters struct{}

// Read implements [io.Reader].
func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// watchHeap looks at the heap again and again. The function that it returns ends that
// and says by how much it has grown at most.
func watchHeap(t *testing.T) (grown func() int64) {
	t.Helper()
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	runtime.GC()
	before := inUse()
	most, stop, stopped := before, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			most = max(most, inUse())
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-stopped
		t.Logf("the heap was at %d MiB, and at most at %d MiB", before>>20, most>>20)
		return most - before
	}
}

// TestScopeBeforeBodyIsJournaled: a key without the scope is refused though nothing of
// its body ever comes, and the journal has one line about each request.
func TestScopeBeforeBodyIsJournaled(t *testing.T) {
	w := plug(t)
	key := w.newKey("reader", cove.ScopeRead)
	for _, path := range []string{"/api/sandboxes/" + string(w.id) + "/execute", "/api/code", "/sandboxes", "/v3/templates"} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\n", path, key)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = resp.Body.Close(), conn.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	var kinds []string
	for e, err := range dial(t, w.url, w.key).Admin().Events(t.Context(), cove.EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Effect == cove.Deny {
			kinds = append(kinds, e.Kind)
		}
	}
	want := []string{"process.exec", "context.run", "session.open", "template.build"}
	if !slices.Equal(kinds, want) {
		t.Errorf("the journal has refusals of %v, want %v", kinds, want)
	}
}
