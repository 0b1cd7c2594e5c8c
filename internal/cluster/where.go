package cluster

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/placement"
)

// mostHops is how often a call follows what it is about from node to node.
const mostHops = 4

// where returns the name of the node to ask about a session. What nobody has, or is
// not the caller's, this node's own engine has the words for.
func (v view) where(ctx context.Context, id cove.ID) (string, error) {
	m := v.m
	if e := m.engine.Load(); v.here || !id.Valid() || e == nil || e.Holds(id) {
		return m.cfg.Node, nil
	}
	if node, ok := m.known.get(id); ok {
		return node, nil
	}
	s, err := m.cfg.Directory.Locate(ctx, id)
	switch {
	case cove.CodeOf(err) == cove.NotFound && !v.home:
		if region, err := v.lookAbroad(ctx, id); region != "" || err != nil {
			return region, err
		}
		return m.cfg.Node, nil
	case cove.CodeOf(err) == cove.NotFound:
		return m.cfg.Node, nil
	case err != nil:
		return "", err
	case s.Tenant != v.p.Tenant || s.State == cove.Ended:
		return m.cfg.Node, nil
	case s.Node == "":
		return m.placeStopped(s)
	}
	m.known.put(id, s.Node)
	return s.Node, nil
}

// placeStopped chooses a node for a session that is nobody's.
func (m *Member) placeStopped(s *cove.Session) (string, error) {
	order, err := placement.Order(m.members(), wants(s.Spec, s.Memory), rand.IntN)
	if err != nil {
		return "", err
	}
	return order[0].ID, nil
}

// at returns the platform that a node has for the caller.
func (v view) at(ctx context.Context, node string) (cove.Platform, error) {
	m := v.m
	if node == m.cfg.Node {
		if err := m.mayServe(); err != nil {
			return nil, err
		}
		return m.engine.Load().As(v.p), nil
	}
	if name, ok := strings.CutPrefix(node, inRegion); ok {
		if r := m.regions.named(name); r != nil {
			return v.abroad(r)
		}
	}
	n, ok := living(m.members(), node)
	if !ok { // it may have come since
		n, ok = living(m.membersNow(ctx), node)
	}
	if !ok {
		return nil, errNotKnown
	}
	return m.peers.as(n, v.p)
}

// errNotKnown says that a node is gone, or was never there: nobody was asked.
var errNotKnown = errors.New("the node is not there")

// living finds a node that is not gone.
func living(nodes []cove.Node, name string) (cove.Node, bool) {
	i := slices.IndexFunc(nodes, func(n cove.Node) bool { return n.ID == name && n.State != cove.NodeGone })
	if i < 0 {
		return cove.Node{}, false
	}
	return nodes[i], true
}

// away is the answer where the node that has something cannot be asked.
func away(node string, err error) error {
	return cove.Wrap(cove.Unavailable, err, "node %s, which has it, cannot be reached now", node).Reason(cove.ReasonNodeAway).
		With("retry_after", retrySoon).With("node", node).Remedy("try again in a moment; if the node is gone, the answer says so then")
}

// unanswered is the answer where a node was asked and what it answered did not come:
// what changes something may have been done, and a caller that is told to try again would do it
// twice.
func (v view) unanswered(node string, err error) error {
	if !v.changes {
		return away(node, err)
	}
	where := "node " + node
	if region, abroad := strings.CutPrefix(node, inRegion); abroad {
		node, where = "", "region "+region
	}
	e := cove.Wrap(cove.Unavailable, err, "the request was sent to %s, whose answer did not come: it may have been done, in part or not at all", where)
	if node != "" {
		e = e.With("node", node)
	}
	return e.Reason(cove.ReasonOutcomeUnknown).
		Remedy("do not repeat it yet: look at what it changes, such as the files that it writes, and repeat it only if nothing of that is there")
}

// follows returns the node that err says has it, and whether it says so; "" is nobody.
func follows(err error) (node string, ok bool) {
	if cove.ReasonOf(err) != cove.ReasonElsewhere {
		return "", false
	}
	e, _ := errors.AsType[*cove.Error](err)
	node, _ = e.Details["node"].(string)
	return node, true
}

// aboutSession reports whether err, which says that something is elsewhere, is about a
// session: it may name another one, which holds the user and thread that were asked for.
func aboutSession(err error, id cove.ID) bool {
	e, _ := errors.AsType[*cove.Error](err)
	other, named := e.Details["session_id"].(string)
	return !named || cove.ID(other) == id
}

// broke reports whether a call to a node got no answer of Cove's.
func broke(err error) bool {
	return cove.CodeOf(err) == cove.Unavailable && cove.ReasonOf(err) == cove.ReasonConnection
}

// lost words a call that got no answer. Where it never reached the node, that may be
// gone by now, which the directory knows, and then the session is, or it is another's or
// nobody's, who is to be asked. Otherwise what was asked may have been done, and nobody
// must do it again because of the answer.
func (v view) lost(ctx context.Context, id cove.ID, node string, err error) (again bool, _ error) {
	v.m.known.forget(id)
	if r := v.m.regions.named(strings.TrimPrefix(node, inRegion)); r != nil && strings.HasPrefix(node, inRegion) {
		r.turn.Add(1)
		if v.changes && !notSent(err) {
			return false, v.unanswered(node, err)
		}
		return false, farAway(r, err)
	}
	if !notSent(err) {
		return false, v.unanswered(node, err)
	}
	s, lerr := v.m.cfg.Directory.Locate(ctx, id)
	switch {
	case cove.CodeOf(lerr) == cove.NotFound, lerr == nil && s.Tenant == v.p.Tenant && s.State == cove.Ended:
		if _, gerr := v.m.engine.Load().As(v.p).Sessions().Get(ctx, id); gerr != nil {
			return false, gerr
		}
	case lerr != nil || s.Tenant != v.p.Tenant:
	case s.Node != node:
		return !v.here, away(node, err)
	}
	return false, away(node, err)
}

// settle turns what a node answered about a session into what the caller is told, or
// says that another one is to be asked.
func (v view) settle(ctx context.Context, id cove.ID, node string, err error) (again bool, _ error) {
	if err == nil {
		return false, nil
	}
	if next, ok := follows(err); ok && aboutSession(err, id) {
		v.m.known.forget(id)
		if next != "" && next != v.m.cfg.Node {
			v.m.known.put(id, next)
		}
		return !v.here, err
	}
	if node != v.m.cfg.Node {
		if broke(err) {
			return v.lost(ctx, id, node, err)
		}
		if cove.CodeOf(err) == cove.NotFound {
			v.m.known.forget(id)
		}
	}
	return false, err
}

// moving is the answer to who followed a session and never found it.
func moving(err error) error {
	return cove.Wrap(cove.Unavailable, err, "the session is moving from one node to another").Reason(cove.ReasonNodeAway).
		With("retry_after", 1).Remedy("try again in a moment")
}

// on asks the node that has a session.
func on[T any](ctx context.Context, v view, id cove.ID, do func(cove.Platform) (T, error)) (T, error) {
	return onWith(ctx, v, id, nil, do)
}

// onWith is on for what reads from the caller, which can be asked once only where
// something was read.
func onWith[T any](ctx context.Context, v view, id cove.ID, in *input, do func(cove.Platform) (T, error)) (out T, err error) {
	for range mostHops {
		var node string
		if node, err = v.where(ctx, id); err != nil {
			return out, err
		}
		var got T
		var again bool
		if got, again, err = askAt(ctx, v, id, node, do); !again {
			return got, err
		}
		if v.here || !in.rewind() {
			break
		}
	}
	return out, moving(err)
}

// askAt asks one node about a session, and says whether another one is to be asked.
func askAt[T any](ctx context.Context, v view, id cove.ID, node string, do func(cove.Platform) (T, error)) (out T, again bool, err error) {
	at, err := v.at(ctx, node)
	switch {
	case err != nil && node != v.m.cfg.Node:
		again, err = v.lost(ctx, id, node, err)
		return out, again, err
	case err != nil:
		return out, false, err
	}
	out, err = do(at)
	again, err = v.settle(ctx, id, node, err)
	return out, again, err
}

// done is on for what has no answer but its error.
func done(ctx context.Context, v view, id cove.ID, do func(cove.Platform) error) error {
	return doneWith(ctx, v, id, nil, do)
}

func doneWith(ctx context.Context, v view, id cove.ID, in *input, do func(cove.Platform) error) error {
	_, err := onWith(ctx, v, id, in, func(p cove.Platform) (struct{}, error) { return struct{}{}, do(p) })
	return err
}

// each is on for lists: the first element decides who is asked.
func each[T any](ctx context.Context, v view, id cove.ID, do func(cove.Platform) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		begun := false
		_, err := on(ctx, v, id, func(p cove.Platform) (struct{}, error) {
			for item, err := range do(p) {
				if err != nil && !begun {
					return struct{}{}, err
				}
				begun = true
				if !yield(item, err) {
					return struct{}{}, nil
				}
			}
			return struct{}{}, nil
		})
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// chase asks a node for what has no session, and follows where that says.
func chase[T any](ctx context.Context, v view, node string, do func(cove.Platform) (T, error)) (out T, err error) {
	for range mostHops {
		var at cove.Platform
		at, err = v.at(ctx, node)
		if errors.Is(err, errNotKnown) {
			err = away(node, err)
		}
		if err != nil {
			return out, err
		}
		var got T
		got, err = do(at)
		next, ok := follows(err)
		switch {
		case ok && !v.here && next != "":
			node = next
			continue
		case node != v.m.cfg.Node && broke(err) && notSent(err):
			return out, away(node, err)
		case node != v.m.cfg.Node && broke(err):
			return out, v.unanswered(node, err)
		}
		return got, err
	}
	return out, moving(err)
}

// input is what a call reads from its caller. Whoever is asked first may still read
// when another is: of two, only one ever gets something.
type input struct {
	from io.Reader

	mu   sync.Mutex
	turn int  // guarded by mu; whose it is
	read bool // guarded by mu; something was
}

// turn is the input for one who is asked.
type turn struct {
	in     *input
	number int
}

// Read implements [io.Reader].
func (t turn) Read(p []byte) (int, error) {
	t.in.mu.Lock()
	over := t.number != t.in.turn
	t.in.read = t.in.read || !over
	t.in.mu.Unlock()
	if over {
		return 0, io.ErrClosedPipe
	}
	return t.in.from.Read(p)
}

// rewind takes the input from who has it, unless something was read.
func (in *input) rewind() bool {
	if in == nil {
		return true
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.turn++
	return !in.read
}

// next is the input for who is asked now.
func (in *input) next() io.Reader {
	in.mu.Lock()
	defer in.mu.Unlock()
	return turn{in, in.turn}
}

// rewound is what a call reads from a reader each time that it is made: one that
// has all in memory is read from its beginning, and handed on as it is, so that it
// can travel in the request itself.
func rewound(r io.Reader) (in *input, each func() io.Reader) {
	if r == nil {
		return nil, func() io.Reader { return nil }
	}
	if s, ok := r.(io.Seeker); ok {
		if at, err := s.Seek(0, io.SeekCurrent); err == nil {
			return nil, func() io.Reader {
				_, _ = s.Seek(at, io.SeekStart) // it just could
				return r
			}
		}
	}
	in = &input{from: r}
	return in, in.next
}
