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
	DiskMB     float64 `json:"disk_mb,omitempty" jsonschema:"kept on the disk; as a bound, 0 means the server's setting for all tenants"`
}

// Disk is what a tenant keeps on the disk.
type Disk struct {
	Snapshots  cove.Bytes `json:"snapshots_bytes"`
	Archives   cove.Bytes `json:"archives_bytes" jsonschema:"the workspaces of stopped sessions"`
	Output     cove.Bytes `json:"output_bytes" jsonschema:"of programs, and what is set aside for that of background programs"`
	Artifacts  cove.Bytes `json:"artifacts_bytes" jsonschema:"code that was run and what came of it"`
	Workspaces cove.Bytes `json:"workspaces_bytes" jsonschema:"what workspaces on disk take at most"`
	Bound      cove.Bytes `json:"bound_bytes" jsonschema:"on all of it; 0 is none"`
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
	Disk      Disk       `json:"disk"`
	Consumed  Consumed   `json:"consumed"`
	Cost      *cove.Cost `json:"cost,omitempty" jsonschema:"an estimate for what was consumed; left out where the server knows no prices"`
	UpdatedAt time.Time  `json:"updated_at,omitzero"`
}

// TenantOf returns the form of r.
func TenantOf(r *cove.TenantReport) Tenant {
	return Tenant{
		Name: r.Name, Quota: quotaOf(r.Quota), UpdatedAt: r.UpdatedAt,
		Usage: Amounts{Sessions: r.Sessions, MemoryMB: megabytes(r.Memory), CPUSeconds: in(r.Used.CPU, time.Second), DiskMB: megabytes(r.Disk.Sum())},
		Disk:  Disk{r.Disk.Snapshots, r.Disk.Archives, r.Disk.Output, r.Disk.Artifacts, r.Disk.Workspaces, r.MaxDisk},
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
		Disk:    cove.DiskUse{Snapshots: w.Disk.Snapshots, Archives: w.Disk.Archives, Output: w.Disk.Output, Artifacts: w.Disk.Artifacts, Workspaces: w.Disk.Workspaces},
		MaxDisk: w.Disk.Bound,
		Used: cove.Consumption{
			Held: of(w.Consumed.SessionSeconds, time.Second), MemoryTime: w.Consumed.MemoryGBSeconds, CPU: of(w.Consumed.CPUSeconds, time.Second),
			Executions: w.Consumed.Executions, Up: w.Consumed.UploadedBytes, Down: w.Consumed.DownloadedBytes,
		},
		Cost: w.Cost,
	}
}

func quotaOf(b cove.Bounds) Amounts {
	return Amounts{Sessions: b.Sessions, MemoryMB: megabytes(b.Memory), CPUSeconds: b.CPUSeconds, DiskMB: megabytes(b.Disk)}
}

func (a Amounts) bounds() cove.Bounds {
	return cove.Bounds{Sessions: a.Sessions, Memory: fromMegabytes(a.MemoryMB), CPUSeconds: a.CPUSeconds, Disk: fromMegabytes(a.DiskMB)}
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
