package kernel

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/talk"
)

// Kernels starts the interpreters of this package. It implements [cove.Kernels].
type Kernels struct{ all []language }

var _ cove.Kernels = (*Kernels)(nil)

// New returns what starts interpreters.
func New() *Kernels { return &Kernels{all: languages()} }

// Languages implements [cove.Kernels].
func (k *Kernels) Languages() []string { return names(k.all) }

// Open implements [cove.Kernels]. The Starter must go on working as long as the
// interpreter: programs are started in it to interrupt what an interpreter started.
func (k *Kernels) Open(ctx context.Context, in cove.Starter, spec cove.KernelSpec) (cove.Kernel, error) {
	if lang := k.languageOf(spec.Language); lang != nil {
		return open(ctx, in, lang, spec)
	}
	return nil, unknown(spec.Language, k.all)
}

// open starts an interpreter and waits until it is ready.
func open(ctx context.Context, in cove.Starter, lang *language, spec cove.KernelSpec) (cove.Kernel, error) {
	source, err := lang.source()
	if err != nil {
		return nil, err
	}
	n := &kernel{lang: lang, in: in, x: newExchange(), box: talk.NewInbox(), dead: make(chan struct{}), warm: spec.Warm, programs: spec.Programs, kept: newKept(spec.Keep)}
	n.watchOutput()
	// What the start itself says is no output of any code.
	before := newRun(0, cove.KernelRun{Limits: cove.Limits{Output: maxSentence}, OnOutput: n.overhear})
	n.x.begin(before)
	n.box.Offer(append(source, begin(n.x, spec)...)) // it is empty
	if n.proc, err = in.Start(ctx, lang.command(spec, n.x, n.box)); err != nil {
		n.box.Close()
		close(n.dead)
		return nil, err
	}
	go n.watch(context.WithoutCancel(ctx))
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case words := <-n.x.hello:
		n.x.end(before)
		if err := n.greet(words); err != nil {
			n.abandon(ctx)
			return nil, err
		}
		return n, nil
	case <-n.dead:
		n.x.end(before)
		return nil, n.stillborn()
	case <-timer.C:
		n.abandon(ctx)
		return nil, cove.Errorf(cove.Unavailable, "%s did not start within %s", lang.program, startTime).
			Remedy("try again; where it keeps happening, give the session more CPU or memory")
	case <-ctx.Done():
		n.abandon(ctx)
		return nil, ctx.Err()
	}
}

// greet takes what a driver says of itself.
func (k *kernel) greet(words []string) error {
	if len(words) != 3 {
		return cove.Errorf(cove.Internal, "the driver of %s does not introduce itself", k.lang.name)
	}
	if group, err := strconv.Atoi(words[1]); err == nil && group > 1 {
		k.group = group
	}
	if k.lang.suits != nil {
		return k.lang.suits(clean(words[2], maxName))
	}
	return nil
}

// languageOf returns a language by its name; nil if there is none.
func (k *Kernels) languageOf(name string) *language {
	for i := range k.all {
		if k.all[i].name == name {
			return &k.all[i]
		}
	}
	return nil
}

// overhear keeps what an interpreter says before its driver runs.
func (k *kernel) overhear(c cove.Chunk) { k.said = append(k.said, c.Data...) }

// stillborn says why an interpreter did not come up.
func (k *kernel) stillborn() error {
	if k.failed != nil {
		return k.failed
	}
	const notFound, notRun = 127, 126
	if c := k.ended.ExitCode; c == notFound || c == notRun {
		return cove.Errorf(cove.Unsupported, "the session's template has no %s", k.lang.program).
			Remedy("open a session with a template that has it; cove template ls lists them").With("language", k.lang.name)
	}
	if k.ended.Outcome == cove.OutOfMemory {
		return cove.Errorf(cove.Exhausted, "the session has not enough memory to start %s", k.lang.program).
			Remedy("end something in it, or open one with more memory")
	}
	said := strings.TrimSpace(clean(string(k.said), maxSentence))
	return cove.Errorf(cove.Unavailable, "%s ended while it started (%s): %s", k.lang.program, how(k.ended), said).
		Remedy("restart the context; where it keeps happening, look at the session's limits")
}
