package providertest

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Outside is a plain web server that sandboxes with a way out can reach. It is
// known by two names, so that what is refused is refused by a rule.
type Outside struct {
	Name, Other string
	Port        int
	Text        string // what it answers to GET /
}

// Outward is a Provider, or a wrapper of one with Unwrap, whose tests know a
// server to reach. Without it the cases that need one are skipped.
type Outward interface {
	Outside() Outside
}

func egressTests() []test {
	return []test{
		{"power_agrees_with_the_interface", egressAgrees},
		{"reaches_what_is_on_the_list", egressReaches},
		{"refuses_what_is_not_on_the_list", egressRefuses},
		{"log_counts_up", egressLog},
		{"list_changes_while_it_lives", egressChanges},
		{"bad_list_changes_nothing", egressBadList},
		{"private_addresses_are_refused", egressPrivate},
		{"open_reaches_all_names", egressOpen},
		{"network_none_reaches_nothing", egressNone},
		{"ends_with_the_sandbox", egressGone},
		{"list_survives_a_restart", egressKept},
	}
}

// fetch gets $1 with whatever the sandbox has for it.
const fetch = `if command -v curl > /dev/null 2>&1; then exec curl -fsS -m 20 "$1"; fi
exec python3 -c 'import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1], timeout=20).read().decode())' "$1"`

func (e *env) offers(mode cove.NetworkMode) {
	e.Helper()
	e.needs("network "+string(mode), slices.Contains(e.caps.Networks, mode))
}

func (e *env) outside() Outside {
	e.Helper()
	e.needsPower(cove.PowerEgress)
	e.offers(cove.NetworkAllow)
	o, ok := cove.As[Outward](e.p)
	e.needs("a server outside to reach; give one with providertest.Outward", ok)
	return o.Outside()
}

func (o Outside) rule(name string) string { return net.JoinHostPort(name, strconv.Itoa(o.Port)) }
func (o Outside) url(name string) string  { return "http://" + o.rule(name) + "/" }

func reach(n cove.Network) func(*cove.Spec) { return func(s *cove.Spec) { s.Network = n } }

func allowing(rules ...string) cove.Network {
	return cove.Network{Mode: cove.NetworkAllow, Allow: rules}
}

// gets demands that a sandbox can reach the server by a name, and cannot that it
// cannot.
func (e *env) gets(s cove.Sandbox, o Outside, name string) {
	e.Helper()
	e.prints(s, o.Text, fetch, o.url(name))
}

func (e *env) cannot(s cove.Sandbox, url string) {
	e.Helper()
	if r := e.sh(s, fetch, url); r.ExitCode == 0 || r.stdout != "" {
		e.Errorf("%s is reached, with %q", url, clip(r.stdout))
	}
}

// lines is the log of a sandbox from a number on, but for questions about names.
func (e *env) lines(s cove.Sandbox, after int64) []cove.Connection {
	e.Helper()
	var list []cove.Connection
	for c, err := range as[cove.Egress](e, s).Connections(e.ctx(), after) {
		e.must(err, "connections")
		if c.Number <= after {
			e.Errorf("connection %d comes after %d", c.Number, after)
		}
		if after = c.Number; c.Protocol == "tcp" {
			list = append(list, c)
		}
	}
	return list
}

// told waits until the log of a sandbox has so many lines: a connection is told when
// both sides have ended it, which may be after the program.
func (e *env) told(s cove.Sandbox, many int) []cove.Connection {
	e.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for {
		list := e.lines(s, 0)
		if len(list) >= many {
			return list
		}
		select {
		case <-tick.C:
		case <-late.C:
			return list
		}
	}
}

// refusals are the names in the log of a sandbox that were refused.
func (e *env) refusals(s cove.Sandbox) []string {
	e.Helper()
	var hosts []string
	for c, err := range as[cove.Egress](e, s).Connections(e.ctx(), 0) {
		e.must(err, "connections")
		if !c.Allowed {
			hosts = append(hosts, strings.TrimSuffix(c.Host, "."))
			if c.Why == "" {
				e.Errorf("nothing says why %+v was refused", c)
			}
		}
	}
	return hosts
}

func egressAgrees(e *env) {
	lets := slices.DeleteFunc(slices.Clone(e.caps.Networks), func(m cove.NetworkMode) bool { return m == cove.NetworkNone })
	if !e.hasPower(cove.PowerEgress) {
		return // what then is possible the group spec knows
	}
	if len(lets) == 0 {
		e.Fatalf("the provider has the power egress and lets nothing out: %v", e.caps.Networks)
	}
	for _, mode := range lets {
		n := cove.Network{Mode: mode}
		if mode == cove.NetworkAllow {
			n = allowing("example.com")
		}
		if _, ok := cove.As[cove.Egress](e.sandbox(reach(n))); !ok {
			e.Errorf("a sandbox with network %s is no Egress", mode)
		}
	}
}

func egressReaches(e *env) {
	o := e.outside()
	s := e.sandbox(reach(allowing(o.rule(o.Name))))
	e.gets(s, o, o.Name)
	lines := e.told(s, 1)
	if len(lines) != 1 {
		e.Fatalf("one connection is told as %+v", lines)
	}
	if c := lines[0]; !c.Allowed || c.Host != o.Name || c.Port != o.Port || c.Why != "" || c.Address == "" || c.At.IsZero() ||
		c.Sent < 1 || c.Received < cove.Bytes(len(o.Text)) || c.Took < 0 {
		e.Errorf("the connection is told as %+v", c)
	}
}

func egressRefuses(e *env) {
	o := e.outside()
	s := e.sandbox(reach(allowing(o.rule(o.Name))))
	e.cannot(s, o.url(o.Other))
	if !slices.Contains(e.refusals(s), o.Other) {
		e.Errorf("the log does not tell that %s was refused: %q", o.Other, e.refusals(s))
	}
	e.cannot(s, "http://"+o.Name+":"+strconv.Itoa(o.Port%65535+1)+"/")
	e.gets(s, o, o.Name)
}

func egressLog(e *env) {
	o := e.outside()
	s := e.sandbox(reach(allowing(o.rule(o.Name))))
	for range 3 {
		e.gets(s, o, o.Name)
	}
	all := e.told(s, 3)
	if len(all) != 3 || all[0].Number < 1 {
		e.Fatalf("three connections are told as %+v", all)
	}
	if rest := e.lines(s, all[1].Number); len(rest) != 1 || rest[0].Number != all[2].Number {
		e.Errorf("after the second comes %+v", rest)
	}
	equal(e, len(e.lines(s, all[2].Number)), 0, "what comes after the last")
}

func egressChanges(e *env) {
	o := e.outside()
	s := e.sandbox(reach(allowing(o.rule(o.Name))))
	out := as[cove.Egress](e, s)
	e.cannot(s, o.url(o.Other))
	e.must(out.SetNetwork(e.ctx(), allowing(o.rule(o.Name), o.rule(o.Other))), "allow one more")
	e.gets(s, o, o.Other)
	e.gets(s, o, o.Name)
	e.must(out.SetNetwork(e.ctx(), allowing(o.rule(o.Other))), "allow one less")
	e.cannot(s, o.url(o.Name))
	e.gets(s, o, o.Other)
}

func egressBadList(e *env) {
	o := e.outside()
	s := e.sandbox(reach(allowing(o.rule(o.Name))))
	out := as[cove.Egress](e, s)
	e.wants(cove.Invalid, out.SetNetwork(e.ctx(), allowing("http://bad/")), "a rule that is none")
	e.wants(cove.Invalid, out.SetNetwork(e.ctx(), cove.Network{Mode: cove.NetworkAllow}), "a list without rules")
	e.gets(s, o, o.Name)
	e.cannot(s, o.url(o.Other))
}

func egressPrivate(e *env) {
	o := e.outside()
	e.offers(cove.NetworkOpen)
	s := e.sandbox(reach(cove.Network{Mode: cove.NetworkOpen}))
	for _, at := range []string{"169.254.169.254", "10.0.0.1", "192.168.1.1", "172.16.0.1", "[fd00::1]", "0.0.0.0"} {
		e.cannot(s, "http://"+at+":"+strconv.Itoa(o.Port)+"/")
	}
	for _, c := range e.lines(s, 0) {
		if c.Allowed {
			e.Errorf("a private address was allowed: %+v", c)
		}
	}
}

func egressOpen(e *env) {
	o := e.outside()
	e.offers(cove.NetworkOpen)
	s := e.sandbox(reach(cove.Network{Mode: cove.NetworkOpen}))
	e.gets(s, o, o.Name)
	e.gets(s, o, o.Other)
	equal(e, len(e.told(s, 2)), 2, "the number of connections")
}

func egressNone(e *env) {
	o := e.outside()
	e.offers(cove.NetworkNone)
	e.cannot(e.sandbox(reach(cove.Network{Mode: cove.NetworkNone})), o.url(o.Name))
}

func egressGone(e *env) {
	o := e.outside()
	s := e.sandbox(reach(allowing(o.rule(o.Name))))
	out := as[cove.Egress](e, s)
	e.must(s.Destroy(e.ctx()), "destroy")
	e.wants(cove.NotFound, out.SetNetwork(e.ctx(), allowing(o.rule(o.Other))), "changing the network of a sandbox that is gone")
	for _, err := range out.Connections(e.ctx(), 0) {
		e.wants(cove.NotFound, err, "the log of a sandbox that is gone")
	}
}

func egressKept(e *env) {
	o := e.outside()
	e.needsPower(cove.PowerAttach)
	s := e.sandbox(reach(allowing(o.rule(o.Name))))
	e.must(as[cove.Egress](e, s).SetNetwork(e.ctx(), allowing(o.rule(o.Other))), "set the network")
	e.restart()
	s, err := e.p.Attach(e.ctx(), s.ID())
	e.must(err, "attach")
	e.gets(s, o, o.Other)
	e.cannot(s, o.url(o.Name))
}
