package sqlite

import (
	"context"
	"database/sql"

	"github.com/cove-sandbox/cove"
)

const (
	putTenant    = `INSERT INTO tenant (id, data) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET data = excluded.data`
	selectTenant = `SELECT data FROM tenant WHERE id = ?`
	addUsage     = `INSERT INTO usage (tenant, held, memory, cpu, executions, up, down) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (tenant) DO UPDATE SET held = held + excluded.held, memory = memory + excluded.memory, cpu = cpu + excluded.cpu,
			executions = executions + excluded.executions, up = up + excluded.up, down = down + excluded.down
		RETURNING held, memory, cpu, executions, up, down`
	selectUsage = `SELECT held, memory, cpu, executions, up, down FROM usage WHERE tenant = ?`
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

// AddUsage implements cove.TenantStore. Adding nothing only reads.
func (s *Store) AddUsage(ctx context.Context, tenant string, by cove.Consumption) (sum cove.Consumption, err error) {
	scan := func(rows *sql.Rows) (bool, error) {
		return true, rows.Scan(&sum.Held, &sum.MemoryTime, &sum.CPU, &sum.Executions, &sum.Up, &sum.Down)
	}
	if by == (cove.Consumption{}) {
		err = s.reader.query(ctx, selectUsage, []any{tenant}, scan)
	} else {
		args := []any{tenant, int64(by.Held), by.MemoryTime, int64(by.CPU), by.Executions, int64(by.Up), int64(by.Down)}
		err = s.writer.query(ctx, addUsage, args, scan)
	}
	if err != nil {
		return cove.Consumption{}, fault(s.path, err)
	}
	return sum, nil
}
