package httpapi

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// Console has the pages of the web console.
type Console interface {
	// Serve answers with a file of the console, or with its page where name is "".
	// It reports whether it is there, and has answered nothing if not.
	Serve(w http.ResponseWriter, r *http.Request, name string) bool
}

// maxLoginForm bounds what a browser sends to sign in: a ticket.
const maxLoginForm = 4 << 10

func consoleRoutes() []route {
	ticket := param{name: "ticket", kind: word, doc: "what the link was given"}
	return []route{
		{
			method: http.MethodGet, pattern: "/login", summary: "Look at a login link: a page that says whom it signs in, and a button", open: true, gives: "text/html",
			deed: deed{status: http.StatusOK, do: (*call).loginPage}, query: []param{ticket},
		},
		{
			method: http.MethodPost, pattern: "/login", summary: "Use a login link up: the answer sets a cookie", open: true, takes: "application/x-www-form-urlencoded",
			deed: deed{status: http.StatusSeeOther, do: (*call).login},
		},
		{method: http.MethodGet, pattern: "/api/whoami", summary: "See who you are and what you may do", deed: get((*call).whoami)},
		{
			method: http.MethodGet, pattern: "/assets/{file}", summary: "Get a file of the web console", open: true, gives: octets,
			deed: deed{status: http.StatusOK, do: (*call).asset},
		},
		{method: http.MethodPost, pattern: "/logout", summary: "Sign the browser out", deed: act((*call).logout)},
	}
}

// cookieName is that of the cookie of a browser that is signed in. With https no
// other host, of the same domain or not, can set it.
func (a *api) cookieName() string {
	if a.Secure {
		return "__Host-cove_console"
	}
	return "cove_console"
}

// console returns the ticket of a browser that is signed in. Where a key is shown
// too, the key counts; two of our cookies are ambiguous and count as none.
func (c *call) console() (ticket string, ok bool) {
	h := c.r.Header
	if len(h.Values("Authorization"))+len(h.Values("X-Api-Key")) > 0 {
		return "", false
	}
	found := c.r.CookiesNamed(c.api.cookieName())
	if len(found) != 1 {
		return "", false
	}
	return found[0].Value, true
}

// authenticate returns who sent the request: by a key, or by the cookie of a
// browser that is signed in.
func (c *call) authenticate() (cove.Principal, func(), error) {
	ticket, ok := c.console()
	if !ok {
		return c.api.Authenticate(c.r)
	}
	if err := sameOrigin(c.r); err != nil {
		return cove.Principal{}, nil, err
	}
	_, p, done, err := c.api.Tickets.Redeem(c.r.Context(), ticket, cove.GrantConsole)
	if cove.CodeOf(err) == cove.Unauthenticated {
		err = cove.Wrap(cove.Unauthenticated, err, "this browser is not signed in any more").Remedy("open a new login link; cove login-link makes one")
	}
	return p, done, err
}

// sameOrigin refuses what another site, or another port of this host, made a
// browser send. A browser sends cookies with such requests, so with cookies it
// must be known of every one: of reads, because a WebSocket is one.
func sameOrigin(r *http.Request) error {
	probe := *r
	probe.Method = http.MethodPost // reads are not looked at
	if err := http.NewCrossOriginProtection().Check(&probe); err != nil {
		return cove.Wrap(cove.Denied, err, "another site made this browser send the request, so its sign-in does not count").Reason("cross_origin")
	}
	return nil
}

const loginForm = `<!doctype html>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sign in to Cove</title>
<p>This link signs this browser in to Cove on %s as <b>%s</b> of the tenant <b>%s</b>, once.</p>
<form method="post" action="login"><input type="hidden" name="ticket" value="%s"><button>Sign in</button></form>
`

// loginPage does not use the link up: programs that look at links before people
// do must not, and nobody must be signed in by a link that somebody else sent
// without a word.
func (c *call) loginPage() error {
	ticket := c.query.text("ticket")
	_, p, done, err := c.api.Tickets.Redeem(c.r.Context(), ticket, cove.GrantLogin)
	if done != nil {
		defer done()
	}
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "same-origin")
	c.deadline()
	_, _ = fmt.Fprintf(c.w, loginForm, html.EscapeString(c.r.Host), html.EscapeString(p.Name), html.EscapeString(p.Tenant), html.EscapeString(ticket)) // the client may be gone
	return nil
}

func (c *call) login() error {
	if err := sameOrigin(c.r); err != nil {
		return err
	}
	body, err := c.whole(maxLoginForm)
	if err != nil {
		return err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return cove.Wrap(cove.Invalid, err, "the form is malformed; send ticket=…")
	}
	ticket, g, err := c.api.Tickets.Enter(c.r.Context(), form.Get("ticket"))
	if err != nil {
		return err
	}
	c.setCookie(ticket, g.ExpiresAt)
	c.w.Header().Set("Location", "./")
	c.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// setCookie gives the browser a ticket; one that has expired takes it away.
func (c *call) setCookie(ticket string, until time.Time) {
	http.SetCookie(c.w, &http.Cookie{ //nolint:gosec // Secure where there is https
		Name: c.api.cookieName(), Value: ticket, Path: "/", Expires: until, HttpOnly: true, Secure: c.api.Secure, SameSite: http.SameSiteStrictMode,
	})
}

func (c *call) logout() error {
	ticket, ok := c.console()
	if !ok {
		return cove.Errorf(cove.Conflict, "a key was shown, and only browsers sign out").Remedy("revoke the key to end it")
	}
	if err := c.api.Tickets.Leave(c.r.Context(), ticket); err != nil {
		return err
	}
	c.setCookie("", time.Unix(1, 0))
	return nil
}

// asset answers with what the page of the console is made of.
func (c *call) asset() error {
	c.deadline()
	if c.api.Console == nil || !c.api.Console.Serve(c.w, c.r, c.r.PathValue("file")) {
		return noRoute(c.r)
	}
	return nil
}

// whoami answers for anybody who is known, whatever they may do.
func (c *call) whoami() (wire.Identity, error) { return wire.IdentityOf(c.who), nil }

// identity says who sent the request, for the front page.
func (c *call) identity() string {
	who, done, err := c.authenticate()
	if done != nil {
		defer done()
	}
	if err != nil {
		return "Show your key with: Authorization: Bearer <key>\nA browser signs in with a link that cove login-link makes.\n"
	}
	c.who = who
	scopes := make([]string, len(who.Scopes))
	for i, s := range who.Scopes {
		scopes[i] = string(s)
	}
	return fmt.Sprintf("You are %s of the tenant %s, with the scopes: %s\n", who.Name, who.Tenant, strings.Join(scopes, " "))
}
