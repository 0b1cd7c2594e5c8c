package escape

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// openNetwork is the mode of a sandbox that may reach all that is public.
const openNetwork = string(cove.NetworkOpen)

const tunnelAttack = "egress_dns_tunnel"

// egressAttacks are on the way out of a sandbox that has one. Without a World they
// call nothing but what must be refused.
func egressAttacks() []Attack {
	attacks := []Attack{
		outgoing("egress_private_names", "reach the host's loopback by names on the list that lead there", withList),
		outgoing("egress_raw_addresses", "call addresses without a name, with a list that has only names", withList),
		outgoing("egress_private", "call private addresses and the host's own through an open network", withOpen),
		outgoing("egress_metadata", "call the metadata services of clouds through an open network", withOpen),
		outgoing("egress_ipv6", "wrap addresses that are refused into IPv6, through an open network", withOpen),
		outgoing("egress_udp", "send packets out past the way out", withList),
		outgoing("egress_udp_open", "send packets out through an open network", withOpen),
		outgoing("egress_denied_names", "be answered names that are not on the list, by every spelling", withList),
		outgoing("egress_dns_flood", "ask for names faster than anybody should", withList),
		outgoing(tunnelAttack, "carry data out in names below one that is allowed", withList),
		outgoing("egress_rebinding", "reach private addresses by names whose answers change", withList),
		outgoing("egress_redirects", "be redirected from a good server to metadata and private addresses", withList),
	}
	for i := range attacks {
		attacks[i].world = i >= len(attacks)-3
		if attacks[i].Name == tunnelAttack { // it uses up what the others need
			attacks[i].own, attacks[i].armed = fresh, true
		}
		attacks[i].Limits = []cove.Limit{cove.LimitNetwork}
	}
	return attacks
}

// outgoing is a native attack after which nobody must have been reached who may
// not be.
func outgoing(name, try string, in *room) Attack {
	a := native(name, try)
	a.room = in
	a.run = func(ctx context.Context, r *round) verdict {
		r.uncalled()
		r.world.forget()
		v, facts := r.attack(ctx, name)
		if v = v.also(r.uncalled()).also(r.world.kept()); !v.held {
			return v
		}
		return v.also(r.recorded(ctx, name, facts))
	}
	return a
}

// recorded looks at what the provider wrote down, until it is good: a connection
// is written down when it has ended, which may be after the program has.
func (r *round) recorded(ctx context.Context, name string, facts []string) verdict {
	box := r.box
	if len(r.solos) > 0 {
		box = r.solos[len(r.solos)-1]
	}
	out, ok := cove.As[cove.Egress](box)
	if !ok {
		return untold("the sandbox has no record of its connections")
	}
	const often, patience = 40, 50 * time.Millisecond
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for range often {
		if v := r.record(ctx, out, name, facts); v.held {
			return v
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return r.record(ctx, out, name, facts)
}

// mustRefuse are the attacks that leave a refusal in the record.
var mustRefuse = []string{"egress_private_names", "egress_private", "egress_metadata", "egress_ipv6", "egress_denied_names", "egress_dns_flood", "egress_rebinding"}

// record says whether nothing private was dialled, and whether what the attack
// says must be written down is, and all that left.
func (r *round) record(ctx context.Context, out cove.Egress, name string, facts []string) verdict {
	hosts, refused := map[string]bool{}, 0
	for c, err := range out.Connections(ctx, 0) {
		if err != nil {
			return failed(err)
		}
		hosts[strings.ToLower(strings.TrimSuffix(c.Host, "."))] = true
		if !c.Allowed {
			refused++
		}
		if to, err := netip.ParseAddrPort(c.Address); err == nil && forbidden(to.Addr()) {
			return breach(fmt.Sprintf("the record says that %s was dialled", clip(c.Address)))
		}
	}
	for _, fact := range facts {
		if host, ok := strings.CutPrefix(fact, "asked "); ok && !hosts[host] {
			return breach("the record does not have " + clip(host))
		}
	}
	if name == tunnelAttack {
		left := r.world.looked()
		if len(left) == 0 {
			return untold("not even what is allowed got out")
		}
		for _, host := range left {
			if !hosts[host] {
				return breach("a name left and is not in the record: " + clip(host))
			}
		}
	}
	if refused == 0 && slices.Contains(mustRefuse, name) {
		return breach("the record has no refusal")
	}
	return heldBy("")
}

// forbidden reports whether no sandbox may reach an address.
func forbidden(a netip.Addr) bool {
	a = a.Unmap()
	if b := a.As16(); a.Is6() && b[0] == 0 && b[1] == 0x64 {
		a = netip.AddrFrom4([4]byte(b[12:])) // NAT64
	}
	return !a.IsGlobalUnicast() || a.IsPrivate() ||
		slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

var special = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
}

// allowNames gives a sandbox a list: names of the host that lead to it, and those
// of the World.
func (a *arena) allowNames(s *cove.Spec) {
	_, port, _ := net.SplitHostPort(a.tcp[0].Addr().String()) // a listener has one
	list := []string{"localhost:" + port}
	for _, name := range loopbackNames() {
		list = append(list, name+":"+port)
	}
	if a.world != nil {
		list = append(list, worldNames...)
	}
	s.Network = cove.Network{Mode: cove.NetworkAllow, Allow: list}
}

// loopbackNames are those that the host's own table gives to its loopback; nobody
// else is asked about them.
func loopbackNames() []string {
	const most = 4
	text, _ := os.ReadFile("/etc/hosts") // none is as good as an error here
	var names []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		a, err := netip.ParseAddr(fields[0])
		if err != nil || !a.IsLoopback() {
			continue
		}
		for _, name := range fields[1:] {
			valid := cove.Network{Mode: cove.NetworkAllow, Allow: []string{name}}.Validate() == nil
			if valid && name != "localhost" && !slices.Contains(names, name) && len(names) < most {
				names = append(names, name)
			}
		}
	}
	return names
}

// kept says whether the World saw nothing that it should not have.
func (w *World) kept() verdict {
	if w == nil {
		return heldBy("")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	size := 0
	for name := range w.names {
		size += len(name)
	}
	switch {
	case len(w.trespasses) > 0:
		return breach("reached " + strings.Join(w.trespasses[:min(3, len(w.trespasses))], ", "))
	case w.MostNames > 0 && len(w.names) > w.MostNames:
		return breach(strconv.Itoa(len(w.names)) + " names left where " + strconv.Itoa(w.MostNames) + " are allowed")
	case size > 0:
		return heldBy(fmt.Sprintf("%d names left, %d bytes", len(w.names), size))
	}
	return heldBy("")
}

var errNobody = errors.New("nobody is there")
