package platformtest

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
)

func linkCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.LinkDownload: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Links().Download(ctx, cove.FileLink{Session: at.session, Path: "kept"}))
		}},
		cove.LinkUpload: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Links().Upload(ctx, cove.FileLink{Session: at.session, Path: "kept"}))
		}},
		cove.LinkPort: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Links().Port(ctx, cove.PortLink{Session: at.session, Port: 8080}))
		}},
		cove.LinkLogin: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Links().Login(ctx, 0))
		}},
	}
}

func linkCases() []testCase {
	return []testCase{
		{"unsupported", linksUnsupported},
		{"download", linkDownload},
		{"upload", linkUpload},
		{"port", linkPort},
		{"login", linkLogin},
		{"bounds", linkBounds},
		{"end_with_their_session", linksEndWithSession},
		{"end_with_their_key", linksEndWithKey},
		{"use_only_their_scope", linksUseTheirScope},
		{"are_in_no_journal", linksInNoJournal},
	}
}

// linked skips where nobody serves links.
func (r *rig) linked() *http.Client {
	r.t.Helper()
	c := r.h.Extras().Links
	if c == nil {
		r.t.Skip("nobody serves links here")
	}
	return c
}

func linksUnsupported(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	if r.h.Extras().Links != nil {
		t.Skip("links are served here")
	}
	p := r.user("acme")
	at := target{session: r.session(p, cove.Spec{}).ID}
	for v, c := range linkCalls() {
		if err := c.do(r.ctx, p, at); cove.CodeOf(err) != cove.Unsupported {
			t.Errorf("%s: %v", v, err)
		}
	}
}

// fetch asks for a URL and returns the status and the body.
func (r *rig) fetch(c *http.Client, method, address, body string) (status int, text string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.ctx, method, address, strings.NewReader(body))
	r.must(err, "make a request")
	resp, err := c.Do(req)
	r.must(err, "follow a link")
	defer resp.Body.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(resp.Body)
	r.must(err, "read the answer")
	return resp.StatusCode, string(data)
}

// wantStatus follows a link and demands a status.
func (r *rig) wantStatus(c *http.Client, method, address string, want int) {
	r.t.Helper()
	if got, text := r.fetch(c, method, address, "x"); got != want {
		r.t.Errorf("%s answers %d, want %d: %.300s", method, got, want, text)
	}
}

func (r *rig) link(l *cove.Link, err error) string {
	r.t.Helper()
	r.must(err, "make a link")
	if u, err := url.Parse(l.URL); err != nil || u.Host == "" || !l.ExpiresAt.After(time.Now()) {
		r.t.Fatalf("the link is %+v", l)
	}
	return l.URL
}

func linkDownload(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	c := r.linked()
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.write(p, id, "dir/a file", "content")
	r.write(p, id, "other", "secret")
	at := r.link(p.Links().Download(r.ctx, cove.FileLink{Session: id, Path: "dir/a file"}))
	for range 2 {
		status, text := r.fetch(c, http.MethodGet, at, "")
		same(t, "the answer", []any{status, text}, []any{200, "content"})
	}
	status, text := r.fetch(c, http.MethodHead, at, "")
	same(t, "the answer to HEAD", []any{status, text}, []any{200, ""})
	// It is for that file, and for reading it.
	r.wantStatus(c, http.MethodPut, at, 401)
	r.wantStatus(c, http.MethodGet, at+"&path=other", 400)
	r.wantStatus(c, http.MethodGet, at[:len(at)-1], 401)
	r.wantStatus(c, http.MethodGet, strings.Split(at, "?")[0], 401)
	same(t, "the file", r.read(p, id, "dir/a file"), "content")
	r.must(p.Files(id).Remove(r.ctx, "dir/a file"), "remove")
	r.wantStatus(c, http.MethodGet, at, 404)
}

func linkUpload(t *testing.T, s *suite) {
	r := s.start(t, Options{MaxFileSize: cove.KiB})
	c := r.linked()
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	at := r.link(p.Links().Upload(r.ctx, cove.FileLink{Session: id, Path: "up", TTL: time.Minute}))
	r.wantStatus(c, http.MethodPut, at, 204)
	same(t, "the file", r.read(p, id, "up"), "x")
	if status, text := r.fetch(c, http.MethodPut, at, strings.Repeat("x", 1025)); status != 413 {
		t.Errorf("one byte too many answers %d %s", status, text)
	}
	same(t, "the file", r.read(p, id, "up"), "x")
	r.wantStatus(c, http.MethodGet, at, 401)
}

func linkPort(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	c := r.linked()
	r.needs(cove.PowerDial)
	serve := r.h.Extras().Serve
	if serve == nil {
		t.Skip("no program that listens is known here")
	}
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	at := r.link(p.Links().Port(r.ctx, cove.PortLink{Session: id, Port: 8080}))
	jar, err := cookiejar.New(nil)
	r.must(err, "make a jar")
	browser := *c
	browser.Jar = jar
	r.wantStatus(&browser, http.MethodGet, at, 502) // nobody listens yet
	pid := r.background(p, id, cove.ExecRequest{Line: serve(8080, "hello")})
	r.eventually("the preview answers", func() bool {
		status, text := r.fetch(&browser, http.MethodGet, strings.Split(at, "?")[0], "")
		return status == 200 && text == "hello"
	})
	r.wantStatus(c, http.MethodGet, strings.Split(at, "?")[0], 401) // without the cookie
	r.must(p.Processes(id).Signal(r.ctx, pid, "KILL"), "signal")
	r.wait(p, id, pid)
}

func linkLogin(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	c := r.linked()
	p := r.user("acme")
	at := r.link(p.Links().Login(r.ctx, 0))
	r.wantStatus(c, http.MethodGet, at, 200)
	r.wantStatus(c, http.MethodGet, at[:len(at)-1], 401)
}

func linkBounds(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	r.linked()
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	for _, ttl := range []time.Duration{-time.Second, time.Millisecond, cove.MaxLinkTTL + time.Second} {
		_, err := p.Links().Download(r.ctx, cove.FileLink{Session: id, Path: "a", TTL: ttl})
		wantCode(t, err, cove.Invalid)
		_, err = p.Links().Port(r.ctx, cove.PortLink{Session: id, Port: 80, TTL: ttl})
		wantCode(t, err, cove.Invalid)
		_, err = p.Links().Login(r.ctx, ttl)
		wantCode(t, err, cove.Invalid)
	}
	_, err := p.Links().Login(r.ctx, cove.MaxLoginTTL+time.Second)
	wantCode(t, err, cove.Invalid)
	for _, name := range []string{"", "../etc/passwd", "/proc/self/root", "a\x00b"} {
		_, err := p.Links().Upload(r.ctx, cove.FileLink{Session: id, Path: name})
		wantCode(t, err, cove.Invalid)
	}
	for _, port := range []int{0, -1, 65536} {
		_, err := p.Links().Port(r.ctx, cove.PortLink{Session: id, Port: port})
		wantCode(t, err, cove.Invalid)
	}
}

func linksEndWithSession(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	c := r.linked()
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.write(p, id, "a", "x")
	at := r.link(p.Links().Download(r.ctx, cove.FileLink{Session: id, Path: "a"}))
	r.wantStatus(c, http.MethodGet, at, 200)
	r.stop(p, id)
	r.wantStatus(c, http.MethodGet, at, 409)
	r.closeNow(p, id)
	r.wantStatus(c, http.MethodGet, at, 404)
}

// linksEndWithKey: a link is good as long as the key is that it was made with.
func linksEndWithKey(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	c := r.linked()
	admin := r.admin()
	id := r.session(admin, cove.Spec{}).ID
	r.write(admin, id, "a", "x")
	at := r.link(admin.Links().Download(r.ctx, cove.FileLink{Session: id, Path: "a"}))
	login := r.link(admin.Links().Login(r.ctx, 0))
	r.wantStatus(c, http.MethodGet, at, 200)
	mine := r.get(admin, id).Owner
	other := r.admin()
	r.must(other.Admin().RevokeKey(r.ctx, cove.ID(mine)), "revoke")
	r.wantStatus(c, http.MethodGet, at, 401)
	r.wantStatus(c, http.MethodGet, login, 401)
}

// linksUseTheirScope: what a key may do beside is not in the link, and what it may
// not do cannot be.
func linksUseTheirScope(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	c := r.linked()
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.write(p, id, "a", "x")
	reader := r.as(cove.Principal{Name: "reader", Tenant: "acme", Scopes: []cove.Scope{cove.ScopeFileRead}})
	at := r.link(reader.Links().Download(r.ctx, cove.FileLink{Session: id, Path: "a"}))
	r.wantStatus(c, http.MethodGet, at, 200)
	_, err := reader.Links().Upload(r.ctx, cove.FileLink{Session: id, Path: "a"})
	wantCode(t, err, cove.Denied)
	_, err = reader.Links().Port(r.ctx, cove.PortLink{Session: id, Port: 80})
	wantCode(t, err, cove.Denied)
}

func linksInNoJournal(t *testing.T, s *suite) {
	r := s.start(t, Options{})
	c := r.linked()
	p := r.user("acme")
	id := r.session(p, cove.Spec{}).ID
	r.write(p, id, "hidden-name", "x")
	at := r.link(p.Links().Download(r.ctx, cove.FileLink{Session: id, Path: "hidden-name"}))
	r.wantStatus(c, http.MethodGet, at, 200)
	u, err := url.Parse(at)
	r.must(err, "parse a link")
	ticket := u.Query().Get("ticket")
	made := 0
	for _, e := range all(r, r.admin().Admin().Events(r.ctx, cove.EventFilter{Tenant: "acme"})) {
		if e.Kind == string(cove.LinkDownload) {
			made++
		}
		if text := string(e.Data); strings.Contains(text, ticket) || strings.Contains(text, "hidden-name") {
			t.Errorf("the journal has %s", text)
		}
	}
	if made != 2 {
		t.Errorf("the journal has %d lines about the link, want its intent and its outcome", made)
	}
}

type linkRecorder struct {
	in  cove.Links
	rec *record
}

func (r linkRecorder) Download(ctx context.Context, req cove.FileLink) (*cove.Link, error) {
	return noted[*cove.Link](r.rec, cove.LinkDownload)(r.in.Download(ctx, req))
}

func (r linkRecorder) Upload(ctx context.Context, req cove.FileLink) (*cove.Link, error) {
	return noted[*cove.Link](r.rec, cove.LinkUpload)(r.in.Upload(ctx, req))
}

func (r linkRecorder) Port(ctx context.Context, req cove.PortLink) (*cove.Link, error) {
	return noted[*cove.Link](r.rec, cove.LinkPort)(r.in.Port(ctx, req))
}

func (r linkRecorder) Login(ctx context.Context, ttl time.Duration) (*cove.Link, error) {
	return noted[*cove.Link](r.rec, cove.LinkLogin)(r.in.Login(ctx, ttl))
}
