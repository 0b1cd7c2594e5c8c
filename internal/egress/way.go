package egress

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/cove-sandbox/cove"
)

// Way is how one sandbox gets out, as far as that is the same wherever its gateway
// and its sockets are: which ports lead out, whom its programs trust, and how its
// network becomes another one. Methods are safe for concurrent use.
type Way struct {
	settings Settings
	mode     cove.NetworkMode
	open     []uint16 // that lead out with mode open

	turn sync.Mutex // held while it is changed

	mu    sync.Mutex
	ports map[uint16]bool // guarded by mu; are listened on
	ca    *Authority      // guarded by mu; nil until there is a secret
}

// NewWay returns one for a sandbox with a network of this mode. Open are the ports
// that lead out with [cove.NetworkOpen].
func NewWay(s Settings, mode cove.NetworkMode, open []uint16) *Way {
	return &Way{settings: s, mode: mode, open: open, ports: map[uint16]bool{}}
}

// Resume makes it that of a sandbox that listens on ports already, and trusts ca,
// if that is not nil.
func (w *Way) Resume(ports []uint16, ca *Authority) {
	w.listens(ports)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ca = ca
}

// Begin returns what a gateway is opened with for the first network, and the ports
// that the sandbox must listen on. The sandbox, whose files are in, learns whom to
// trust.
func (w *Way) Begin(ctx context.Context, n cove.Network, in cove.Files) (Config, []uint16, error) {
	ports, err := w.missing(n)
	if err != nil {
		return Config{}, nil, err
	}
	c, err := w.config(ctx, n, in)
	if err != nil {
		return Config{}, nil, err
	}
	w.listens(ports)
	return c, ports, nil
}

// Change gives the sandbox another network of the same mode. Ports that it names
// for the first time are handed to listen, all at once; those that it names no
// longer stay, and nothing goes out. Then set makes the network that of the
// gateway. Neither is called where the network cannot be had.
func (w *Way) Change(ctx context.Context, n cove.Network, in cove.Files, listen func(ports []uint16) error, set func(n cove.Network, c Config) error) error {
	n = cove.Spec{Network: n}.Clone().Network
	if err := (cove.Spec{Network: n}).Validate(); err != nil {
		return err
	}
	if n.Mode != w.mode {
		return cove.Errorf(cove.Unsupported, "network.mode: the sandbox was made with %q and keeps it", w.mode).
			With("field", "network.mode").Remedy("open a session with the network %q", n.Mode)
	}
	w.turn.Lock()
	defer w.turn.Unlock()
	if err := w.settings.Allows(n); err != nil {
		return err
	}
	ports, err := w.missing(n)
	if err != nil {
		return err
	}
	c, err := w.config(ctx, n, in)
	if err != nil {
		return err
	}
	if len(ports) > 0 {
		if err := listen(ports); err != nil {
			return err
		}
		w.listens(ports)
	}
	return set(n, c)
}

// Hold calls do while nobody changes the way.
func (w *Way) Hold(do func() error) error {
	w.turn.Lock()
	defer w.turn.Unlock()
	return do()
}

// Ports returns those that are listened on, sorted.
func (w *Way) Ports() []uint16 {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]uint16, 0, len(w.ports))
	for port := range w.ports {
		list = append(list, port)
	}
	slices.Sort(list)
	return list
}

// Authority returns whom the programs of the sandbox trust besides; nil while there
// is no secret.
func (w *Way) Authority() *Authority {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ca
}

// config makes a network the config of a gateway. Where it names the first secrets,
// the sandbox learns whom to trust.
func (w *Way) config(ctx context.Context, n cove.Network, in cove.Files) (Config, error) {
	ca := w.Authority()
	if len(n.Secrets) > 0 && ca == nil {
		var err error
		if ca, err = NewAuthority(); err != nil {
			return Config{}, err
		}
		if err := tellTrust(ctx, in, ca); err != nil {
			return Config{}, err
		}
		w.mu.Lock()
		w.ca = ca
		w.mu.Unlock()
	}
	return w.settings.For(n, ca)
}

// missing returns the ports of a network that nobody listens on yet.
func (w *Way) missing(n cove.Network) ([]uint16, error) {
	want := w.open
	if n.Mode == cove.NetworkAllow {
		more, err := Ports(n.Allow)
		if err != nil {
			return nil, err
		}
		want = append([]uint16{80, 443}, more...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []uint16
	for _, port := range want {
		if port == 53 {
			return nil, cove.Errorf(cove.Unsupported, "network.allow: port 53 leads to the name server of the sandbox, and to no other").
				With("field", "network.allow").Remedy("leave it out: names are answered without it")
		}
		if !w.ports[port] {
			list = append(list, port)
		}
	}
	slices.Sort(list)
	return list, nil
}

func (w *Way) listens(ports []uint16) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, port := range ports {
		w.ports[port] = true
	}
}

// Each yields connections until ctx ends.
func Each(ctx context.Context, list []cove.Connection) iter.Seq2[cove.Connection, error] {
	return func(yield func(cove.Connection, error) bool) {
		for _, c := range list {
			if err := ctx.Err(); err != nil {
				yield(cove.Connection{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}
