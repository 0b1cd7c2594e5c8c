package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// Amounts is how much there is, or how much is used.
type Amounts struct {
	Sessions   int     `json:"sessions"`
	MemoryMB   float64 `json:"memory_mb"`
	CPUSeconds float64 `json:"cpu_seconds"`
}

// Tenant is the answer about a tenant. A quota of 0 is no bound.
type Tenant struct {
	Name      string    `json:"name"`
	Quota     Amounts   `json:"quota"`
	Usage     Amounts   `json:"usage"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

// TenantOf returns the form of r.
func TenantOf(r *cove.TenantReport) Tenant {
	return Tenant{
		Name: r.Name, Quota: quotaOf(r.Quota), UpdatedAt: r.UpdatedAt,
		Usage: Amounts{Sessions: r.Sessions, MemoryMB: megabytes(r.Memory), CPUSeconds: in(r.CPU, time.Second)},
	}
}

// Cove returns the platform's own form.
func (w Tenant) Cove() *cove.TenantReport {
	return &cove.TenantReport{
		Tenant:   cove.Tenant{Name: w.Name, Quota: w.Quota.bounds(), UpdatedAt: w.UpdatedAt},
		Sessions: w.Usage.Sessions, Memory: fromMegabytes(w.Usage.MemoryMB), CPU: of(w.Usage.CPUSeconds, time.Second),
	}
}

func quotaOf(b cove.Bounds) Amounts {
	return Amounts{Sessions: b.Sessions, MemoryMB: megabytes(b.Memory), CPUSeconds: b.CPUSeconds}
}

func (a Amounts) bounds() cove.Bounds {
	return cove.Bounds{Sessions: a.Sessions, Memory: fromMegabytes(a.MemoryMB), CPUSeconds: a.CPUSeconds}
}

// TenantRequest sets the bounds of a tenant. A bound that is left out is none.
type TenantRequest struct {
	Quota Amounts `json:"quota"`
}

// TenantRequestOf returns the form of t.
func TenantRequestOf(t cove.Tenant) TenantRequest { return TenantRequest{Quota: quotaOf(t.Quota)} }

// Cove returns the platform's own form for the tenant of that name.
func (w TenantRequest) Cove(name string) cove.Tenant {
	return cove.Tenant{Name: name, Quota: w.Quota.bounds()}
}
