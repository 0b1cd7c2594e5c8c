package measure

import (
	"context"
	"errors"
)

// Kept opens sessions of any kind, one after the other, and counts what their
// processes keep while they do nothing. One more is opened before, so that what all
// share is there already; what appears with that and outlives it is the provider's.
// open returns how to end a session, also with an error if there is something to end.
func Kept(ctx context.Context, sessions int, open func(context.Context) (end func(context.Context) error, err error)) (m Memory, err error) {
	var ends []func(context.Context) error
	defer func() {
		for _, end := range ends {
			err = errors.Join(err, end(context.WithoutCancel(ctx)))
		}
	}()
	first, err := open(ctx)
	if first != nil {
		err = errors.Join(err, first(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return m, err
	}
	before, err := family()
	if err != nil {
		return m, err
	}
	for range sessions {
		end, err := open(ctx)
		if end != nil {
			ends = append(ends, end)
		}
		if err != nil {
			return m, err
		}
	}
	return memoryOf(sessions, before, before)
}
