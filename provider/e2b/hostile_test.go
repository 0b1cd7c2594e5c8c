//go:build linux

package e2b_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/e2b"
	"github.com/cove-sandbox/cove/provider/e2b/e2btest"
)

// There are servers that have the second version of the list, and of nothing else.
func TestAServerBetweenTwoVersions(t *testing.T) {
	for name, first := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"that says so by the status": nil,
		"that says so in words":      says("POST /v2/sandboxes", 400, inJSON, `{"code":400,"message":"request validation: method not allowed"}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := cloud(t, func(c *e2btest.Config) { c.Mixed, c.First = true, first })
			p := open(t, s)
			if caps, err := p.Probe(t.Context()); err != nil || !caps.Ready {
				t.Fatalf("%+v, %v", caps, err)
			}
			box := made(t, p)
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			again := open(t, s)
			if caps, err := again.Probe(t.Context()); err != nil || !caps.Ready {
				t.Fatalf("%+v, %v", caps, err)
			}
			if _, err := again.Attach(t.Context(), box.ID()); err != nil {
				t.Errorf("attach: %v", err)
			}
			if err := again.Remove(t.Context(), box.ID()); err != nil {
				t.Errorf("remove: %v", err)
			}
		})
	}
}

// What could not be made, and could not be looked for, takes nobody's place.
func TestAFailureTakesNoPlace(t *testing.T) {
	p := open(t, cloud(t), func(c *e2b.Config) { c.Most, c.APIKey = 1, "e2b_1" })
	id := cove.NewID()
	for range 2 {
		if _, err := p.Create(t.Context(), id, spec()); cove.ReasonOf(err) != cove.ReasonConfiguration {
			t.Errorf("with a wrong key: %v", err)
		}
	}
}

// A server that says what it was asked does not get the key into a log.
func TestAServerThatRepeatsTheKey(t *testing.T) {
	s := cloud(t, func(c *e2btest.Config) {
		c.First = func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusTeapot)
			_, _ = fmt.Fprintf(w, "you sent %v", r.Header["X-Api-Key"])
			return true
		}
	})
	_, err := open(t, s).Create(t.Context(), cove.NewID(), spec())
	if told := causes(err); err == nil || strings.Contains(told, key) || !strings.Contains(told, "you sent") {
		t.Errorf("it tells %s", told)
	}
}

// causes is all that an error and its causes say.
func causes(err error) string {
	if err == nil {
		return ""
	}
	all := err.Error()
	switch e := err.(type) { //nolint:errorlint // each of them
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all += "\n" + causes(one)
		}
	case interface{ Unwrap() error }:
		all += "\n" + causes(e.Unwrap())
	}
	return all
}

// An answer that comes byte by byte, and a list that has no end, are given up.
func TestAnswersWithoutAnEnd(t *testing.T) {
	for name, first := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"a byte now and then": func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", inJSON)
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
			return true
		},
		"always another page": func(w http.ResponseWriter, r *http.Request) bool {
			return says("", 200, inJSON, `[{"sandboxID":"i1"}]`, "X-Next-Token", "more")(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "byte") {
				t.Cleanup(e2b.SetExchangeTime(300 * time.Millisecond))
			}
			p := open(t, cloud(t, func(c *e2btest.Config) { c.First = first }))
			for _, err := range p.List(t.Context()) {
				if cove.CodeOf(err) != cove.Unavailable || cove.ReasonOf(err) != cove.ReasonConnection {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// A machine that is made after its caller has left is heard of, and ended.
func TestAMachineThatComesTooLate(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	served := make(chan struct{})
	var s *e2btest.Server
	s = cloud(t, func(c *e2btest.Config) {
		c.First = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method+r.URL.Path != "POST/v2/sandboxes" || ctx.Err() != nil {
				return false
			}
			leave()
			select {
			case <-r.Context().Done(): // the caller did not wait
			case <-time.After(300 * time.Millisecond):
			}
			defer close(served)
			s.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
			return true
		}
	})
	if _, err := open(t, s).Create(ctx, cove.NewID(), spec()); cove.CodeOf(err) != cove.Canceled {
		t.Errorf("%v", err)
	}
	<-served
	if left := s.Machines(); len(left) > 0 {
		t.Errorf("machines are left: %v", left)
	}
}

// What a server says of a machine makes no cost of nothing, nor one below it.
func TestImpossibleMachines(t *testing.T) {
	s := cloud(t, func(c *e2btest.Config) {
		c.First = func(w http.ResponseWriter, r *http.Request) bool {
			return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/sandboxes/i") &&
				says("", 200, inJSON, `{"allowInternetAccess":false,"cpuCount":1e300,"memoryMB":9000000000000000000}`)(w, r)
		}
	})
	box := made(t, open(t, s, func(c *e2b.Config) { c.CPUHour, c.MemoryHour = 1, 1 }))
	if got := box.(cove.Charger).Cost(time.Hour); got != nil {
		t.Errorf("an hour costs %+v", got)
	}
}

// A machine whose renewal gets no answer does not keep that of others waiting.
func TestRenewalsDoNotWait(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	both := make(chan struct{})
	s := cloud(t, func(c *e2btest.Config) {
		c.First = func(_ http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/timeout") {
				return false
			}
			mu.Lock()
			seen[r.URL.Path] = true
			if len(seen) == 2 {
				select {
				case <-both:
				default:
					close(both)
				}
			}
			mu.Unlock()
			select {
			case <-both:
			case <-r.Context().Done():
				mu.Lock()
				defer mu.Unlock()
				if len(seen) < 2 {
					t.Error("one was waited for before the other was asked for")
				}
			}
			return false
		}
	})
	p := open(t, s, func(c *e2b.Config) { c.Timeout = 8 * time.Second })
	made(t, p)
	made(t, p)
	select {
	case <-both:
	case <-t.Context().Done():
	}
}

// A directory that cannot be used is tried again.
func TestADirectoryThatIsMended(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, cloud(t), func(c *e2b.Config) { c.Dir = dir })
	if _, err := p.Create(t.Context(), cove.NewID(), spec()); cove.CodeOf(err) != cove.Unavailable {
		t.Errorf("without a directory: %v", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	made(t, p)
}
