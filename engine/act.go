package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cove-sandbox/cove"
)

// action is a cove.Action with what the road needs beside it: the session it
// is about, and what the journal says of its content.
type action struct {
	cove.Action

	on   bool            // whether it is about a session
	id   cove.ID         // of that session
	data json.RawMessage // hashes and lengths for the journal

	moved *atomic.Int64 // bytes of files that came from the caller; nil for none
}

// step is what an action that was allowed works with.
type step struct {
	lease   *lease // nil where the action has no session
	limits  cove.Limits
	outcome *cove.Event // filled in by the action as far as it knows better
	exit    int         // the exit code of a program that was waited for
	ran     bool        // a program or code ran, and the answer says how that went
}

// ended takes down how a program ended that the action waited for.
func (s *step) ended(r cove.Result) { s.outcome.Outcome, s.exit, s.ran = r.Outcome, r.ExitCode, true }

// act is the only road from a caller to a sandbox: find the session, decide,
// record the intent, do it, record the outcome.
func act[T any](ctx context.Context, v view, a action, do func(context.Context, *step) (T, error)) (T, error) {
	out, d, err := decideAndDo(ctx, v, a, do)
	if err == nil && d.Effect != cove.Allow {
		err = denied(d)
	}
	return told(v, out), v.tellError(withOp(a.Verb, err))
}

// actOrBlock is act for what runs something: content that policy refuses is an
// answer that says so, which refuse puts into its form, and not an error.
func actOrBlock[T any](ctx context.Context, v view, a action, do func(context.Context, *step) (T, error), refuse func(*cove.Execution) T) (T, error) {
	out, d, err := decideAndDo(ctx, v, a, do)
	switch {
	case err != nil || d.Effect == cove.Allow:
	case a.Exec != nil && a.Exec.TTY != nil:
		err = noTerminal(d)
	case d.Effect == cove.Deny && d.Layer == cove.Content:
		return refuse(v.blocked(a, d)), nil
	default:
		err = denied(d)
	}
	return told(v, out), v.tellError(withOp(a.Verb, err))
}

// decideAndDo is the road itself. The decision says whether do was reached.
func decideAndDo[T any](ctx context.Context, v view, a action, do func(context.Context, *step) (T, error)) (out T, d cove.Decision, err error) {
	var l *lease
	var missing error
	a.Principal = v.p
	if a.on {
		if l, missing = v.e.find(v.p.Tenant, a.id); l != nil {
			a.Session = l.view()
		}
	}
	ctx, seen := v.observe(ctx, &a)
	defer func() { seen.over(d, err) }()
	d = v.e.decide(ctx, a)
	seen.decided()
	trait := a.Verb.Trait()
	reads := trait.Reads && d.Effect == cove.Allow
	began := time.Now()
	intent := a.event(cove.Intent, d)
	onDisk := func(context.Context) error { return nil }
	if !reads {
		if err = v.e.roomInJournal(d.Effect == cove.Allow && trait.Frees && missing == nil); err != nil {
			return out, d, err
		}
		if onDisk, err = v.e.intend(ctx, intent, d.Effect == cove.Allow && v.e.durable(a.Verb)); err != nil {
			return out, d, journalDown(err)
		}
		seen.intended()
	}
	if d.Effect != cove.Allow {
		return out, d, nil
	}
	s := &step{lease: l, limits: d.Limits, outcome: a.event(cove.AfterIt, cove.Decision{})}
	s.outcome.Data = nil // the intent has it
	if err = missing; err == nil {
		var leave func()
		leave, err = v.rouse(ctx, a, l)
		defer leave()
	}
	if err == nil {
		out, err = do(ctx, s)
		err = of(l, a.meanwhile(l, err))
	}
	seen.done(s)
	if reads {
		return out, d, err
	}
	s.outcome.Intent, s.outcome.Wall = intent.Seq, time.Since(began)
	s.outcome.Code = cove.CodeOf(err)
	after := context.WithoutCancel(ctx)
	if jerr := onDisk(after); jerr != nil {
		return out, d, journalLate(jerr, s.outcome, err)
	}
	if jerr := v.e.cfg.Journal.Append(after, s.outcome, false); jerr != nil && s.ran && err == nil {
		// The intent is in the journal. A caller that got an error would run it again.
		v.e.cfg.Logger.ErrorContext(after, "write to the journal how a program ended", errAttr(jerr), sessionAttr(a.id))
	} else if jerr != nil {
		err = journalLate(jerr, s.outcome, err)
	}
	return out, d, err
}

// roomInJournal refuses what begins something where the disk of the journal is full.
// What gives room back goes on: the journal has a reserve for that, and for the ends of
// what is under way.
func (e *Engine) roomInJournal(frees bool) error {
	j, ok := e.cfg.Journal.(interface{ Room() error })
	if !ok || frees {
		return nil
	}
	return j.Room()
}

// durable reports whether the intent of an action must be on the disk. That a session
// ends which ends with this process need not be: a machine that forgets the line has
// ended the session too.
func (e *Engine) durable(v cove.Verb) bool {
	return v.Trait().Durable && (!e.cfg.Fleeting || v != cove.SessionClose)
}

// intend writes an intent down. When the action is done, onDisk must be called:
// it waits for what intend itself did not.
func (e *Engine) intend(ctx context.Context, intent *cove.Event, durable bool) (onDisk func(context.Context) error, err error) {
	if j, ok := e.cfg.Journal.(interface {
		Begin(e *cove.Event) (func(context.Context) error, error)
	}); ok && durable && e.cfg.Fleeting {
		return j.Begin(intent)
	}
	return func(context.Context) error { return nil }, e.cfg.Journal.Append(ctx, intent, durable)
}

// actSeq is act for lists: the road is taken when the loop starts.
func actSeq[T any](ctx context.Context, v view, a action, do func(context.Context, *step) (iter.Seq2[T, error], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		seq, err := act(ctx, v, a, do)
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		for item, err := range seq {
			if !yield(told(v, item), v.tellError(withOp(a.Verb, err))) {
				return
			}
		}
	}
}

// actDone is act for what has no answer but its error.
func actDone(ctx context.Context, v view, a action, do func(context.Context, *step) error) error {
	_, err := act(ctx, v, a, func(ctx context.Context, s *step) (struct{}, error) { return struct{}{}, do(ctx, s) })
	return err
}

// decide asks policy, and then a person where policy wants one.
func (e *Engine) decide(ctx context.Context, a action) cove.Decision {
	d := e.cfg.Policy.Decide(a.Action)
	if d.Effect != cove.Ask || e.cfg.Approve == nil {
		return d
	}
	if ok, err := e.cfg.Approve(ctx, a.Action, d); err == nil && ok {
		d.Effect = cove.Allow
	} else {
		d.Effect = cove.Deny
	}
	return d
}

func (a action) event(phase cove.Phase, d cove.Decision) *cove.Event {
	ev := &cove.Event{
		Kind: string(a.Verb), Phase: phase, Principal: a.Principal.Name, Tenant: a.Principal.Tenant,
		Session: a.id, Effect: d.Effect, Data: a.data,
	}
	if !a.id.Valid() {
		ev.Session = "" // what a caller made up does not go into the journal
	}
	if a.Session != nil {
		ev.Provider = a.Session.Provider
	}
	if d.Refusal != nil {
		ev.Rule = d.Refusal.Rule
	}
	return ev
}

func denied(d cove.Decision) error {
	text, rule := "policy does not allow this", ""
	if d.Refusal != nil {
		text, rule = d.Refusal.Reason, d.Refusal.Rule
	}
	err := cove.Errorf(cove.Denied, "%s", text).With("rule", rule)
	if d.Effect == cove.Ask {
		return err.Reason(cove.ReasonApproval).Remedy("ask somebody who may approve it, or leave it out")
	}
	return err
}

// noTerminal is the error of a terminal that a command policy refuses. A terminal is a
// handle to a program, and there is none.
func noTerminal(d cove.Decision) error {
	err := denied(d)
	if d.Effect != cove.Deny || d.Layer != cove.Content {
		return err
	}
	return cove.Errorf(cove.Denied, "the session's command policy does not allow this terminal: %s", cove.MessageOf(err)).
		Reason(cove.ReasonCommandPolicy).With("rule", d.Refusal.Rule).
		Remedy("run single commands without a terminal, or open a session with a policy that allows this program")
}

func journalDown(err error) error {
	if cove.ReasonOf(err) == cove.ReasonDiskReserve {
		return err
	}
	return cove.Wrap(cove.Unavailable, err, "the journal cannot be written, so nothing is done").
		Remedy("check the disk of the journal's folder and its permissions, then restart the server")
}

// journalLate is the error where something was done, or tried, and the journal
// could not take down how it went.
func journalLate(cause error, outcome *cove.Event, err error) error {
	how := "it was done"
	if err != nil {
		how = "it was tried and went wrong (" + cove.MessageOf(err) + ")"
	}
	e := cove.Wrap(cove.Unavailable, errors.Join(cause, err), "%s, but the journal could not be written any more", how).
		Remedy("look at what was done before you ask again; the operator has to check the disk of the journal")
	if outcome.Session != "" {
		e = e.With("session_id", string(outcome.Session))
	}
	return e
}

// meanwhile is the error of what was done inside a session that somebody closed while
// it was: its sandbox only says that it is not there. Of other ends it says nothing,
// since they would have callers do again what may have been done.
func (a action) meanwhile(l *lease, err error) error {
	if l == nil || !a.inside() || cove.CodeOf(err) != cove.NotFound || cove.ReasonOf(err) != "" {
		return err
	}
	if s := l.view(); s.State == cove.Ended && s.Cause == cove.ReasonSessionClosed {
		return gone(s)
	}
	return err
}

// of names the provider of a session in an error about it.
func of(l *lease, err error) error {
	e, ok := errors.AsType[*cove.Error](err)
	if !ok || l == nil || e.Details["provider"] != nil {
		return err
	}
	provider := l.provider()
	if provider == "" {
		return err
	}
	c := e.With("provider", provider)
	if e != err { //nolint:errorlint // whether it is all there is
		c.Err = err
	}
	return c
}

// withOp names the verb in an error, and makes one of ours from any other.
func withOp(verb cove.Verb, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*cove.Error](err); ok {
		c := *e
		if c.Op == "" {
			c.Op = string(verb)
		}
		return &c
	}
	e := cove.Wrap(cove.CodeOf(err), err, "%s", cove.MessageOf(err))
	e.Op = string(verb)
	return e
}

// contentOf is what the journal keeps of a text: its keyed hash and length.
func (e *Engine) contentOf(text string) json.RawMessage {
	b := make([]byte, 0, 80)
	b = append(b, `{"digest":"`...)
	b = append(b, e.cfg.Journal.Digest([]byte(text))...)
	b = append(b, `","bytes":`...)
	b = strconv.AppendInt(b, int64(len(text)), 10)
	return append(b, '}')
}

// specOf is what the journal keeps of a request to open: the choices, and the
// hash of the whole.
func (e *Engine) specOf(s cove.Spec) json.RawMessage {
	text, ok := briefSpec(s)
	if !ok {
		var err error
		if text, err = json.Marshal(s); err != nil {
			return nil // a Spec has only plain values
		}
	}
	digest := e.cfg.Journal.Digest(text)
	if ok {
		return fmt.Appendf(nil, `{"digest":"%s","flavor":"%s","provider":"%s","template":"%s"}`, digest, short(s.Flavor), short(s.Provider), short(s.Template))
	}
	data, err := json.Marshal(map[string]string{
		"digest": digest, "provider": short(s.Provider), "template": short(s.Template), "flavor": short(s.Flavor),
	})
	if err != nil {
		return nil // nor has a map of strings
	}
	return data
}

// briefSpec is what encoding/json writes of a spec that names things and asks for
// nothing else, as that of most runs. Its first look at a type takes longer than
// such a run has.
func briefSpec(s cove.Spec) (text []byte, ok bool) {
	text = append(text, '{')
	for _, f := range []struct {
		name string
		word *string
	}{{"provider", &s.Provider}, {"template", &s.Template}, {"flavor", &s.Flavor}, {"policy", &s.Policy}} {
		if strings.ContainsFunc(*f.word, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return nil, false
		}
		if *f.word != "" {
			text = append(text, `"`+f.name+`":"`+*f.word+`",`...)
		}
		*f.word = ""
	}
	text = bytes.TrimSuffix(text, []byte{','})
	return append(text, '}'), reflect.ValueOf(&s).Elem().IsZero()
}

// short cuts a word that a caller made up.
func short(word string) string { return strings.ToValidUTF8(word[:min(len(word), 64)], "") }

// madeSession tells the journal which session an action made.
func madeSession(id cove.ID) json.RawMessage { return json.RawMessage(`{"made":"` + string(id) + `"}`) }

// note writes what the engine did by itself. The journal refusing is logged by
// the caller's own error: a note never stops a clean-up.
func (e *Engine) note(ctx context.Context, kind string, s *cove.Session, reason string) {
	e.noteOf(ctx, kind, s, map[string]string{"reason": reason})
}

// noteOf is note with more than a reason.
func (e *Engine) noteOf(ctx context.Context, kind string, s *cove.Session, about map[string]string) {
	data, _ := json.Marshal(about) // a map of strings cannot fail
	ev := &cove.Event{Kind: kind, Phase: cove.EngineNote, Tenant: s.Tenant, Session: s.ID, Provider: s.Provider, Data: data}
	if err := e.cfg.Journal.Append(context.WithoutCancel(ctx), ev, false); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "journal note", errAttr(err), sessionAttr(s.ID))
	}
	e.tell(ctx, s, cove.Happening{Kind: kind})
}
