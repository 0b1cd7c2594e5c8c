//go:build linux

package e2b_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/program"
	"github.com/cove-sandbox/cove/provider/e2b"
	"github.com/cove-sandbox/cove/provider/e2b/e2btest"
)

// open is a provider that is closed with the test.
func open(t *testing.T, s *e2btest.Server, change ...func(*e2b.Config)) *e2b.Provider {
	t.Helper()
	p := at(t, s, change...)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

func spec() cove.Spec {
	return cove.Spec{Template: "base", Workspace: cove.Workspace{Kind: cove.WorkspaceMemory}, Network: cove.Network{Mode: cove.NetworkNone}}
}

// made is a sandbox that is destroyed with the test.
func made(t *testing.T, p *e2b.Provider) cove.Sandbox {
	t.Helper()
	s, err := p.Create(t.Context(), cove.NewID(), spec())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Destroy(context.Background()); err != nil && cove.CodeOf(err) != cove.Unavailable {
			t.Errorf("destroy: %v", err)
		}
	})
	return s
}

// says answers requests whose path ends so.
func says(suffix string, status int, kind, body string, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.Method+" "+r.URL.Path, suffix) {
			return false
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return true
	}
}

const (
	inJSON = "application/json"
	inHTML = "text/html"
	page   = "<html><body>the proxy says hello</body></html>"
)

// hangs takes requests and never answers.
func hangs(suffix string) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.Method+" "+r.URL.Path, suffix) {
			return false
		}
		<-r.Context().Done()
		return true
	}
}

func TestProbe(t *testing.T) {
	for name, tt := range map[string]struct {
		first func(http.ResponseWriter, *http.Request) bool
		cfg   func(*e2b.Config)
		why   string // "" means ready
	}{
		"all is well":        {},
		"no key":             {cfg: func(c *e2b.Config) { c.APIKey = "" }, why: "E2B_API_KEY is not set"},
		"a wrong key":        {cfg: func(c *e2b.Config) { c.APIKey = "e2b_1" }, why: "does not accept the key in E2B_API_KEY"},
		"a page":             {first: says("/sandboxes", 200, inHTML, page), why: "answers, and not as E2B does"},
		"a page not found":   {first: says("/sandboxes", 404, inHTML, page), why: "answers, and not as E2B does"},
		"no JSON":            {first: says("/sandboxes", 200, inJSON, "[{"), why: "answers, and not as E2B does"},
		"too much":           {first: says("/sandboxes", 200, inJSON, strings.Repeat(" ", 5<<20)), why: "answers, and not as E2B does"},
		"a redirect":         {first: says("/sandboxes", 302, inHTML, page, "Location", "http://127.0.0.1:1/"), why: "answers, and not as E2B does"},
		"never an answer":    {first: hangs("/sandboxes"), why: "does not answer"},
		"trouble":            {first: says("/sandboxes", 503, inJSON, `{"code":503,"message":"x"}`), why: "has trouble of its own"},
		"nobody listens":     {cfg: func(c *e2b.Config) { c.APIURL = "http://127.0.0.1:1" }, why: "does not answer"},
		"too often":          {first: says("/sandboxes", 429, inJSON, `{"code":429}`), why: "allows no more for now"},
		"no agent":           {cfg: func(c *e2b.Config) { c.Agent = "/nowhere/agent" }, why: "the agent cannot be read"},
		"one with no prices": {cfg: func(c *e2b.Config) { c.CPUHour = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := e2btest.New(e2btest.Config{Key: key, First: tt.first})
			t.Cleanup(func() { _ = s.Close() })
			cfg := e2b.Config{Dir: t.TempDir(), APIKey: key, APIURL: s.URL(), Agent: program.Agent(t)}
			if tt.cfg != nil {
				tt.cfg(&cfg)
			}
			p, err := e2b.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			caps, err := p.Probe(t.Context())
			if err != nil || caps.Ready != (tt.why == "") || !strings.Contains(caps.Why, tt.why) || !caps.Ready && caps.Remedy == "" {
				t.Errorf("ready %v, why %q, remedy %q, %v; want %q", caps.Ready, caps.Why, caps.Remedy, err, tt.why)
			}
			if caps.Isolation.Boundary != cove.BoundaryRemote {
				t.Errorf("the boundary is %q also where it is not ready", caps.Isolation.Boundary)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		first  func(http.ResponseWriter, *http.Request) bool
		cfg    func(*e2b.Config)
		code   cove.Code
		reason string
		says   string
	}{
		"the key is not accepted":   {cfg: func(c *e2b.Config) { c.APIKey = "e2b_1" }, code: cove.Unavailable, reason: cove.ReasonConfiguration, says: "E2B_API_KEY"},
		"there is no key":           {cfg: func(c *e2b.Config) { c.APIKey = "" }, code: cove.Unavailable, reason: cove.ReasonConfiguration, says: "E2B_API_KEY"},
		"there is no such template": {cfg: func(c *e2b.Config) { c.Template = "mine" }, code: cove.Unavailable, reason: cove.ReasonConfiguration, says: `E2B has no template "mine"`},
		"the team may have no more": {first: says("POST /v2/sandboxes", 429, inJSON, `{"code":429,"message":"too many"}`, "Retry-After", "7"), code: cove.Exhausted, reason: cove.ReasonCapacity, says: "allows no more"},
		"the request is not taken":  {first: says("POST /v2/sandboxes", 400, inJSON, `{"code":400,"message":"timeout too long"}`), code: cove.Unavailable, says: "does not take the request"},
		"a page instead":            {first: says("POST /v2/sandboxes", 200, inHTML, page), code: cove.Unavailable, reason: cove.ReasonConnection, says: "not as E2B does"},
		"a machine with a bad name": {first: says("POST /v2/sandboxes", 201, inJSON, `{"sandboxID":"../../x","envdAccessToken":"t"}`), code: cove.Unavailable, says: "not as E2B does"},
		"a machine elsewhere":       {first: says("POST /v2/sandboxes", 201, inJSON, `{"sandboxID":"i1","domain":"evil/x?"}`), code: cove.Unavailable, says: "not as E2B does"},
		"nobody tells of it":        {first: says("GET /sandboxes/{id}", 500, inJSON, "{}"), code: cove.Unavailable, reason: cove.ReasonConnection, says: "trouble of its own"},
		"no room for the agent":     {first: says("POST /files", 507, inJSON, `{"code":507,"message":"full"}`), code: cove.Unavailable, says: "trouble of its own"},
		"no program starts":         {first: says("POST /process.Process/Start", 200, inHTML, page), code: cove.Unavailable, says: "not as E2B does"},
		"a stream that is cut":      {first: says("POST /process.Process/Start", 200, "application/connect+json", "\x00\x00\x00"), code: cove.Unavailable, says: "cannot start a program"},
		"a stream with an error":    {first: says("POST /process.Process/Start", 200, "application/connect+json", "\x02\x00\x00\x00\x1a"+`{"error":{"code":"boom!"}}`), code: cove.Unavailable, says: "cannot start a program"},
		"a frame without end":       {first: says("POST /process.Process/Start", 200, "application/connect+json", "\x00\xff\xff\xff\xff"), code: cove.Unavailable, says: "cannot start a program"},
		"the agent is none":         {cfg: func(c *e2b.Config) { c.Agent = "/etc/hostname" }, code: cove.Unavailable, says: "the agent does not run"},
		"there is no agent":         {cfg: func(c *e2b.Config) { c.Agent = "/nowhere/agent" }, code: cove.Unavailable, says: "the agent cannot be read"},
		"nothing can be sent to it": {first: says("POST /process.Process/SendInput", 500, inJSON, "{}"), code: cove.Unavailable, says: "the agent does not run"},
	} {
		t.Run(name, func(t *testing.T) {
			first := tt.first
			if name == "nobody tells of it" {
				first = func(w http.ResponseWriter, r *http.Request) bool {
					return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/sandboxes/i") && says("", 500, inJSON, "{}")(w, r)
				}
			}
			s := cloud(t, func(c *e2btest.Config) { c.First = first })
			var change []func(*e2b.Config)
			if tt.cfg != nil {
				change = append(change, tt.cfg)
			}
			id := cove.NewID()
			box, err := open(t, s, change...).Create(t.Context(), id, spec())
			if box != nil || cove.CodeOf(err) != tt.code || tt.reason != "" && cove.ReasonOf(err) != tt.reason {
				t.Fatalf("%v, %v with reason %q; want %s %s", box, err, cove.ReasonOf(err), tt.code, tt.reason)
			}
			if !strings.Contains(cove.MessageOf(err), tt.says) {
				t.Errorf("it says %q, want %q", cove.MessageOf(err), tt.says)
			}
			if cove.RemedyOf(err) == "" {
				t.Errorf("%v has no remedy", err)
			}
			if strings.Contains(err.Error(), key) || strings.Contains(cove.MessageOf(err), "proxy") {
				t.Errorf("it tells too much: %v", err)
			}
			if left := s.Machines(); len(left) > 0 {
				t.Errorf("machines are left: %v", left)
			}
		})
	}
}

// A machine whose making was not heard of is found by its metadata, and ended.
func TestAnAnswerThatIsLost(t *testing.T) {
	var s *e2btest.Server
	s = cloud(t, func(c *e2btest.Config) {
		c.First = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost && r.URL.Path == "/v2/sandboxes" && r.Header.Get("Again") == "" {
				r.Header.Set("Again", "1")
				s.ServeHTTP(&deaf{header: http.Header{}}, r)
				panic(http.ErrAbortHandler) //nolint:forbidigo // the server's own way to break a connection off
			}
			return false
		}
	})
	_, err := open(t, s).Create(t.Context(), cove.NewID(), spec())
	if cove.CodeOf(err) != cove.Unavailable || cove.ReasonOf(err) != cove.ReasonConnection {
		t.Errorf("%v", err)
	}
	if left := s.Machines(); len(left) > 0 {
		t.Errorf("machines are left: %v", left)
	}
}

// deaf is an answer that nobody hears.
type deaf struct{ header http.Header }

func (d *deaf) Header() http.Header         { return d.header }
func (d *deaf) WriteHeader(int)             {}
func (d *deaf) Write(b []byte) (int, error) { return len(b), nil }
