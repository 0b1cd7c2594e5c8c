package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/cove-sandbox/cove"
)

// PutTenant implements cove.TenantStore.
func (s *Store) PutTenant(ctx context.Context, t *cove.Tenant) error {
	if err := identify(text{"name", t.Name}); err != nil {
		return err
	}
	data, err := encode(t)
	if err != nil {
		return err
	}
	notice, err := encode(cove.Notice{Tenant: t.Name})
	if err != nil {
		return err
	}
	_, err = s.put(ctx, record{
		kind: "tenant", id: t.Name, data: data, notice: notice,
		fields: []string{"sessions", strconv.Itoa(t.Quota.Sessions), "memory", strconv.FormatInt(int64(t.Quota.Memory), 10)},
	})
	return err
}

// GetTenant implements cove.TenantStore.
func (s *Store) GetTenant(ctx context.Context, name string) (*cove.Tenant, error) {
	return fetch[cove.Tenant](ctx, s, "tenant", name, "such tenant")
}

// AddUsage implements cove.TenantStore.
func (s *Store) AddUsage(ctx context.Context, tenant string, by cove.Consumption) (cove.Consumption, error) {
	a, err := s.run(ctx, scripts.usage, tenant, strconv.FormatFloat(by.MemoryTime, 'g', -1, 64),
		int64(by.Held), int64(by.CPU), by.Executions, int64(by.Up), int64(by.Down))
	if err != nil {
		return cove.Consumption{}, err
	}
	if !a.is("ok", 6) {
		return cove.Consumption{}, strange(a)
	}
	sum := cove.Consumption{}
	if sum.MemoryTime, err = strconv.ParseFloat(a[1], 64); err != nil {
		return sum, strange(a)
	}
	var n [5]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(a[2+i], 10, 64); err != nil {
			return sum, strange(a)
		}
	}
	sum.Held, sum.CPU, sum.Executions = time.Duration(n[0]), time.Duration(n[1]), n[2]
	sum.Up, sum.Down = cove.Bytes(n[3]), cove.Bytes(n[4])
	return sum, nil
}
