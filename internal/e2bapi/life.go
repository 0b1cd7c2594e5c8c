package e2bapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cove-sandbox/cove"
)

// connectSandbox lets a sandbox go on, if it does not, and gives it time: one that runs is
// never ended sooner for it.
func (c *call) connectSandbox() error {
	s, woken, err := c.wake(false)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if woken {
		status = http.StatusCreated
	}
	c.answer(status, c.sandboxOf(s))
	return nil
}

// resumeOnly is connectSandbox for clients that want to hear of a sandbox that runs. That
// one gets no time from them.
func (c *call) resumeOnly() error {
	s, _, err := c.wake(true)
	if err != nil {
		return err
	}
	c.answer(http.StatusCreated, c.sandboxOf(s))
	return nil
}

// wake lets the sandbox go on and gives it the time that the body asks for. If only one
// that rests is wanted, one that runs is refused as it is.
func (c *call) wake(restsOnly bool) (s *cove.Session, woken bool, err error) {
	var b struct {
		Timeout *float64 `json:"timeout"`
		Memory  *bool    `json:"memory"`
	}
	if err := c.body(&b); err != nil {
		return nil, false, err
	}
	left, err := timeOf(b.Timeout)
	if err != nil {
		return nil, false, err
	}
	if s, err = c.session(); err != nil {
		return nil, false, err
	}
	if restsOnly && !rests(s) {
		return nil, false, cove.Errorf(cove.Conflict, "sandbox %s runs already", s.ID)
	}
	// Its time may be up just now, or somebody may pause it: what Renew finds is how
	// it is, and one that came to rest is woken once more.
	for range maxWakes {
		rested := rests(s)
		if rested {
			if err = c.h.ceiling().refuse(s.Spec.Network.Mode); err != nil {
				return nil, false, err
			}
		}
		woken = woken || rested
		if s, err = c.rouse(s, b.Memory == nil || *b.Memory); err != nil {
			return nil, false, err
		}
		if rested || sandboxEnd(s).Before(time.Now().Add(left)) {
			if s, err = c.platform.Sessions().Renew(c.r.Context(), s.ID, left); err != nil {
				return nil, false, err
			}
		}
		if !rests(s) {
			return s, woken, nil
		}
	}
	return nil, false, cove.Errorf(cove.Conflict, "sandbox %s is paused as often as it is resumed", s.ID).Remedy("see who pauses it, and connect again")
}

// maxWakes bounds how often one call wakes a sandbox that comes to rest meanwhile.
const maxWakes = 4

// rests reports whether a sandbox is what clients call paused.
func rests(s *cove.Session) bool { return s.State == cove.Paused || s.State == cove.Stopped }

// rouse lets a sandbox go on that rests.
func (c *call) rouse(s *cove.Session, memory bool) (*cove.Session, error) {
	switch s.State {
	case cove.Paused:
		return c.thaw(c.r.Context(), s.ID, memory)
	case cove.Stopped:
		return c.platform.Sessions().Start(c.r.Context(), s.ID)
	case cove.Creating, cove.Running, cove.Failed, cove.Ended:
	}
	return s, nil
}

// thaw lets a paused sandbox go on, or begin anew with its files alone.
func (c *call) thaw(ctx context.Context, id cove.ID, memory bool) (*cove.Session, error) {
	if memory {
		return c.platform.Snapshots().Resume(ctx, id)
	}
	if _, err := c.platform.Sessions().Stop(ctx, id); err != nil {
		return nil, err
	}
	return c.platform.Sessions().Start(ctx, id)
}

// sandboxEnd is when a sandbox ends.
func sandboxEnd(s *cove.Session) time.Time {
	if last := s.CreatedAt.Add(s.Spec.Lifetime); s.Spec.Lifetime > 0 && last.Before(s.ExpiresAt) {
		return last
	}
	return s.ExpiresAt
}

// pause holds a sandbox. Its memory is kept unless the body says otherwise: what the
// provider cannot do is refused, and not done by halves.
func (c *call) pause() error {
	var b struct {
		Memory *bool `json:"memory"`
	}
	if err := c.body(&b); err != nil {
		return err
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	if rests(s) {
		return cove.Errorf(cove.Conflict, "sandbox %s is paused already", s.ID)
	}
	if b.Memory != nil && !*b.Memory {
		_, err = c.platform.Sessions().Stop(c.r.Context(), s.ID)
	} else {
		_, err = c.platform.Snapshots().Pause(c.r.Context(), s.ID)
		if errors.Is(err, cove.Unsupported) {
			err = cove.Wrap(cove.Unsupported, err, "provider %s cannot keep the memory of a sandbox", s.Provider).
				Remedy("pause it without: memory false, in SDKs keepMemory false")
		}
	}
	if err != nil {
		return err
	}
	c.done()
	return nil
}

// setTimeout sets when a sandbox that runs ends, sooner or later.
func (c *call) setTimeout() error {
	var b struct {
		Timeout *float64 `json:"timeout"`
	}
	if err := c.body(&b); err != nil {
		return err
	}
	if b.Timeout == nil {
		return cove.InvalidField("timeout", "is missing; it is a number of seconds")
	}
	return c.renew(b.Timeout, false)
}

// refresh gives a sandbox that runs more time, and never less.
func (c *call) refresh() error {
	var b struct {
		Duration *float64 `json:"duration"`
	}
	if err := c.body(&b); err != nil {
		return err
	}
	return c.renew(b.Duration, true)
}

func (c *call) renew(seconds *float64, laterOnly bool) error {
	left, err := timeOf(seconds)
	if err != nil {
		return err
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	if !rests(s) && (!laterOnly || sandboxEnd(s).Before(time.Now().Add(left))) {
		if s, err = c.platform.Sessions().Renew(c.r.Context(), s.ID, left); err != nil {
			return err
		}
	}
	if rests(s) { // since just now, it may be
		return cove.Errorf(cove.NotFound, "sandbox %s is paused", s.ID).Remedy("connect to it, which gives it time")
	}
	c.done()
	return nil
}

// kill ends a sandbox.
func (c *call) kill() error {
	id, err := c.target()
	if err != nil {
		return err
	}
	if _, err := c.platform.Sessions().Close(c.r.Context(), id, false); err != nil {
		return err
	}
	c.done()
	return nil
}
