package daemon

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/cove-sandbox/cove"
)

// What tests need beside the exported names.
const MaxLog = maxLog

func (h Home) TakeLane() (number int, giveBack func(clean bool) error, err error) {
	l, err := h.takeLane()
	if err != nil {
		return 0, nil, err
	}
	return l.number, l.giveBack, nil
}

func (h Home) TakeHome(ctx context.Context, wait time.Duration, who Holder) (free func() error, err error) {
	l, err := h.takeHome(ctx, wait)
	if err != nil {
		return nil, err
	}
	return l.free, l.say(who)
}

func ListenSocket(path string) (net.Listener, error) { return listenSocket(path) }

func ListenSocketAs(path string, uid int) (net.Listener, error) {
	l, err := listenSocket(path)
	if err != nil {
		return nil, err
	}
	own := l.(ownSocket) //nolint:forcetypeassert // listenSocket makes no other
	own.uid = uid
	return own, nil
}

type Traffic struct{ t *traffic }

func NewTraffic() Traffic { return Traffic{newTraffic()} }

func (t Traffic) Watch(h http.Handler) http.Handler { return t.t.watch(h) }

func (t Traffic) AwaitIdle(ctx context.Context, d time.Duration, alive func(context.Context) bool) bool {
	return t.t.awaitIdle(ctx, d, alive)
}

func Shut(ctx context.Context, srv *http.Server) error { return shut(ctx, srv) }

func Reachable(address string) string { return reachable(address) }

func Complaint(text string) string { return complaint(text) }

func (h Home) TakeSpawn(ctx context.Context) (free func() error, err error) {
	l, err := awaitLock(ctx, h.spawnFile())
	if err != nil {
		return nil, err
	}
	return l.free, nil
}

// Early is a spare that is prepared ahead of its session.
type Early = early

func PrepareEarly(ctx context.Context, list []cove.Provider, m cove.Mold, within time.Duration) *Early {
	return prepareEarly(ctx, list, m, within, func(s cove.Spare) cove.Spare { return s })
}

func (e *early) Take(ctx context.Context, m cove.Mold) (cove.Spare, bool) { return e.take(ctx, m) }

func (e *early) Discard() error { return e.discard() }

// Verifier is what /api/verify does.
var Verifier = verifier
