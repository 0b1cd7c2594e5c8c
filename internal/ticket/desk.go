package ticket

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

// Desk takes tickets and says whom they act for. It is safe for concurrent use.
type Desk struct {
	book *Book
	who  func(ctx context.Context, name string) (cove.Principal, func(), error)
	used register
}

// NewDesk returns a desk for the tickets of a book. who returns the principal of
// a name as it is now, or Unauthenticated where it may do nothing any more, and a
// function for the end of its request.
func NewDesk(b *Book, who func(ctx context.Context, name string) (cove.Principal, func(), error)) *Desk {
	d := &Desk{book: b, who: who}
	if b.shared != nil {
		d.used = newTogether(b.shared)
	} else {
		d.used = newAlone(b.left)
	}
	return d
}

// scopes are what a ticket of a kind may use of its principal's scopes. A kind
// that is not here uses all.
var scopes = map[cove.GrantKind][]cove.Scope{
	cove.GrantDownload: {cove.ScopeFileRead}, cove.GrantUpload: {cove.ScopeFileWrite}, cove.GrantPort: {cove.ScopeExec},
}

// Redeem returns what a ticket of this kind grants and whom it acts for, and done
// for the end of the request, which is never nil. A ticket that is not good, or
// whose principal is not any more, is Unauthenticated. Looking at a login ticket
// does not use it up.
func (d *Desk) Redeem(ctx context.Context, text string, kind cove.GrantKind) (g cove.Grant, p cove.Principal, done func(), err error) {
	t, p, done, err := d.take(ctx, text, kind)
	return t.grant, p, done, err
}

func (d *Desk) take(ctx context.Context, text string, kind cove.GrantKind) (t ticket, p cove.Principal, done func(), err error) {
	nothing := func() {}
	t, err = d.book.read(text, kind)
	if err == nil {
		err = d.used.check(ctx, t)
	}
	if err != nil {
		return ticket{}, cove.Principal{}, nothing, err
	}
	p, done, err = d.who(ctx, t.grant.Principal)
	if err == nil && p.Tenant != t.grant.Tenant {
		done()
		err = bad()
	}
	if err != nil {
		return ticket{}, cove.Principal{}, nothing, err
	}
	if few, ok := scopes[kind]; ok {
		p.Scopes = narrowed(p, few)
	}
	return t, p, done, nil
}

// narrowed returns those scopes that p has.
func narrowed(p cove.Principal, few []cove.Scope) []cove.Scope {
	var both []cove.Scope
	for _, s := range few {
		if p.May(s) {
			both = append(both, s)
		}
	}
	return both
}

// Enter uses a login ticket up and returns the ticket of a browser that is signed
// in by it, with what it grants.
func (d *Desk) Enter(ctx context.Context, text string) (console string, g cove.Grant, err error) {
	t, _, done, err := d.take(ctx, text, cove.GrantLogin)
	if err != nil {
		return "", g, err
	}
	defer done()
	if err := d.used.use(ctx, t); err != nil {
		return "", g, err
	}
	g = cove.Grant{
		Kind: cove.GrantConsole, Principal: t.grant.Principal, Tenant: t.grant.Tenant,
		ExpiresAt: time.Now().Add(cove.ConsoleTTL).UTC().Truncate(time.Second),
	}
	console = d.book.Issue(g)
	in, err := d.book.read(console, cove.GrantConsole)
	if err == nil {
		err = d.used.enter(ctx, in)
	}
	if err != nil {
		return "", cove.Grant{}, err
	}
	return console, g, nil
}

// Leave signs a browser out: its ticket is good no more, whatever becomes of this
// process. On error it may be good again after a restart, or at other servers.
func (d *Desk) Leave(ctx context.Context, console string) error {
	t, err := d.book.read(console, cove.GrantConsole)
	if err != nil {
		return err
	}
	return d.used.leave(ctx, t)
}
