package datarun

import (
	"context"
	"errors"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb"
)

// Bounds of what is handed to Python, beside the memory that there is.
const (
	maxSavedRows = 10_000_000
	savedPart    = 4 // of the memory
	usualSaved   = 128 * cove.MiB
)

// save hands all rows of a statement to the Python of a session, those that the
// answer leaves out as well.
func (t *task) save(ctx context.Context, place cove.RunSandbox, h *duckdb.Helper, q duckdb.Question) error {
	if place.Code == nil {
		return fail(cove.RunUnavailable, "the session has no Python to hand the rows to")
	}
	q.MaxRows, q.MaxBytes = maxSavedRows, int64(usualSaved)
	if most := t.q.Grant.MaxRows; most > 0 {
		q.MaxRows = most
	}
	if place.Memory > 0 {
		q.MaxBytes = int64(place.Memory / savedPart)
	}
	saving, cancel := context.WithTimeout(ctx, t.q.Request.Timeout)
	defer cancel()
	said, err := h.Save(saving, q, t.q.Request.SaveAs, place.Code)
	switch {
	case err != nil && saving.Err() != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return overtime(t)
	case err != nil:
		return err
	case said.Truncated:
		t.answer.Stderr += "not all rows are in " + t.q.Request.SaveAs + "\n"
	}
	return nil
}
