package preview

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// param is the name of a ticket in a query.
const param = "cove_ticket"

// maxCookies bounds how many cookies of our name are looked at: pages of other
// previews can set some for all of a domain, but cannot make them good.
const maxCookies = 8

// visit is one request to a preview.
type visit struct {
	*Handler

	w  *answer
	r  *http.Request
	at place

	ticket string
	linked bool // the ticket is in the URL
	grant  cove.Grant
	who    cove.Principal
}

// cookieName is that of the cookie of a preview. With https no other host, of the
// same domain or not, can set it.
func (h *Handler) cookieName() string {
	if h.cfg.Secure {
		return "__Host-cove_preview"
	}
	return "cove_preview"
}

func (v *visit) serve() error {
	if v.r.Method == http.MethodConnect || v.r.Method == http.MethodTrace {
		return cove.Errorf(cove.Invalid, "a preview has no method %s", v.r.Method)
	}
	admit := v.redeem
	if v.cfg.Open != nil {
		admit = v.open
	}
	done, err := admit()
	if err != nil {
		return err
	}
	defer done()
	if v.cfg.Open == nil && v.linked && (v.r.Method == http.MethodGet || v.r.Method == http.MethodHead) {
		v.welcome()
		return nil
	}
	if v.cfg.Open == nil && !v.linked && v.foreign() {
		return cove.Errorf(cove.Denied, "another site made this browser send the request, and a preview answers its own pages only")
	}
	leave, err := v.enter(v.at.session)
	if err != nil {
		return err
	}
	defer leave()
	return v.pass()
}

// redeem finds the ticket of a request.
func (v *visit) redeem() (done func(), err error) {
	var shown []string
	if texts, ok := v.r.URL.Query()[param]; ok {
		shown, v.linked = texts[:1], true
	} else {
		for _, c := range v.r.CookiesNamed(v.cookieName()) {
			shown = append(shown, c.Value)
		}
	}
	err = cove.Errorf(cove.Unauthenticated, "this preview is open to those who have a link to it").
		Remedy("make one with: cove sandbox port %s %d", v.at.session, v.at.port)
	for _, text := range shown[:min(len(shown), maxCookies)] {
		g, p, done, bad := v.cfg.Redeem(v.r.Context(), text, cove.GrantPort)
		if done == nil {
			done = func() {}
		}
		if bad != nil {
			err = bad
			continue
		}
		if (place{g.Session, g.Port}) != v.at {
			done()
			continue
		}
		v.ticket, v.grant, v.who = text, g, p
		return done, nil
	}
	return nil, err
}

// open finds whom a request without a ticket acts for.
func (v *visit) open() (done func(), err error) {
	v.who, done, err = v.cfg.Open(v.r.Context(), v.at.session, v.at.port, v.r)
	if done == nil {
		done = func() {}
	}
	if err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// welcome turns the ticket of a link into a cookie.
func (v *visit) welcome() {
	http.SetCookie(v.w, &http.Cookie{ //nolint:gosec // Secure where there is https
		Name: v.cookieName(), Value: v.ticket, Path: "/", Expires: v.grant.ExpiresAt, HttpOnly: true, Secure: v.cfg.Secure,
		// Not Strict: the browser comes here by a link from elsewhere, and a strict
		// cookie would not be sent with where it is sent on to.
		SameSite: http.SameSiteLaxMode,
	})
	// One slash, or the path would be read as another host.
	to := "/" + strings.TrimLeft(v.r.URL.EscapedPath(), "/")
	if rest := withoutTicket(v.r.URL.RawQuery); rest != "" {
		to += "?" + rest
	}
	head := v.w.Header()
	head.Set("Location", to)
	head.Set("Cache-Control", "no-store")
	head.Set("Referrer-Policy", "no-referrer")
	v.w.WriteHeader(http.StatusSeeOther)
}

// withoutTicket takes our parameter out of a query and leaves the rest as it is.
func withoutTicket(raw string) string {
	var kept []string
	for pair := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil && plain == param {
			continue
		}
		kept = append(kept, pair)
	}
	return strings.Join(kept, "&")
}

// foreign reports whether a page of another origin made the browser send the
// request, and not by a person following a link. The cookie comes along with what
// other previews of the domain ask for, so they must be told apart here. Pages of
// the same session are one program's and may.
func (v *visit) foreign() bool {
	head := v.r.Header
	site := head.Get("Sec-Fetch-Site")
	if site == "same-origin" || site == "none" {
		return false
	}
	reads := v.r.Method == http.MethodGet || v.r.Method == http.MethodHead
	if reads && head.Get("Sec-Fetch-Mode") == "navigate" && head.Get("Sec-Fetch-Dest") == "document" {
		return false
	}
	origin := head.Get("Origin")
	if origin == "" {
		return site != "" // neither: not a browser, or one from before 2023
	}
	u, err := url.Parse(origin)
	if err != nil {
		return true
	}
	from, ok := v.find(u.Host)
	return !ok || from.session != v.at.session
}

var (
	errQuiet = errors.New("nothing went over the connection for too long")
	errOver  = errors.New("the link has expired")
)

// pass lets the request in and the answer out.
func (v *visit) pass() error {
	ctx := v.r.Context()
	if v.cfg.Open == nil {
		var over context.CancelFunc
		ctx, over = context.WithDeadlineCause(ctx, v.grant.ExpiresAt, errOver)
		defer over()
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	inside, err := v.cfg.Platform(v.who).Ports(v.at.session).Dial(ctx, v.at.port)
	if err != nil {
		return err
	}
	defer inside.Close() //nolint:errcheck // both ways are over
	quiet := time.AfterFunc(v.cfg.Quiet, func() { end(errQuiet) })
	defer quiet.Stop()
	v.w.beat = func() { quiet.Reset(v.cfg.Quiet) }
	var look sync.WaitGroup
	look.Go(func() { v.recheck(ctx, end) })
	defer look.Wait()
	defer end(nil)
	// What waits for a client that neither sends nor takes ends with the context.
	stop := context.AfterFunc(ctx, v.w.cut)
	defer stop()
	v.proxy(&watched{Conn: inside, stall: v.cfg.Stall, beat: v.w.beat}).ServeHTTP(v.w, v.w.patient(v.r.WithContext(ctx)))
	return nil
}

// good asks again whether the request may go on.
func (v *visit) good(ctx context.Context) error {
	var done func()
	var err error
	if v.cfg.Open != nil {
		_, done, err = v.cfg.Open(ctx, v.at.session, v.at.port, v.r)
	} else {
		_, _, done, err = v.cfg.Redeem(ctx, v.ticket, cove.GrantPort)
	}
	if done != nil {
		done()
	}
	return err
}

// recheck ends the visit when it is let in no more: the key that it acts for may be
// revoked while a WebSocket is open.
func (v *visit) recheck(ctx context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(v.cfg.Recheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := v.good(ctx); cove.CodeOf(err) == cove.Unauthenticated {
			end(err)
			return
		}
	}
}
