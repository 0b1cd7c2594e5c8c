package local

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/local/fence"
)

// kit is what the sandboxes of one root are made with. Templates that show what
// the base shows share its kit.
type kit struct {
	host     *hostSide
	template Template // the zero value is the base

	// Guarded by the host's mu.
	plan    *fence.Plan
	path    []string // where interpreters are beside /usr
	direct  *fence.Builder
	spawner *maker
	users   int         // sandboxes of it that live
	idle    *time.Timer // ends the spawner; nil while there is nothing to end

	nursery nursery
}

// kitRest is how long a spawner stays that nobody has a sandbox of.
const kitRest = 10 * time.Minute

// isBase reports whether it is the host's own.
func (k *kit) isBase() bool { return k == &k.host.kit }

// everyKit yields the kits. The caller holds mu.
func (h *hostSide) everyKit() iter.Seq[*kit] {
	return func(yield func(*kit) bool) {
		if !yield(&h.kit) {
			return
		}
		for _, k := range h.kits {
			if !yield(k) {
				return
			}
		}
	}
}

// kitFor returns what the sandboxes of a template are made with.
func (h *hostSide) kitFor(template string) (*kit, Template, error) {
	t, err := h.findTemplate(template)
	if err != nil || t.Kind == KindHost && !t.Preloads() {
		return &h.kit, t, err
	}
	key := strings.Join([]string{t.Name, t.Digest, t.Tree}, "\x00")
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.kits[key]
	if k == nil {
		k = &kit{host: h, template: t}
		if h.kits == nil {
			h.kits = map[string]*kit{}
		}
		h.kits[key] = k
	}
	return k, t, nil
}

// findTemplate finds a template that sandboxes can be made from.
func (h *hostSide) findTemplate(name string) (Template, error) {
	if name == Base || name == "" {
		return Template{Name: Base, Kind: KindHost}, nil
	}
	if h.cfg.Templates == nil {
		return Template{}, h.unknown(name)
	}
	t, err := h.cfg.Templates.Get(name)
	if cove.CodeOf(err) == cove.NotFound {
		return Template{}, h.unknown(name)
	}
	if err == nil {
		err = t.Check()
	}
	return t, err
}

// unknown says that nothing was built under a name.
func (h *hostSide) unknown(full string) error {
	tenant, asked := cove.SplitTemplate(full)
	return cove.InvalidField("template", "%.60q is unknown to provider %s; it has %s", asked, name, strings.Join(cove.VisibleTemplates(tenant, h.templates()), ", ")).
		Remedy("use one of these, or build it: cove template build %.60s", asked)
}

// templates are the names of those that are ready, the base first.
func (h *hostSide) templates() []string {
	names := []string{Base}
	if h.cfg.Templates == nil {
		return names
	}
	for _, name := range slices.Sorted(slices.Values(h.cfg.Templates.Names())) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// begin is a sandbox of which nothing is made yet.
func (h *hostSide) begin(id cove.ID, w wish) (*made, error) {
	m := &made{host: h, kit: &h.kit, name: id, process: -1, link: -1, solo: w.solo}
	if w.template == "" || w.template == Base {
		return m, nil
	}
	k, t, err := h.kitFor(w.template)
	if err != nil {
		return nil, err
	}
	m.env, m.digest = t.Environ(), t.Digest
	m.kit = k
	k.enter()
	return m, nil
}

// isCurrent reports whether a template is still what it was when this was made.
func (m *made) isCurrent(template string) bool {
	if template == Base {
		return true
	}
	t, err := m.host.findTemplate(template)
	return err == nil && t.Digest == m.digest
}

// enter counts a sandbox that is made with the kit.
func (k *kit) enter() {
	if k.isBase() {
		return
	}
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	k.users++
	if k.idle != nil {
		k.idle.Stop()
		k.idle = nil
	}
}

// leave counts one that is gone.
func (k *kit) leave(m *made) {
	if k == nil || k.isBase() {
		return
	}
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	m.kit = nil
	k.users--
	// Unless we are root, what was saved of its sandboxes needs its spawner.
	if k.users == 0 && k.host.become && !k.host.closed {
		k.idle = time.AfterFunc(kitRest, k.rest)
	}
}

// rest ends what a kit that nobody uses costs.
func (k *kit) rest() {
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	if k.users == 0 && !k.host.closed {
		k.letGo()
	}
}

// explain is [hostSide.explain], for what only the kit's template needs.
func (k *kit) explain(err error) error {
	if k.isBase() || !strings.Contains(err.Error(), "overlay") || isFull(err) {
		return k.host.explain(err)
	}
	return cove.Wrap(cove.Unavailable, err, "template %.60q cannot be shown on this host: %s", k.template.Name, err).
		Remedy("layers of files need overlay, for users from Linux 5.11 on; use the template %s", Base)
}

// root describes what the sandboxes of a kit see, and where interpreters are
// beside /usr.
func (k *kit) root() (fence.Root, []string, error) {
	switch k.template.Kind {
	case KindLayer:
		root, path := draw()
		err := addLayer(&root, k.template.Tree)
		return root, path, err
	case KindTree:
		root, err := treeRoot(k.template.Tree)
		return root, nil, err
	case KindHost:
	}
	root, path := k.host.drawn()
	return root, path, nil
}
