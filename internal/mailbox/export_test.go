//go:build linux

package mailbox

// Box is a box in this process.
type Box struct{ b box }

// NewBox makes a box whose agent is a user's.
func NewBox(uid int) *Box { return &Box{box{uid: uid}} }

// Ask asks it with the words that the executable takes.
func (x *Box) Ask(words ...string) (Answer, error) {
	q, err := parseQuestion(words)
	if err != nil {
		return Answer{}, err
	}
	return x.b.ask(q), nil
}

// Forgotten is a box that nobody has asked for longer than a lease.
func (x *Box) Forgotten() {
	x.b.mu.Lock()
	l := x.b.now
	x.b.mu.Unlock()
	l.mu.Lock()
	l.heard = l.heard.Add(-2 * Lease)
	l.mu.Unlock()
	x.b.tidy()
}
