package preview_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/preview"
)

// opened lets in who shows a word, until it is shut.
type opened struct {
	shut  atomic.Bool
	asked atomic.Int32
	done  atomic.Int32
}

func (o *opened) config(c *preview.Config) {
	c.Redeem = nil
	c.Open = func(_ context.Context, id cove.ID, port int, r *http.Request) (cove.Principal, func(), error) {
		o.asked.Add(1)
		done := func() { o.done.Add(1) }
		if o.shut.Load() || r.Header.Get("E2B-Traffic-Access-Token") != "word" || id != session || port != 3000 {
			return cove.Principal{}, done, cove.Errorf(cove.Unauthenticated, "this port is not public")
		}
		return cove.Principal{Name: "owner", Tenant: "acme"}, done, nil
	}
}

func TestAnOpenDoorNeedsNoTicket(t *testing.T) {
	var o opened
	r := start(t, serving(func(w http.ResponseWriter, req *http.Request) {
		for _, name := range []string{"Authorization", "X-Api-Key", "E2b-Traffic-Access-Token", "Origin"} {
			w.Header().Set("Seen-"+name, req.Header.Get(name))
		}
		_, _ = io.WriteString(w, "hello "+req.URL.RawQuery)
	}), o.config)
	got := r.send("GET", "/?a=1", "", "E2B-Traffic-Access-Token", "word", "Authorization", "Bearer its-own", "X-API-Key", "e2b_0123", "Origin", "https://elsewhere.test",
		"Sec-Fetch-Site", "cross-site")
	if got.status != http.StatusOK || got.body != "hello a=1" || got.header.Get("Set-Cookie") != "" {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]string{"Authorization": "Bearer its-own", "X-Api-Key": "", "E2b-Traffic-Access-Token": "", "Origin": "https://elsewhere.test"} {
		if seen := got.header.Get("Seen-" + name); seen != want {
			t.Errorf("the program saw %s %q", name, seen)
		}
	}
	if got := r.send("GET", "/?cove_ticket="+good, ""); got.status != http.StatusUnauthorized || got.body != "Cove: this port is not public\n" {
		t.Errorf("a ticket: %+v", got)
	}
	if o.asked.Load() != o.done.Load() {
		t.Errorf("asked %d times, done %d times", o.asked.Load(), o.done.Load())
	}
	r.settled()
}

func TestAnOpenDoorThatIsShutEndsWhatLasts(t *testing.T) {
	var o opened
	r := start(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
		_, _ = io.Copy(io.Discard, c)
	}, o.config, func(c *preview.Config) { c.Recheck = 5 * time.Millisecond })
	conn, in := r.dial("GET / HTTP/1.1", "E2B-Traffic-Access-Token: word")
	defer func() { _ = conn.Close() }()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data: 1") {
			break
		}
	}
	o.shut.Store(true)
	if _, err := io.Copy(io.Discard, in); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	r.settled()
}

func TestRefusalsInOtherWords(t *testing.T) {
	var o opened
	r := start(t, raw("nonsense\n"), o.config, func(c *preview.Config) {
		c.Refusal = func(id cove.ID, port int, err error) (int, string, string) {
			if id != session || port != 3000 {
				t.Errorf("%s %d", id, port)
			}
			return http.StatusBadGateway, "application/json", `{"code":502,"message":"` + string(cove.CodeOf(err)) + `"}`
		}
	})
	for _, tc := range []struct{ word, want string }{{"wrong", "unauthenticated"}, {"word", "unavailable"}} {
		got := r.send("GET", "/", "", "E2B-Traffic-Access-Token", tc.word)
		if got.status != http.StatusBadGateway || got.header.Get("Content-Type") != "application/json" || got.body != `{"code":502,"message":"`+tc.want+`"}` {
			t.Errorf("%s: %+v", tc.word, got)
		}
	}
	r.settled()
}
