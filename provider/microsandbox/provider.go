//go:build linux

package microsandbox

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Provider makes sandboxes. It implements [cove.Provider].
type Provider struct {
	cfg Config
	all []transport // that the settings allow, in the order they are tried

	mu     sync.Mutex
	chosen transport            // the one that answered; guarded by mu
	boxes  map[cove.ID]*sandbox // guarded by mu
	making map[cove.ID]struct{} // guarded by mu
	notes  *notes               // opened when it is first needed; guarded by mu
	image  []byte               // the agent, once it was read; guarded by mu
	closed bool                 // guarded by mu
}

var _ cove.Provider = (*Provider)(nil)

const name = "microsandbox"

// everywhere stands for all namespaces where a server is asked what there is.
const everywhere = "*"

// New opens the provider. It touches nothing.
func New(cfg Config) (*Provider, error) {
	if cfg.Dir == "" {
		return nil, cove.InvalidField("dir", "is empty; name the directory for the state of provider %s", name)
	}
	cfg = cfg.withDefaults()
	if strings.HasPrefix(cfg.Image, "-") {
		return nil, cove.InvalidField("MSB_IMAGE", "%.80q is not an image; write one such as microsandbox/python", cfg.Image).Reason(cove.ReasonConfiguration)
	}
	if cfg.Namespace == everywhere {
		return nil, cove.InvalidField("MSB_NAMESPACE", "%q is all namespaces; name the one that machines are made in", cfg.Namespace).Reason(cove.ReasonConfiguration)
	}
	p := &Provider{cfg: cfg, boxes: map[cove.ID]*sandbox{}, making: map[cove.ID]struct{}{}}
	switch cfg.Transport {
	case transportRPC:
		p.all = []transport{newRPC(cfg)}
	case transportCLI:
		p.all = []transport{newCLI(cfg)}
	case "":
		p.all = []transport{newRPC(cfg), newCLI(cfg)}
	default:
		return nil, cove.InvalidField("MSB_TRANSPORT", "%.40q is unknown; use rpc or cli", cfg.Transport)
	}
	return p, nil
}

// Name implements [cove.Provider].
func (p *Provider) Name() string { return name }

// open reports an ended context or a closed provider.
func (p *Provider) open(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return cove.Errorf(cove.Unavailable, "provider %s is closed", name)
	}
	return nil
}

// choose returns the transport that answers, and looks for one where none did.
func (p *Provider) choose(ctx context.Context) (transport, error) {
	p.mu.Lock()
	t := p.chosen
	p.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := p.find(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chosen = t
	return t, nil
}

// find probes the transports. Of the reasons, that of the first one that is there
// and refuses is told before that of one that is not there.
func (p *Provider) find(ctx context.Context) (transport, error) {
	var refusals []error
	for _, t := range p.all {
		err := t.probe(ctx)
		if err == nil {
			return t, nil
		}
		if errors.Is(err, context.Canceled) {
			return nil, err
		}
		refusals = append(refusals, err)
		if cove.ReasonOf(err) == cove.ReasonConfiguration || cove.CodeOf(err) == cove.Denied {
			return nil, err
		}
	}
	if len(refusals) == 1 {
		return nil, refusals[0]
	}
	rpc, cli := refusals[0], refusals[1]
	return nil, cove.Wrap(cove.Unavailable, errors.Join(refusals...), "neither a microsandbox server nor msb can be used: %s; %s", cove.MessageOf(rpc), cove.MessageOf(cli)).
		Reason(cove.ReasonConnection).Remedy("%s; or: %s", cove.RemedyOf(rpc), cove.RemedyOf(cli))
}

// transport returns the one that a sandbox was made by.
func (p *Provider) transport(kind string) (transport, error) {
	for _, t := range p.all {
		if t.kind() == kind {
			return t, nil
		}
	}
	return nil, cove.Errorf(cove.Unavailable, "this sandbox was made by transport %.20s, which MSB_TRANSPORT now rules out", kind).
		Reason(cove.ReasonConfiguration).Remedy("unset MSB_TRANSPORT, or set it to %.20s", kind)
}

// notebook opens the state, once.
func (p *Provider) notebook() (*notes, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.notes == nil {
		n, err := openNotes(p.cfg.Dir)
		if err != nil {
			return nil, err
		}
		p.notes = n
	}
	return p.notes, nil
}

// List implements [cove.Provider]: what is written down, and what the transports
// have under our names.
func (p *Provider) List(ctx context.Context) iter.Seq2[cove.ID, error] {
	return func(yield func(cove.ID, error) bool) {
		ids, err := p.ids(ctx)
		for _, id := range ids {
			if !yield(id, nil) {
				return
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}

func (p *Provider) ids(ctx context.Context) ([]cove.ID, error) {
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	n, err := p.notebook()
	if err != nil {
		return nil, err
	}
	found, err := n.list()
	if err != nil {
		return nil, err
	}
	t, err := p.choose(ctx)
	if err != nil {
		if len(found) == 0 {
			return nil, nil // nothing was ever made, and nothing answers
		}
		return slices.Sorted(maps.Keys(found)), err
	}
	machines, err := t.machines(ctx)
	for machine := range machines {
		if id, ours := n.id(machine); ours {
			found[id] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), err
}

// Attach implements [cove.Provider].
func (p *Provider) Attach(ctx context.Context, id cove.ID) (cove.Sandbox, error) {
	unknown := cove.Errorf(cove.NotFound, "sandbox %.40q is unknown to provider %s", string(id), name)
	if !id.Valid() {
		return nil, unknown
	}
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	n, err := p.notebook()
	if err != nil {
		return nil, err
	}
	rec, err := n.read(id)
	if err != nil {
		return nil, err
	}
	if !rec.Made {
		return nil, unknown
	}
	p.mu.Lock()
	box := p.boxes[id]
	p.mu.Unlock()
	if box != nil {
		return box, nil
	}
	t, err := p.transport(rec.Transport)
	if err != nil {
		return nil, err
	}
	box = newSandbox(p, t, n, id, rec)
	if _, err = box.conn(ctx); err != nil {
		return nil, err
	}
	return p.keep(box)
}

// keep takes a sandbox into the table. Where somebody was faster it is theirs, and a
// provider that was closed meanwhile keeps none: then the connection ends.
func (p *Provider) keep(box *sandbox) (cove.Sandbox, error) {
	p.mu.Lock()
	other, closed := p.boxes[box.id], p.closed
	if other == nil && !closed {
		p.boxes[box.id] = box
	}
	p.mu.Unlock()
	switch {
	case closed:
		box.leave()
		return nil, cove.Errorf(cove.Unavailable, "provider %s is closed", name)
	case other != nil:
		box.leave()
		return other, nil
	}
	return box, nil
}

// Remove implements [cove.Provider].
func (p *Provider) Remove(ctx context.Context, id cove.ID) error {
	if !id.Valid() {
		return nil
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	box := p.boxes[id]
	p.mu.Unlock()
	if box != nil {
		return box.Destroy(ctx)
	}
	n, err := p.notebook()
	if err != nil {
		return err
	}
	rec, err := n.read(id)
	if err != nil && cove.CodeOf(err) != cove.NotFound {
		return p.removeUnread(ctx, n, id, err)
	}
	t, terr := p.transport(rec.Transport)
	if rec.Transport == "" { // nothing is written down of it
		if t, terr = p.choose(ctx); terr != nil {
			return nil //nolint:nilerr // nothing answers, so nothing can be there
		}
	}
	if terr != nil {
		return terr
	}
	if err := t.stop(ctx, n.machine(id)); err != nil {
		return err
	}
	return n.drop(id)
}

// removeUnread removes what a note that cannot be read is about, whichever way it was
// made. A way that is not there now lists the machine when it is there again.
func (p *Provider) removeUnread(ctx context.Context, n *notes, id cove.ID, unread error) error {
	asked := false
	for _, t := range p.all {
		if t.probe(ctx) != nil {
			continue
		}
		if err := t.stop(ctx, n.machine(id)); err != nil {
			return errors.Join(unread, err)
		}
		asked = true
	}
	if !asked {
		return unread
	}
	return n.drop(id)
}

// Close lets go of the sandboxes, which live on. Their programs end.
func (p *Provider) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	boxes := slices.Collect(maps.Values(p.boxes))
	notes := p.notes
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, box := range boxes {
		wg.Go(box.leave)
	}
	wg.Wait()
	for _, t := range p.all {
		if r, ok := t.(*rpc); ok {
			r.client.http.CloseIdleConnections()
		}
	}
	if notes != nil {
		return notes.close()
	}
	return nil
}

// tidyTime bounds ending what could not be made, when the caller may be gone.
const tidyTime = 90 * time.Second
