package redis

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cove-sandbox/cove"
)

// How Follow finds that nobody speaks any more, and when it asks again.
const (
	quiet       = 5 * time.Second // then it asks whether anybody is there
	followPause = 100 * time.Millisecond
)

// Follow implements cove.Directory. A connection that ends is made again.
func (s *Store) Follow(ctx context.Context, changed func(cove.Notice)) error {
	for {
		if err := s.usable(ctx); err != nil {
			return err
		}
		err := s.listen(ctx, changed)
		if e := s.usable(ctx); e != nil {
			return e
		}
		s.log.DebugContext(ctx, "news of the directory are interrupted", slog.Any("error", err))
		if err := s.pause(ctx, followPause); err != nil {
			return err
		}
	}
}

// listen tells what is published until the connection breaks.
func (s *Store) listen(ctx context.Context, changed func(cove.Notice)) error {
	sub := s.client.Subscribe(ctx, s.prefix+"notices")
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() }) // a read does not end with its context
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-s.closed:
			_ = sub.Close()
		case <-done:
		}
	}()
	defer func() {
		stop()
		_ = sub.Close() // it is broken anyway
	}()
	asked := false
	for {
		msg, err := sub.ReceiveTimeout(ctx, quiet)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !asked {
			asked = true
			err = sub.Ping(ctx)
			msg = nil
		} else {
			asked = false
		}
		if err != nil {
			return err
		}
		s.tell(ctx, msg, changed)
	}
}

func (s *Store) tell(ctx context.Context, msg any, changed func(cove.Notice)) {
	switch m := msg.(type) {
	case *redis.Subscription:
		if m.Kind == "subscribe" {
			changed(cove.Notice{}) // whatever was said before, nobody heard
		}
	case *redis.Message:
		var n cove.Notice
		if err := json.Unmarshal([]byte(m.Payload), &n); err != nil {
			s.log.WarnContext(ctx, "a notice in the directory cannot be read", slog.Any("error", err))
			n = cove.Notice{}
		}
		changed(n)
	}
}
