package redis

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/cove-sandbox/cove"
)

// oneMaster refuses a master that Sentinels watch, and that goes on taking writes when
// it is cut off from its replicas: a node on its side would renew its lease there, while
// all others have another master and take the node for gone.
func (s *Store) oneMaster(ctx context.Context) error {
	if s.node == "" || !s.watched {
		return nil
	}
	has, err := s.client.ConfigGet(ctx, "min-replicas-*").Result()
	if err != nil {
		if _, answered := err.(redis.Error); !answered { //nolint:errorlint // an answer is not wrapped
			return s.fault(ctx, err)
		}
		s.log.WarnContext(ctx, "whether the master stops when it is cut off from its replicas cannot be seen: this user may not CONFIG GET",
			slog.String("remedy", "see that min-replicas-to-write is 1 or more, and min-replicas-max-lag short"))
		return nil
	}
	replicas, _ := strconv.Atoi(has["min-replicas-to-write"])
	lag, _ := strconv.Atoi(has["min-replicas-max-lag"])
	if most := max(1, int(s.lease.Seconds()/2)); replicas < 1 || lag < 1 || lag > most {
		return cove.InvalidField(field, "the master takes writes when it is cut off from its replicas, so that there could be two; set min-replicas-to-write 1 and min-replicas-max-lag %d on all servers", most).
			Reason(cove.ReasonConfiguration)
	}
	return nil
}
