package e2bapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cove-sandbox/cove"
)

// snapshotAnswer is a snapshot, which there is a template.
type snapshotAnswer struct {
	Snapshot string   `json:"snapshotID"`
	Names    []string `json:"names"`
}

func snapshotOf(s *cove.Snapshot) snapshotAnswer {
	a := snapshotAnswer{Snapshot: string(s.ID), Names: []string{}}
	if s.Name != "" {
		a.Names = append(a.Names, s.Name)
	}
	return a
}

// snapshot saves the files of a sandbox.
func (c *call) snapshot() error {
	var b struct {
		Name string `json:"name"`
	}
	id, err := c.target()
	if err != nil {
		return err
	}
	if err := c.body(&b); err != nil {
		return err
	}
	s, err := c.platform.Snapshots().Snapshot(c.r.Context(), id, cove.SnapshotRequest{Name: b.Name, IdempotencyKey: c.r.Header.Get("Idempotency-Key")})
	if err != nil {
		return err
	}
	c.answer(http.StatusCreated, snapshotOf(s))
	return nil
}

// listSnapshots tells about the caller's snapshots, a page at a time, newest first.
func (c *call) listSnapshots() error {
	q := c.r.URL.Query()
	p, err := pageOf(q)
	if err != nil {
		return err
	}
	filter := cove.SnapshotFilter{Session: cove.ID(q.Get("sandboxID")), Limit: maxListed}
	if filter.Session != "" && !filter.Session.Valid() {
		return noSandbox(filter.Session)
	}
	var found []*cove.Snapshot
	for s, err := range c.platform.Snapshots().List(c.r.Context(), filter) {
		if err != nil {
			return err
		}
		if name := q.Get("name"); name == "" || name == s.Name {
			found = append(found, s)
		}
	}
	found, next := cut(found, p, false, func(s *cove.Snapshot) mark { return mark{s.CreatedAt, s.ID} })
	if next != "" {
		c.w.Header().Set("X-Next-Token", next)
	}
	out := make([]snapshotAnswer, len(found))
	for i, s := range found {
		out[i] = snapshotOf(s)
	}
	c.answer(http.StatusOK, out)
	return nil
}

// deleteTemplate removes a snapshot, by its id or its name, or else a template.
func (c *call) deleteTemplate() error {
	name := c.r.PathValue("id")
	s, err := c.snapshotBy(c.r.Context(), name)
	if err != nil {
		return err
	}
	if s == nil {
		return c.removeTemplate(name)
	}
	if err := c.platform.Snapshots().Delete(c.r.Context(), s.ID); err != nil {
		return err
	}
	c.done()
	return nil
}

// maxForks bounds the copies that one call asks for.
const maxForks = 16

// forked is a copy, or why there is none.
type forked struct {
	Sandbox *sandboxAnswer `json:"sandbox,omitempty"`
	Error   *apiProblem    `json:"error,omitempty"`
}

// fork doubles a sandbox, as often as it is told to. Each copy is made or not for
// itself.
func (c *call) fork() error {
	var b struct {
		Count   *int     `json:"count"`
		Timeout *float64 `json:"timeout"`
	}
	if err := c.body(&b); err != nil {
		return err
	}
	count := 1
	if b.Count != nil {
		count = *b.Count
	}
	if count < 1 || count > maxForks {
		return cove.InvalidField("count", "%d is out of range; use 1 to %d", count, maxForks)
	}
	left, err := timeOf(b.Timeout)
	if err != nil {
		return err
	}
	s, err := c.session()
	if err == nil {
		err = c.h.ceiling().refuse(s.Spec.Network.Mode)
	}
	if err != nil {
		return err
	}
	out := make([]forked, count)
	for i := range out {
		out[i] = c.forkOne(s, i, left)
	}
	c.answer(http.StatusCreated, out)
	return nil
}

func (c *call) forkOne(from *cove.Session, i int, left time.Duration) forked {
	as := cove.ForkRequest{Metadata: from.Spec.Metadata}
	if key := c.r.Header.Get("Idempotency-Key"); key != "" {
		as.IdempotencyKey = fmt.Sprintf("%s-%d", key, i)
	}
	s, err := c.platform.Snapshots().Fork(c.r.Context(), from.ID, as)
	if err == nil {
		if renewed, rerr := c.platform.Sessions().Renew(c.r.Context(), s.ID, left); rerr == nil {
			s = renewed
		} else {
			_, cerr := c.platform.Sessions().Close(c.r.Context(), s.ID, false)
			err = errors.Join(rerr, cerr)
		}
	}
	if err != nil {
		return forked{Error: new(apiProblemOf(err))}
	}
	return forked{Sandbox: new(c.sandboxOf(s))}
}
