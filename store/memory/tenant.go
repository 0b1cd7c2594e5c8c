package memory

import (
	"context"
	"time"

	"github.com/cove-sandbox/cove"
)

// PutTenant implements cove.TenantStore.
func (s *Store) PutTenant(ctx context.Context, t *cove.Tenant) error {
	r, err := newRow(t, field{"name", t.Name})
	if err != nil {
		return err
	}
	return s.change(ctx, func() error {
		s.tenants.put(r)
		return nil
	})
}

// GetTenant implements cove.TenantStore.
func (s *Store) GetTenant(ctx context.Context, name string) (*cove.Tenant, error) {
	return fetch(ctx, s, &s.tenants, name, "such tenant")
}

// AddCPU implements cove.TenantStore.
func (s *Store) AddCPU(ctx context.Context, tenant string, d time.Duration) (sum time.Duration, err error) {
	err = s.change(ctx, func() error {
		s.cpu[tenant] += d
		sum = s.cpu[tenant]
		return nil
	})
	return sum, err
}
