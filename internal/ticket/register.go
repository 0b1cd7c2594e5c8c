package ticket

import "context"

// register knows which tickets are good no more although their time is not up. It is
// safe for concurrent use.
type register interface {
	// check is Unauthenticated for a ticket that is good no more.
	check(ctx context.Context, t ticket) error
	// use uses a login ticket up. Whoever comes second is Unauthenticated.
	use(ctx context.Context, t ticket) error
	// enter notes that a browser is signed in.
	enter(ctx context.Context, t ticket) error
	// leave notes that a browser signed out; once more is not an error.
	leave(ctx context.Context, t ticket) error
}

// alone is the register of a server that has no others: used tickets are in memory,
// and those who signed out in a file, if there is one.
type alone struct {
	used spent
	left *left // nil where sign-ins end with this process
}

func newAlone(l *left) *alone {
	a := &alone{left: l}
	if l != nil {
		for _, t := range l.all() {
			a.used.put(t)
		}
	}
	return a
}

func (a *alone) check(_ context.Context, t ticket) error {
	if a.used.contains(t) {
		return bad()
	}
	return nil
}

func (a *alone) use(_ context.Context, t ticket) error {
	first, err := a.used.add(t)
	if err == nil && !first {
		err = bad() // another request was faster
	}
	return err
}

func (a *alone) enter(context.Context, ticket) error { return nil }

func (a *alone) leave(_ context.Context, t ticket) error {
	if _, err := a.used.add(t); err != nil || a.left == nil {
		return err
	}
	return a.left.add(t)
}
