package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/cove-sandbox/cove"
)

const (
	takeClaim = `INSERT INTO claim (tenant, key, digest, result, node, expires_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (tenant, key) DO UPDATE SET digest = excluded.digest, result = excluded.result, node = excluded.node, expires_at = excluded.expires_at
		WHERE claim.expires_at <= ?`
	selectClaim = `SELECT digest, result, node, expires_at FROM claim WHERE tenant = ? AND key = ?`
	setClaim    = `UPDATE claim SET result = ? WHERE tenant = ? AND key = ?`
	dropClaim   = `DELETE FROM claim WHERE tenant = ? AND key = ?`
	// More than one is dropped for each that is taken, so that they do not pile up.
	purgeClaims = `DELETE FROM claim WHERE (tenant, key) IN
		(SELECT tenant, key FROM claim WHERE expires_at <= ? ORDER BY expires_at LIMIT 8)`
)

// stamp is a form of time in which text sorts as time does, from year 0 to 9999.
const stamp = "2006-01-02T15:04:05.000000000Z"

// TakeClaim implements cove.ClaimStore. Claims that expired are forgotten by
// and by.
func (s *Store) TakeClaim(ctx context.Context, c cove.Claim, now time.Time) (*cove.Claim, error) {
	expires, at := c.ExpiresAt.UTC(), now.UTC().Format(stamp)
	if y := expires.Year(); y < 0 || y > 9999 {
		return nil, cove.InvalidField("expires_at", "the year %d is out of range", y)
	}
	var held *cove.Claim
	err := s.writer.within(ctx, func(ctx context.Context, tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, takeClaim, c.Tenant, c.Key, c.Digest, string(c.Result), c.Node, expires.Format(stamp), at)
		if err != nil {
			return fmt.Errorf("take claim: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			held, err = readClaim(ctx, tx, c.Tenant, c.Key)
			return err
		}
		_, err = tx.ExecContext(ctx, purgeClaims, at)
		return err
	})
	if err != nil {
		return nil, fault(s.path, err)
	}
	return held, nil
}

func readClaim(ctx context.Context, tx *sql.Tx, tenant, key string) (*cove.Claim, error) {
	c := &cove.Claim{Tenant: tenant, Key: key}
	var expires string
	if err := tx.QueryRowContext(ctx, selectClaim, tenant, key).Scan(&c.Digest, &c.Result, &c.Node, &expires); err != nil {
		return nil, fmt.Errorf("read claim: %w", err)
	}
	var err error
	c.ExpiresAt, err = time.Parse(stamp, expires)
	return c, err
}

// SetClaim implements cove.ClaimStore. A claim that is not there is NotFound.
func (s *Store) SetClaim(ctx context.Context, tenant, key string, result cove.ID) error {
	n, err := s.writer.exec(ctx, setClaim, string(result), tenant, key)
	if err != nil {
		return fault(s.path, err)
	}
	if n == 0 {
		return cove.Errorf(cove.NotFound, "the idempotency key %.80q is not claimed", key)
	}
	return nil
}

// DropClaim implements cove.ClaimStore. It is idempotent.
func (s *Store) DropClaim(ctx context.Context, tenant, key string) error {
	return s.write(ctx, dropClaim, tenant, key)
}
