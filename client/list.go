package client

import (
	"context"
	"iter"
	"maps"
	"net/url"
	"strconv"

	"github.com/cove-sandbox/cove/internal/wire"
)

// pageSize is how many elements of a list are fetched at a time.
const pageSize = 500

// list yields the elements of a list, a page at a time, up to most where that
// is not 0.
func list[W, T any](ctx context.Context, c *Client, a ask, most int, back func(W) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		query := url.Values{}
		maps.Copy(query, a.query)
		a := a
		a.query = query
		for left := most; ; {
			size := pageSize
			if most > 0 {
				size = min(size, left)
			}
			query.Set("limit", strconv.Itoa(size))
			p, err := get[wire.Page[W]](ctx, c, a)
			if err != nil {
				yield(zero, err)
				return
			}
			for _, w := range p.Items {
				if t, err := back(w); !yield(t, err) || err != nil {
					return
				}
			}
			left -= len(p.Items)
			// A server that hands out a cursor with nothing before it would
			// keep us here for ever.
			if p.NextCursor == "" || len(p.Items) == 0 || most > 0 && left <= 0 {
				return
			}
			query.Set("cursor", p.NextCursor)
		}
	}
}

// plain makes a way back that cannot fail one that can.
func plain[W, T any](back func(W) T) func(W) (T, error) {
	return func(w W) (T, error) { return back(w), nil }
}

// values makes a query of pairs, without those whose value is empty.
func values(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}
