//go:build !lean

package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/engine"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/recovery"
)

// Embedded is a platform in this process that has a COVE_HOME to itself, as a
// server has, and that nobody else can reach.
type Embedded struct {
	parts *assembly
	lock  *lock
}

// Embed opens a COVE_HOME for this process. Where another one has it, it is
// Conflict, with the pid and the address of that. keep lets sandboxes outlive
// this process, where the provider can; without, they end with it. The caller
// closes it.
func Embed(ctx context.Context, cfg config.Config, keep bool, logger *slog.Logger) (*Embedded, error) {
	return EmbedWith(ctx, cfg, keep, logger, Parts{})
}

// EmbedWith is Embed with parts of the caller's own.
func EmbedWith(ctx context.Context, cfg config.Config, keep bool, logger *slog.Logger, own Parts) (*Embedded, error) {
	if cfg.Redis.URL != "" {
		return nil, cove.InvalidField("REDIS_URL", "makes a node of many, which only cove serve is; unset it, or use that server").Reason(cove.ReasonConfiguration)
	}
	home, err := OpenHome(cfg.Home)
	if err != nil {
		return nil, err
	}
	l, err := home.takeHome(ctx, 0)
	if err != nil {
		return nil, err
	}
	var copies *recovery.Copies
	parts, err := assemble(ctx, cfg, site{
		dir: home.dir, node: cfg.NodeID, spares: cfg.Pool.Size, logger: logger, mortal: !keep, parts: own,
		store: func(ctx context.Context) (_ cove.Store, err error) {
			copies, err = home.openRecords(ctx, logger)
			return copies, err
		},
		look: func(ctx context.Context, a *assembly, ec *engine.Config) error {
			items, err := recoverySite(copies, a, ec, logger).Look(ctx)
			if err == nil && len(items) > 0 {
				err = inRecovery(items)
			}
			return err
		},
	})
	if err == nil {
		if err = l.say(Holder{PID: os.Getpid(), Started: time.Now().UTC()}); err != nil {
			err = errors.Join(homeError(home.dir, err), parts.end(context.WithoutCancel(ctx)))
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.free())
	}
	return &Embedded{parts: parts, lock: l}, nil
}

// As returns the platform as p sees it.
func (e *Embedded) As(p cove.Principal) cove.Platform { return e.parts.engine.As(p) }

// Owner is who runs this process.
func (e *Embedded) Owner() cove.Principal { return owner() }

// Close ends the platform and gives COVE_HOME back.
func (e *Embedded) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	return errors.Join(e.parts.end(ctx), e.lock.free())
}
