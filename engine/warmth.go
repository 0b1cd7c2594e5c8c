package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// What decides which interpreters are started ahead.
const (
	recently      = 10 * time.Minute // a language that ran within it is wanted again
	mostLanguages = 2                // in one spare
	mostWaste     = 8                // spares in a row whose interpreters nobody used
	mostMolds     = 64               // that are remembered

	// A session with less memory than this has none to give to an interpreter that
	// it did not ask for.
	leastMemory = 256 * cove.MiB
)

// warmth knows which interpreters the sessions of a mold use.
type warmth struct {
	gate chan struct{} // one spare at a time is heated: others want the processors, too

	mu    sync.Mutex
	molds map[cove.Mold]*demand // guarded by mu
}

// demand is what is known of one mold.
type demand struct {
	languages []use // most recent first
	wasted    int   // spares with interpreters taken since one was last wanted
	pids      int   // of the last session
}

type use struct {
	language string
	at       time.Time
}

func newWarmth() warmth {
	return warmth{gate: make(chan struct{}, 1), molds: map[cove.Mold]*demand{}}
}

// of returns what is known of a mold. The caller holds mu.
func (w *warmth) of(m cove.Mold) *demand {
	d := w.molds[m]
	if d == nil {
		if len(w.molds) >= mostMolds {
			clear(w.molds)
		}
		d = &demand{}
		w.molds[m] = d
	}
	return d
}

// ran says that a session of a mold wants an interpreter.
func (w *warmth) ran(m cove.Mold, language string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.of(m)
	d.wasted = 0
	d.languages = slices.DeleteFunc(d.languages, func(u use) bool { return u.language == language })
	d.languages = slices.Insert(d.languages, 0, use{language, time.Now()})
	d.languages = d.languages[:min(len(d.languages), mostLanguages)]
}

// taken says that a session of a mold is being made, from a spare or not.
func (w *warmth) taken(m cove.Mold, pids int, from cove.Spare) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.of(m)
	d.pids = pids
	if _, ok := from.(*hot); ok {
		d.wasted++
	}
}

// wanted returns the languages to start ahead in a spare, and the bound on
// processes that its session will likely have; 0 where nothing is known.
func (w *warmth) wanted(m cove.Mold) (languages []string, pids int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.of(m)
	if d.wasted >= mostWaste {
		return nil, 0
	}
	for _, u := range d.languages {
		if time.Since(u.at) < recently {
			languages = append(languages, u.language)
		}
	}
	if languages == nil {
		languages = []string{"python"}
		if m.Template == "node" {
			languages = []string{"node"}
		}
	}
	return languages, d.pids
}

// heated returns a spare with the interpreters in it that its session will likely
// want.
func (e *Engine) heated(m cove.Mold, spare cove.Spare) cove.Spare {
	kernels := e.kernels(m.Provider)
	if !e.cfg.Warm || m.Solo || kernels == nil {
		return spare
	}
	languages, pids := e.warmth.wanted(m)
	speaks := kernels.Languages()
	languages = slices.DeleteFunc(languages, func(l string) bool { return !slices.Contains(speaks, l) })
	r := e.cfg.resources(cove.Spec{Provider: m.Provider})
	if pids != 0 {
		r.PIDs = pids
	}
	return heat(spare, kernels, r, e.warmth.gate, e.cfg.warmSpecs(m.Template, languages...)...)
}

// Heat begins to start an interpreter in a spare that somebody prepared for a
// session with a spec, before there is an engine; [Config.Spare] may return what it
// returns. Modules are not imported ahead: the session begins at once, and its code
// imports what it needs. It does nothing where Warm is not set.
func (c Config) Heat(spare cove.Spare, m cove.Mold, spec cove.Spec, language string) cove.Spare {
	c = c.withDefaults()
	kernels := kernelsOf(c.Kernels, m.Provider)
	language = cove.Language(language)
	if !c.Warm || kernels == nil || !slices.Contains(kernels.Languages(), language) {
		return spare
	}
	spec.Provider = m.Provider
	return heat(spare, kernels, c.resources(spec), nil, cove.KernelSpec{Language: language, Dir: "/", Warm: true, Keep: c.keepContext()})
}

func (c Config) warmSpecs(template string, languages ...string) []cove.KernelSpec {
	var specs []cove.KernelSpec
	for _, l := range languages {
		spec := cove.KernelSpec{Language: l, Dir: "/", Warm: true, Keep: c.keepContext()}
		if c.Preload != nil {
			spec.Preload = c.Preload(template, l)
		}
		specs = append(specs, spec)
	}
	return specs
}

// fits reports whether interpreters that were started before the session was
// known are what it would have started: the bound on processes is inherited, and
// some variables are only looked at when a program begins.
func (h *hot) fits(s cove.Spec) bool {
	if s.Resources.PIDs != h.pids || s.Resources.Memory > 0 && s.Resources.Memory < leastMemory {
		return false
	}
	for name := range s.Env {
		if early(name) {
			return false
		}
	}
	return true
}

// early reports whether a variable is one that dynamic linkers, C libraries,
// interpreters or their modules read when they begin, and not later.
func early(name string) bool {
	for _, prefix := range []string{
		"BASH", "GCONV_", "GLIBC_", "GOTO_", "LC_", "LD_", "MALLOC_", "MKL_", "MPL", "NODE_", "NUMEXPR_", "OMP_", "OPENBLAS_", "OPENSSL_", "PYTHON", "SSL_", "UV_",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"ENV", "IFS", "LANG", "LANGUAGE", "LOCPATH", "POSIXLY_CORRECT", "SHELLOPTS", "TZ", "TZDIR"}, name)
}

// prepareWarm makes a spare for the pool, with interpreters in it.
func (e *Engine) prepareWarm(ctx context.Context, m cove.Mold) (cove.Spare, error) {
	spare, err := e.prepare(ctx, m)
	if err != nil {
		return nil, err
	}
	return e.heated(m, spare), nil
}
