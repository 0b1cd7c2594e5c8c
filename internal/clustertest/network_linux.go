package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// network is a hub, where clients are, and members around it. Each is in a space of
// its own, and no packet leaves them.
type network struct {
	hub     *space
	members []*member

	mu   sync.Mutex
	cuts map[[2]*member]int // how many faults want each
}

// member is somebody in a network.
type member struct {
	name    string
	address string
	space   *space
}

// hole is a device whose packets go nowhere, so that who sends there hears nothing
// at all, as from a machine that is gone. No rule of a firewall is needed for it.
const hole = "hole"

// newNetwork connects members of these names.
func newNetwork(ctx context.Context, names ...string) (_ *network, err error) {
	n := &network{cuts: map[[2]*member]int{}}
	defer func() {
		if err != nil {
			_ = n.close() // there is an error already
		}
	}()
	if n.hub, err = newSpace(); err != nil {
		return n, err
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "hub", "type", "bridge"},
		{"address", "add", "10.97.0.254/24", "dev", "hub"},
		{"link", "set", "hub", "up"},
	} {
		if err := n.hub.ip(ctx, args...); err != nil {
			return n, err
		}
	}
	for i, name := range names {
		if err := n.join(ctx, name, fmt.Sprintf("10.97.0.%d", i+1)); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (n *network) join(ctx context.Context, name, address string) error {
	s, err := newSpace()
	if err != nil {
		return err
	}
	n.members = append(n.members, &member{name: name, address: address, space: s})
	if err := n.hub.ip(ctx, "link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns", s.path()); err != nil {
		return err
	}
	if err := n.hub.ip(ctx, "link", "set", "dev", name, "master", "hub", "up"); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"address", "add", address + "/24", "dev", "eth0"},
		{"link", "set", "eth0", "up"},
		{"link", "add", hole, "arp", "off", "type", "veth", "peer", "name", "bottom"},
		{"link", "set", "bottom", "up"},
		{"link", "set", hole, "up", "arp", "off"},
	} {
		if err := s.ip(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// cut lets no packet pass between two members, either way.
func (n *network) cut(ctx context.Context, a, b *member) error { return n.change(ctx, a, b, 1) }

// mend takes one cut back.
func (n *network) mend(ctx context.Context, a, b *member) error { return n.change(ctx, a, b, -1) }

func (n *network) change(ctx context.Context, a, b *member, by int) error {
	if a.name > b.name {
		a, b = b, a
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	pair := [2]*member{a, b}
	before := n.cuts[pair]
	n.cuts[pair] += by
	deed := "replace"
	switch {
	case (before == 0) == (n.cuts[pair] == 0):
		return nil
	case by < 0:
		deed = "delete"
	}
	return errors.Join(
		a.space.ip(ctx, "route", deed, b.address+"/32", "dev", hole),
		b.space.ip(ctx, "route", deed, a.address+"/32", "dev", hole),
	)
}

// dial connects from the hub. Nobody there is ever cut off: who does not listen
// refuses at once.
func (n *network) dial(ctx context.Context, _, address string) (conn net.Conn, err error) {
	d := net.Dialer{Timeout: 2 * time.Second}
	n.hub.run(func() { conn, err = d.DialContext(ctx, "tcp4", address) })
	return conn, err
}

// close ends every process in the network, and the network.
func (n *network) close() error {
	var all []error
	for _, m := range n.members {
		all = append(all, m.space.killAll(context.Background()))
		m.space.close()
	}
	if n.hub != nil && n.hub.ns != nil {
		n.hub.close()
	}
	return errors.Join(all...)
}
