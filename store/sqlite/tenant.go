package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/cove-sandbox/cove"
)

const (
	putTenant    = `INSERT INTO tenant (id, data) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET data = excluded.data`
	selectTenant = `SELECT data FROM tenant WHERE id = ?`
	addCPU       = `INSERT INTO cpu (tenant, used) VALUES (?, ?)
		ON CONFLICT (tenant) DO UPDATE SET used = used + excluded.used RETURNING used`
	selectCPU = `SELECT used FROM cpu WHERE tenant = ?`
)

// PutTenant implements cove.TenantStore.
func (s *Store) PutTenant(ctx context.Context, t *cove.Tenant) error {
	if err := identify(field{"name", t.Name}); err != nil {
		return err
	}
	data, err := encode(t)
	if err != nil {
		return err
	}
	return s.write(ctx, putTenant, t.Name, data)
}

// GetTenant implements cove.TenantStore.
func (s *Store) GetTenant(ctx context.Context, name string) (*cove.Tenant, error) {
	return get[cove.Tenant](ctx, s, "such tenant", selectTenant, name)
}

// AddCPU implements cove.TenantStore. Adding nothing only reads.
func (s *Store) AddCPU(ctx context.Context, tenant string, d time.Duration) (time.Duration, error) {
	var sum int64
	var err error
	if d == 0 {
		err = s.reader.row(ctx, selectCPU, []any{tenant}, &sum)
	} else {
		err = s.writer.row(ctx, addCPU, []any{tenant, int64(d)}, &sum)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fault(s.path, err)
	}
	return time.Duration(sum), nil
}
