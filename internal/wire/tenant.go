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

// Consumed is what was used in all, since there is the tenant.
type Consumed struct {
	SessionSeconds  float64    `json:"session_seconds" jsonschema:"the time that sandboxes were held, of all of them together"`
	MemoryGBSeconds float64    `json:"memory_gb_seconds" jsonschema:"their memory times the time it was set aside"`
	CPUSeconds      float64    `json:"cpu_seconds"`
	Executions      int64      `json:"executions"`
	UploadedBytes   cove.Bytes `json:"uploaded_bytes" jsonschema:"files and archives sent into sandboxes, and what was sent to ports"`
	DownloadedBytes cove.Bytes `json:"downloaded_bytes" jsonschema:"and what came out"`
}

// Tenant is the answer about a tenant. A quota of 0 is no bound; usage is what
// the quota is compared with.
type Tenant struct {
	Name      string     `json:"name"`
	Quota     Amounts    `json:"quota"`
	Usage     Amounts    `json:"usage"`
	Consumed  Consumed   `json:"consumed"`
	Cost      *cove.Cost `json:"cost,omitempty" jsonschema:"an estimate for what was consumed; left out where the server knows no prices"`
	UpdatedAt time.Time  `json:"updated_at,omitzero"`
}

// TenantOf returns the form of r.
func TenantOf(r *cove.TenantReport) Tenant {
	return Tenant{
		Name: r.Name, Quota: quotaOf(r.Quota), UpdatedAt: r.UpdatedAt,
		Usage: Amounts{Sessions: r.Sessions, MemoryMB: megabytes(r.Memory), CPUSeconds: in(r.Used.CPU, time.Second)},
		Consumed: Consumed{
			SessionSeconds: in(r.Used.Held, time.Second), MemoryGBSeconds: r.Used.MemoryTime, CPUSeconds: in(r.Used.CPU, time.Second),
			Executions: r.Used.Executions, UploadedBytes: r.Used.Up, DownloadedBytes: r.Used.Down,
		},
		Cost: r.Cost,
	}
}

// Cove returns the platform's own form.
func (w Tenant) Cove() *cove.TenantReport {
	return &cove.TenantReport{
		Tenant:   cove.Tenant{Name: w.Name, Quota: w.Quota.bounds(), UpdatedAt: w.UpdatedAt},
		Sessions: w.Usage.Sessions, Memory: fromMegabytes(w.Usage.MemoryMB),
		Used: cove.Consumption{
			Held: of(w.Consumed.SessionSeconds, time.Second), MemoryTime: w.Consumed.MemoryGBSeconds, CPU: of(w.Consumed.CPUSeconds, time.Second),
			Executions: w.Consumed.Executions, Up: w.Consumed.UploadedBytes, Down: w.Consumed.DownloadedBytes,
		},
		Cost: w.Cost,
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
