package e2bapi

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/intake"
)

// Config is what the handler needs. Platform, Authenticate, Owner, Key and Secret must
// be set; the rest has defaults.
type Config struct {
	// Platform returns the platform bound to a principal.
	Platform func(cove.Principal) cove.Platform
	// Authenticate returns whose key a call of the control API shows. done, if not
	// nil, is called when the request is over.
	Authenticate func(ctx context.Context, secret string) (p cove.Principal, done func(), err error)
	// Authorize returns the error of a call whose key lacks the scope for a verb, and has
	// it journaled, before the body is read. The default leaves it to Platform.
	Authorize func(ctx context.Context, p cove.Principal, session cove.ID, verbs ...cove.Verb) error
	// Bodies bounds the bodies that are in memory. The default is a budget of the
	// handler's own.
	Bodies *intake.Budget
	// Owner returns the caller that opened a session, as its key is now: calls that need
	// no token act for it. A session that is not there is NotFound.
	Owner func(ctx context.Context, id cove.ID) (p cove.Principal, done func(), err error)
	// Key returns the caller of this name, as its key is now: tokens of sandboxes and of
	// volumes name one. A key that was revoked or has expired is Unauthenticated.
	Key func(ctx context.Context, name string) (p cove.Principal, done func(), err error)
	// Holders yields a session and the name of a caller whose token of it a signature may
	// have been made with, for each that can be: of one session, or of all for id "". nil:
	// no signature is good.
	Holders func(ctx context.Context, id cove.ID) iter.Seq2[cove.ID, string]
	// CodeTemplate returns the template for clients of E2B's code interpreter, which
	// name its own. nil, and "": the one for everybody.
	CodeTemplate func() string
	// Secrets are the names of the operator's secrets that p may see. nil: none.
	Secrets func(p cove.Principal) []string
	// Watch, if not nil, returns a context for a request of p: it ends when p must
	// not go on, with an Unauthenticated cause that says why. stop is called when
	// the request is over.
	Watch func(ctx context.Context, p cove.Principal) (_ context.Context, stop func())
	// Secret is what tokens are made from. It must stay the same for as long as they
	// are to be good.
	Secret []byte
	// Domain is the name below which sandboxes have hosts, with a port if it is not
	// 443; "" means that headers alone tell sandboxes apart.
	Domain string
	// Public is where clients reach the control API that do not come by the domain: a
	// proxy may stand in between. nil: where they came to.
	Public *url.URL
	// Ports serves the other ports of sandboxes below the domain. nil: none is
	// reachable.
	Ports http.Handler
	// Network is the most that a sandbox may reach which clients open, copy or change:
	// cove.NetworkOpen unless it is set. A client that says nothing gets the open network
	// where that is allowed, and none otherwise.
	Network cove.NetworkMode
	// Policy is the command policy of sandboxes that name none; "" for none.
	Policy string
	// Mark tells what this server keeps for clients from what others behind the same
	// address do: ids of watchers and of builds end with a dot and it. "": there are no
	// others.
	Mark string
	// Elsewhere returns what hands requests on to the server with another mark. NotFound
	// says that it is gone. refuse answers where that server does not. It must be set
	// where Mark is.
	Elsewhere func(ctx context.Context, mark string, refuse func(http.ResponseWriter, *http.Request, error)) (http.Handler, error)
	// Uploads is the directory of files that clients send for builds of templates. They
	// have no name in it. The default is that for temporary files.
	Uploads string
	// Room returns the error of a disk that has no room for what clients send. The
	// default is that there always is.
	Room func() error
	// Begin is told of a request whose caller is known, with its route, and returns
	// the context to go on with. The default is the request's own.
	Begin func(r *http.Request, route string) context.Context
	// End is told how a request went. The default tells nobody.
	End func(ctx context.Context, e Ending)
	// Logger gets one line for each request, and the causes of errors. The default
	// throws them away.
	Logger *slog.Logger

	// Keepalive is how often a silent stream says that it lives, at most: 50 s.
	Keepalive time.Duration
	// BodyTime is how long the body of a call may take to arrive, where it is no file
	// and no stream: 30 s.
	BodyTime time.Duration
	// Stall is how long a client may neither send what it announced nor take what it
	// asked for before its connection is closed: 5 minutes.
	Stall time.Duration
}

// Ending is how a request went.
type Ending struct {
	Route  string
	Status int
	Err    error
	Took   time.Duration
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Authorize == nil {
		c.Authorize = func(context.Context, cove.Principal, cove.ID, ...cove.Verb) error { return nil }
	}
	if c.Bodies == nil {
		c.Bodies = intake.New()
	}
	if c.Room == nil {
		c.Room = func() error { return nil }
	}
	if c.Network == "" {
		c.Network = cove.NetworkOpen
	}
	if c.Keepalive <= 0 {
		c.Keepalive = 50 * time.Second
	}
	if c.BodyTime <= 0 {
		c.BodyTime = 30 * time.Second
	}
	if c.Stall <= 0 {
		c.Stall = 5 * time.Minute
	}
	return c
}
