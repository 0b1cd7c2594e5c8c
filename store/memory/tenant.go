package memory

import (
	"context"

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

// AddUsage implements cove.TenantStore.
func (s *Store) AddUsage(ctx context.Context, tenant string, by cove.Consumption) (sum cove.Consumption, err error) {
	err = s.change(ctx, func() error {
		sum = s.usage[tenant].Plus(by)
		if by != (cove.Consumption{}) {
			s.usage[tenant] = sum
		}
		return nil
	})
	return sum, err
}
