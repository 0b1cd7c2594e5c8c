package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// SetNetwork implements [cove.Sessions].
func (s sessions) SetNetwork(ctx context.Context, id cove.ID, n cove.Network) (*cove.Session, error) {
	return s.c.session(ctx, ask{method: http.MethodPut, path: of(id, "/network"), body: n})
}

// Connections implements [cove.Sessions].
func (s sessions) Connections(ctx context.Context, id cove.ID, after int64) iter.Seq2[cove.Connection, error] {
	a := ask{method: http.MethodGet, path: of(id, "/connections")}
	if after != 0 {
		a.query = values("after", strconv.FormatInt(after, 10))
	}
	return list(ctx, s.c, a, 0, plain(wire.Connection.Cove))
}
