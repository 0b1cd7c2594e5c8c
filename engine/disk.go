package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/cove-sandbox/cove"
)

// leastItem is what a snapshot or an archive counts as at least, for its record and
// its file. A tenant with less room than that begins nothing.
const leastItem = 64 * cove.KiB

// diskKind is a kind of thing that a tenant keeps on the disk. Artifacts are counted
// by their store.
type diskKind uint8

const (
	diskSnapshot diskKind = iota
	diskArchive
	diskOutput
	diskWorkspace
	diskKinds
)

// diskItem is one of them. Names are unique among all tenants.
type diskItem struct {
	kind diskKind
	name string
}

// diskShare is what an item counts as, and for which tenant.
type diskShare struct {
	tenant  string
	bytes   cove.Bytes
	planned bool // it is not on the disk yet
}

// diskAccount counts what tenants keep on the disk. It is made again from the records
// and the files at every start. The zero value is ready.
type diskAccount struct {
	mu      sync.Mutex
	items   map[diskItem]diskShare            // guarded by mu, as all below
	held    map[string]*[diskKinds]cove.Bytes // by tenant
	planned cove.Bytes
}

// of is what a tenant keeps. The caller holds mu.
func (a *diskAccount) of(tenant string) (u cove.DiskUse) {
	if k := a.held[tenant]; k != nil {
		u.Snapshots, u.Archives, u.Output, u.Workspaces = k[diskSnapshot], k[diskArchive], k[diskOutput], k[diskWorkspace]
	}
	return u
}

// put sets what an item counts as; 0 bytes remove it. The caller holds mu.
func (a *diskAccount) put(item diskItem, now diskShare) {
	was, ok := a.items[item]
	if ok {
		a.held[was.tenant][item.kind] -= was.bytes
		if was.planned {
			a.planned -= was.bytes
		}
		if *a.held[was.tenant] == ([diskKinds]cove.Bytes{}) {
			delete(a.held, was.tenant)
		}
	}
	if now.bytes <= 0 {
		delete(a.items, item)
		return
	}
	if a.items == nil {
		a.items, a.held = map[diskItem]diskShare{}, map[string]*[diskKinds]cove.Bytes{}
	}
	if a.held[now.tenant] == nil {
		a.held[now.tenant] = new([diskKinds]cove.Bytes)
	}
	a.items[item] = now
	a.held[now.tenant][item.kind] += now.bytes
	if now.planned {
		a.planned += now.bytes
	}
}

// countDisk sets what an item takes on the disk, which is known now.
func (e *Engine) countDisk(tenant string, item diskItem, n cove.Bytes) {
	e.disk.mu.Lock()
	defer e.disk.mu.Unlock()
	e.disk.put(item, diskShare{tenant: tenant, bytes: n})
}

// diskCounted is what an item counts as.
func (e *Engine) diskCounted(item diskItem) cove.Bytes {
	e.disk.mu.Lock()
	defer e.disk.mu.Unlock()
	return e.disk.items[item].bytes
}

// freeDisk forgets an item. One that is not known is no error.
func (e *Engine) freeDisk(item diskItem) { e.countDisk("", item, 0) }

// settleDisk sets what an item takes in the end, unless it is gone by now.
func (e *Engine) settleDisk(item diskItem, n cove.Bytes) {
	e.disk.mu.Lock()
	defer e.disk.mu.Unlock()
	if was, ok := e.disk.items[item]; ok {
		e.disk.put(item, diskShare{tenant: was.tenant, bytes: n})
	}
}

// planDisk takes room for an item that is about to be written, or refuses it.
func (e *Engine) planDisk(ctx context.Context, tenant string, item diskItem, n cove.Bytes) error {
	return e.takeDisk(ctx, item, diskShare{tenant: tenant, bytes: n, planned: true}, false)
}

// growDisk makes an item larger while it is written, or refuses that. Beyond the
// tenant's bound only with must.
func (e *Engine) growDisk(ctx context.Context, tenant string, item diskItem, n cove.Bytes, must bool) error {
	return e.takeDisk(ctx, item, diskShare{tenant: tenant, bytes: n}, must)
}

// takeDisk takes room for an item. Old output of the tenant makes room where it is short.
func (e *Engine) takeDisk(ctx context.Context, item diskItem, now diskShare, must bool) error {
	return e.droppingOutput(ctx, now.tenant, func() (cove.Bytes, error) { return e.tryDisk(ctx, item, now, must) })
}

// tryDisk is takeDisk without that; short is how much the tenant keeps too much for it.
func (e *Engine) tryDisk(ctx context.Context, item diskItem, now diskShare, must bool) (short cove.Bytes, err error) {
	artifacts, bound, err := e.diskBound(ctx, now.tenant)
	if err != nil {
		return 0, err
	}
	left, err := e.diskFree()
	if err != nil {
		return 0, err
	}
	a := &e.disk
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.items[item]
	if now.bytes > was.bytes {
		a.put(item, diskShare{}) // what it had so far is not what the tenant keeps beside it
		held := a.of(now.tenant)
		held.Artifacts = artifacts
		beside := needed(held)
		if item.kind == diskArchive { // the workspace goes when the archive is written
			beside -= a.items[diskItem{diskWorkspace, item.name}].bytes
		}
		switch {
		case bound > 0 && beside+now.bytes > bound && !must:
			short, err = beside+now.bytes-bound, diskUsedUp(held, bound, now.bytes)
		case e.cfg.Free != nil && left-a.planned < now.bytes-was.bytes:
			err = e.diskReserved()
		}
		if err != nil {
			a.put(item, was)
			return short, err
		}
	}
	a.put(item, now)
	return 0, nil
}

// diskBound is what the artifacts of a tenant take, and how much it may keep in all.
func (e *Engine) diskBound(ctx context.Context, tenant string) (artifacts, bound cove.Bytes, err error) {
	k, err := e.tenants.load(ctx, tenant)
	if err != nil {
		return 0, 0, err
	}
	if bound = k.rec.Quota.Disk; bound == 0 {
		bound = e.cfg.TenantDisk
	}
	if e.cfg.Artifacts != nil {
		artifacts = e.cfg.Artifacts.Held(tenant)
	}
	return artifacts, bound, nil
}

// diskFree is how much of the disk tenants may still fill.
func (e *Engine) diskFree() (cove.Bytes, error) {
	if e.cfg.Free == nil {
		return 0, nil
	}
	free, err := e.cfg.Free()
	if err != nil {
		return 0, cove.Wrap(cove.Unavailable, err, "the free space of the disk cannot be read").Remedy("have the operator look at the file system of COVE_HOME")
	}
	return free - e.cfg.DiskReserve, nil
}

// diskOf is what a tenant keeps, and how much it may; 0 is no bound.
func (e *Engine) diskOf(ctx context.Context, tenant string) (held cove.DiskUse, bound cove.Bytes, err error) {
	artifacts, bound, err := e.diskBound(ctx, tenant)
	e.disk.mu.Lock()
	defer e.disk.mu.Unlock()
	held = e.disk.of(tenant)
	held.Artifacts = artifacts
	return held, bound, err
}

// needed is what counts against work of a tenant: all but artifacts, which it cannot
// remove.
func needed(held cove.DiskUse) cove.Bytes { return held.Sum() - held.Artifacts }

// roomToBegin refuses work that may keep something where the tenant has used up its disk.
func (e *Engine) roomToBegin(ctx context.Context, tenant string) error {
	return e.droppingOutput(ctx, tenant, func() (cove.Bytes, error) {
		held, bound, err := e.diskOf(ctx, tenant)
		short := needed(held) + leastItem - bound
		if err != nil || bound == 0 || short <= 0 {
			return 0, err
		}
		return short, diskUsedUp(held, bound, leastItem)
	})
}

// roomForArtifact refuses an artifact where all that the tenant keeps has reached its
// bound.
func (e *Engine) roomForArtifact(ctx context.Context, tenant string) error {
	held, bound, err := e.diskOf(ctx, tenant)
	if err == nil && bound > 0 && held.Sum()+leastItem > bound {
		err = cove.Errorf(cove.Exhausted, "the tenant keeps %s on the disk and may keep %s", held.Sum(), bound).Reason(cove.ReasonTenantDisk)
	}
	return err
}

// RoomOnDisk refuses what would be written below the reserve.
func (e *Engine) RoomOnDisk() error {
	left, err := e.diskFree()
	if err != nil || e.cfg.Free == nil {
		return err
	}
	e.disk.mu.Lock()
	defer e.disk.mu.Unlock()
	if left-e.disk.planned < leastItem {
		return e.diskReserved()
	}
	return nil
}

// mayBegin refuses work of a tenant that has used up its CPU time or its disk.
func (e *Engine) mayBegin(ctx context.Context, tenant string) error {
	if _, err := e.tenants.check(ctx, tenant); err != nil {
		return err
	}
	return e.roomToBegin(ctx, tenant)
}

// diskUsedUp says that a tenant keeps as much as it may, and what that is.
func diskUsedUp(held cove.DiskUse, bound, more cove.Bytes) error {
	by := map[string]int64{"artifacts": int64(held.Artifacts)}
	var parts, remedies []string
	for _, k := range []struct {
		name   string
		bytes  cove.Bytes
		remedy string
	}{
		{"snapshots", held.Snapshots, "delete snapshots"},
		{"archives", held.Archives, "close stopped sessions"},
		{"output", held.Output, "end programs in the background"},
		{"workspaces", held.Workspaces, "stop or close sessions with a workspace on disk"},
	} {
		by[k.name] = int64(k.bytes)
		if k.bytes > 0 {
			parts = append(parts, k.name+" "+k.bytes.String())
			remedies = append(remedies, k.remedy)
		}
	}
	if len(remedies) == 0 {
		remedies = []string{"ask for less"}
	}
	text := fmt.Sprintf("the tenant keeps %s on the disk and may keep %s", needed(held), bound)
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	text += fmt.Sprintf("; this needs at least %s", more)
	return cove.Errorf(cove.Exhausted, "%s", text).
		Reason(cove.ReasonTenantDisk).With("held", by).With("bound", int64(bound)).
		Remedy("%s; or have the operator raise the bound with cove tenant set --disk or COVE_TENANT_DISK_MB", strings.Join(remedies, ", "))
}

// diskReserved says that the disk of the machine has no room for tenants.
func (e *Engine) diskReserved() error {
	err := cove.Errorf(cove.Exhausted, "the disk of the server is full")
	if e.cfg.DiskReserve > 0 {
		err = cove.Errorf(cove.Exhausted, "the disk of the server is nearly full: the last %s are for its journal and its database", e.cfg.DiskReserve)
	}
	return err.Reason(cove.ReasonDiskReserve).
		Remedy("delete snapshots and close sessions that are not needed, or have the operator free space in the file system of COVE_HOME")
}

// diskWeight is about what the files of a sandbox take when they are saved.
func diskWeight(ctx context.Context, sandbox cove.Sandbox) cove.Bytes {
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	u, err := sandbox.Usage(ctx)
	if err != nil {
		return leastItem // what is written is counted all the same
	}
	return max(u.Disk+cove.Bytes(u.Files)*cove.KiB, leastItem)
}
