package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/cove-sandbox/cove"
)

// tenants remembers the bounds of tenants and what they consumed. That is added
// up in memory and written to the store now and then.
type tenants struct {
	store cove.TenantStore

	mu    sync.Mutex
	known map[string]*tenant // guarded by mu
}

type tenant struct {
	rec     cove.Tenant
	used    cove.Consumption // in all
	unsaved cove.Consumption // the part that the store has not
	tally   tally
}

func (t *tenant) add(by cove.Consumption) {
	t.used, t.unsaved = t.used.Plus(by), t.unsaved.Plus(by)
}

// tally counts what was done since the engine was opened.
type tally struct{ opened, reused, execs int64 }

func (t *tally) add(by tally) {
	t.opened += by.opened
	t.reused += by.reused
	t.execs += by.execs
}

// load returns what is known of a tenant. One without a record has no bounds.
func (t *tenants) load(ctx context.Context, name string) (tenant, error) {
	t.mu.Lock()
	if k := t.known[name]; k != nil {
		defer t.mu.Unlock()
		return *k, nil
	}
	t.mu.Unlock()
	k := &tenant{rec: cove.Tenant{Name: name}}
	rec, err := t.store.GetTenant(ctx, name)
	switch {
	case err == nil:
		k.rec = *rec
	case cove.CodeOf(err) != cove.NotFound:
		return *k, err
	}
	if k.used, err = t.store.AddUsage(ctx, name, cove.Consumption{}); err != nil {
		return *k, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]*tenant{}
	}
	if t.known[name] == nil {
		t.known[name] = k
	}
	return *t.known[name], nil
}

// check returns a tenant's bounds, or Exhausted when its CPU time is used up.
func (t *tenants) check(ctx context.Context, name string) (cove.Bounds, error) {
	k, err := t.load(ctx, name)
	if err != nil {
		return cove.Bounds{}, err
	}
	quota := k.rec.Quota
	if quota.CPUSeconds > 0 && k.used.CPU.Seconds() >= quota.CPUSeconds {
		return quota, cove.Errorf(cove.Exhausted, "the tenant has used its %g seconds of CPU time", quota.CPUSeconds).
			Reason(cove.ReasonTenantQuota).Remedy("ask the operator for a larger quota")
	}
	return quota, nil
}

// put changes a tenant's bounds.
func (t *tenants) put(ctx context.Context, rec cove.Tenant) error {
	if _, err := t.load(ctx, rec.Name); err != nil {
		return err
	}
	if err := t.store.PutTenant(ctx, &rec); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[rec.Name].rec = rec
	return nil
}

// reload looks up the bounds of a tenant, or of all that are known when name is "",
// and what they have consumed on all nodes.
func (t *tenants) reload(ctx context.Context, name string) error {
	t.mu.Lock()
	var names []string
	for known := range t.known {
		if name == "" || name == known {
			names = append(names, known)
		}
	}
	t.mu.Unlock()
	var failed error
	for _, name := range names {
		rec, err := t.again(ctx, name)
		var used cove.Consumption
		if err == nil {
			used, err = t.store.AddUsage(ctx, name, cove.Consumption{})
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		t.mu.Lock()
		k := t.known[name]
		k.rec, k.used = *rec, used.Plus(k.unsaved)
		t.mu.Unlock()
	}
	return failed
}

// again reads the record of a tenant once more. No record is ever removed: one that is
// missing and was there before was lost, and is put back.
func (t *tenants) again(ctx context.Context, name string) (*cove.Tenant, error) {
	rec, err := t.store.GetTenant(ctx, name)
	if cove.CodeOf(err) != cove.NotFound {
		return rec, err
	}
	t.mu.Lock()
	known := t.known[name].rec
	t.mu.Unlock()
	if known.Quota == (cove.Bounds{}) {
		return &cove.Tenant{Name: name}, nil
	}
	return &known, t.store.PutTenant(ctx, &known)
}

// add books what a tenant consumed.
func (t *tenants) add(name string, by cove.Consumption) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.known[name]; k != nil {
		k.add(by)
	}
}

// count adds to what a tenant did.
func (t *tenants) count(name string, by tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.known[name]; k != nil {
		k.tally.add(by)
		k.add(cove.Consumption{Executions: by.execs})
	}
}

// done is what one tenant did, or all of them when name is "".
func (t *tenants) done(name string) tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sum tally
	for n, k := range t.known {
		if name == "" || name == n {
			sum.add(k.tally)
		}
	}
	return sum
}

// flush writes what the store does not have yet.
func (t *tenants) flush(ctx context.Context) error {
	t.mu.Lock()
	due := map[string]cove.Consumption{}
	for name, k := range t.known {
		if k.unsaved != (cove.Consumption{}) {
			due[name], k.unsaved = k.unsaved, cove.Consumption{}
		}
	}
	t.mu.Unlock()
	var failed error
	for name, by := range due {
		if _, err := t.store.AddUsage(ctx, name, by); err != nil {
			failed = errors.Join(failed, err)
			t.mu.Lock()
			t.known[name].unsaved = t.known[name].unsaved.Plus(by)
			t.mu.Unlock()
		}
	}
	return failed
}
