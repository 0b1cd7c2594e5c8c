package httpapi

import (
	"iter"
	"strconv"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

const (
	defaultPage = 100
	maxPage     = 1000
)

// pageParams are those of every list.
var pageParams = []param{
	{name: "limit", kind: number, from: 1, to: maxPage, doc: "how many at most; left out, 100"},
	{name: "cursor", kind: word, doc: "next_cursor of the page before"},
}

func (c *call) pageSize() int {
	if n := c.query.number("limit"); n > 0 {
		return int(n)
	}
	return defaultPage
}

// page takes up to limit elements of a list that goes on after a cursor. The
// list should be asked for one more, so that its end is known.
func page[T, W any](list iter.Seq2[T, error], limit int, form func(T) W, cursor func(T) string) (wire.Page[W], error) {
	return pageWhile(list, limit, func(T) bool { return true }, form, cursor)
}

// pageWhile is page for elements of very different sizes: it ends before one for
// which there is no room, but has one at least.
func pageWhile[T, W any](list iter.Seq2[T, error], limit int, room func(T) bool, form func(T) W, cursor func(T) string) (wire.Page[W], error) {
	p := wire.Page[W]{Items: []W{}}
	var last T
	for elem, err := range list {
		if err != nil {
			return p, err
		}
		if fits := room(elem); len(p.Items) == limit || !fits && len(p.Items) > 0 {
			p.NextCursor = cursor(last)
			break
		}
		p.Items = append(p.Items, form(elem))
		last = elem
	}
	return p, nil
}

// pageBySkip is page for a list without cursors of its own: the cursor counts
// the elements before it.
func pageBySkip[T, W any](c *call, list iter.Seq2[T, error], form func(T) W) (wire.Page[W], error) {
	skip, err := c.skip()
	if err != nil {
		return wire.Page[W]{}, err
	}
	limit := c.pageSize()
	rest := func(yield func(T, error) bool) {
		seen := 0
		for elem, err := range list {
			if seen++; err == nil && seen <= skip {
				continue
			}
			if !yield(elem, err) {
				return
			}
		}
	}
	return page(rest, limit, form, func(T) string { return strconv.Itoa(skip + limit) })
}

// skip is a cursor that counts the elements before it.
func (c *call) skip() (int, error) {
	text := c.query.text("cursor")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badCursor(text)
	}
	return n, nil
}

func badCursor(text string) error {
	return cove.InvalidField("cursor", "%.40q is not a cursor of this list; use next_cursor of the page before", text)
}
