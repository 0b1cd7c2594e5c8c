package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// Tickets takes what signed URLs and browsers that are signed in show.
type Tickets interface {
	// Redeem returns what a ticket of a kind grants and whom it acts for. done,
	// if not nil, is called when the request is over.
	Redeem(ctx context.Context, ticket string, kind cove.GrantKind) (g cove.Grant, p cove.Principal, done func(), err error)
	// Enter uses a login ticket up and returns that of a browser that is signed in.
	Enter(ctx context.Context, ticket string) (console string, g cove.Grant, err error)
	// Leave makes the ticket of a browser good no more.
	Leave(ctx context.Context, console string) error
}

// noTickets is where nobody signs anything: no ticket is good.
type noTickets struct{}

func (noTickets) Redeem(context.Context, string, cove.GrantKind) (g cove.Grant, p cove.Principal, done func(), err error) {
	return g, p, nil, noTicket()
}

func (noTickets) Enter(context.Context, string) (console string, g cove.Grant, err error) {
	return "", g, noTicket()
}

func (noTickets) Leave(context.Context, string) error { return noTicket() }

func noTicket() error {
	return cove.Errorf(cove.Unauthenticated, "this server has made no links, so none is good")
}

func linkRoutes() []route {
	const signed = "/api/signed/file"
	ticket := param{name: "ticket", kind: word, doc: "what the link was given"}
	return []route{
		{method: http.MethodPost, pattern: "/api/sandboxes/{id}/files/url", needs: []cove.Verb{cove.LinkDownload, cove.LinkUpload}, summary: "Make a link that reads or replaces a file without a key, for a while", deed: post(http.StatusCreated, (*call).linkFile)},
		{method: http.MethodPost, pattern: "/api/sandboxes/{id}/ports/{port}", needs: []cove.Verb{cove.LinkPort}, summary: "Make a link to what listens on a port inside, for a while", deed: post(http.StatusCreated, (*call).linkPort)},
		{method: http.MethodPost, pattern: "/api/login-links", needs: []cove.Verb{cove.LinkLogin}, summary: "Make a link that signs a browser in as you, once", deed: post(http.StatusCreated, (*call).linkLogin)},
		{
			method: http.MethodGet, pattern: signed, summary: "Read the file that a link is for, or a range of it", open: true, gives: octets,
			deed: deed{status: http.StatusOK, do: (*call).readSigned}, query: []param{ticket},
		},
		{method: http.MethodPut, pattern: signed, summary: "Replace the file that a link is for", open: true, takes: octets, deed: act((*call).writeSigned), query: []param{ticket}},
	}
}

func (c *call) linkFile(w wire.FileLinkRequest) (cove.Link, error) {
	if err := c.unkeyed("; a link that nobody uses is over by itself"); err != nil {
		return cove.Link{}, err
	}
	req, put, err := w.Cove(c.session())
	if err != nil {
		return cove.Link{}, err
	}
	if put {
		return linkAnswer(c.platform.Links().Upload(c.r.Context(), req))
	}
	return linkAnswer(c.platform.Links().Download(c.r.Context(), req))
}

func (c *call) linkPort(w wire.LinkRequest) (cove.Link, error) {
	if err := c.unkeyed("; a link that nobody uses is over by itself"); err != nil {
		return cove.Link{}, err
	}
	port, err := strconv.Atoi(c.r.PathValue("port"))
	if err != nil {
		return cove.Link{}, cove.InvalidField("port", "%.40q is not a port; use 1 to 65535", c.r.PathValue("port"))
	}
	ttl, err := w.TTL()
	if err != nil {
		return cove.Link{}, err
	}
	return linkAnswer(c.platform.Links().Port(c.r.Context(), cove.PortLink{Session: c.session(), Port: port, TTL: ttl}))
}

func (c *call) linkLogin(w wire.LinkRequest) (cove.Link, error) {
	if err := c.unkeyed("; a link that nobody uses is over by itself"); err != nil {
		return cove.Link{}, err
	}
	ttl, err := w.TTL()
	if err != nil {
		return cove.Link{}, err
	}
	return linkAnswer(c.platform.Links().Login(c.r.Context(), ttl))
}

func linkAnswer(l *cove.Link, err error) (cove.Link, error) {
	if err != nil {
		return cove.Link{}, err
	}
	return *l, nil
}

// redeem makes the request one of whom its ticket acts for, about the file that
// the ticket names and nothing else.
func (c *call) redeem(kind cove.GrantKind) (done func(), err error) {
	g, p, done, err := c.api.Tickets.Redeem(c.r.Context(), c.query.text("ticket"), kind)
	if done == nil {
		done = func() {}
	}
	if err != nil {
		return done, err
	}
	c.who, c.platform = p, c.api.Platform(p)
	over, redeemed := c.watched(), done
	c.begun()
	c.r.SetPathValue("id", string(g.Session))
	c.query = query{url.Values{"path": {g.Path}}}
	return func() { over(); redeemed() }, nil
}

func (c *call) readSigned() error {
	done, err := c.redeem(cove.GrantDownload)
	defer done()
	if err != nil {
		return err
	}
	if c.r.Method == http.MethodHead {
		return c.headFile()
	}
	return c.readFile()
}

func (c *call) writeSigned() error {
	done, err := c.redeem(cove.GrantUpload)
	defer done()
	if err != nil {
		return err
	}
	return c.writeFile()
}
