package daemon_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// tenantKey makes a key of a tenant.
func tenantKey(t *testing.T, r daemon.Ready, tenant string) string {
	t.Helper()
	_, secret, err := adminOf(t, r).Admin().CreateKey(t.Context(), cove.KeyRequest{Name: tenant, Tenant: tenant, Scopes: []cove.Scope{cove.ScopeAll}})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// beside has another tenant work until the end is called, which demands that all went
// well.
func beside(t *testing.T, c *client.Client) (end func()) {
	t.Helper()
	stop, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(failed)
		for n := 0; ; n++ {
			if err := workOnce(t, c); err != nil {
				failed <- err
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	return func() {
		t.Helper()
		close(stop)
		if err := <-failed; err != nil {
			t.Errorf("the other tenant: %v", err)
		}
	}
}

// workOnce opens a sandbox, writes a file, runs programs with little and with much
// output, and closes it.
func workOnce(t *testing.T, c *client.Client) error {
	s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		return err
	}
	if err := c.Files(s.ID).Write(t.Context(), "file", strings.NewReader("hello\n"), 0o644); err != nil {
		return err
	}
	for _, line := range []string{"cat file", "seq 1 20000"} {
		x, err := c.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: line})
		if err != nil {
			return err
		}
		if !strings.HasPrefix(string(x.Stdout.Data), map[string]string{"cat file": "hello\n", "seq 1 20000": "1\n2\n"}[line]) || x.ExitCode != 0 {
			return errors.New(line + " wrote " + string(x.Stdout.Data))
		}
	}
	_, err = c.Sessions().Close(t.Context(), s.ID, false)
	return err
}

// TestTenantDisk: a tenant that fills its bound gets 507 with what it keeps, by every
// way in, and another one works beside it as before.
func TestTenantDisk(t *testing.T) {
	for _, provider := range []string{"fake", "local"} {
		t.Run(provider, func(t *testing.T) { tenantDisk(t, provider) })
	}
}

func tenantDisk(t *testing.T, provider string) {
	cfg := settings(t, "COVE_TENANT_DISK_MB", "2", "SANDBOX_PROVIDER", provider)
	reports, err := daemon.Doctor(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range reports {
		if p.Name == provider {
			providertest.Require(t, p.Name, p.Capabilities)
		}
	}
	r, end := serve(t, cfg, daemon.Options{})
	key := tenantKey(t, r, "greedy")
	greedy := dial(t, r.URL, key)
	over := beside(t, dial(t, r.URL, tenantKey(t, r, "modest")))
	s, err := greedy.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err = greedy.Snapshots().Snapshot(t.Context(), s.ID, cove.SnapshotRequest{}); err != nil {
			break
		}
	}
	if cove.CodeOf(err) != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonTenantDisk {
		t.Fatalf("the tenant got %v", err)
	}
	over()

	look := func() (use cove.DiskUse) {
		t.Helper()
		report, err := adminOf(t, r).Admin().Tenant(t.Context(), "greedy")
		if err != nil || report.MaxDisk != 2*cove.MiB || report.Disk.Snapshots < cove.MiB {
			t.Errorf("%+v, %v", report, err)
		}
		return report.Disk
	}
	use := look()
	sandbox := r.URL + "/api/sandboxes/" + string(s.ID)
	for name, req := range map[string][2]string{
		"snapshot": {sandbox + "/snapshot", `{}`}, "exec": {sandbox + "/execute", `{"command":"true"}`}, "stop": {sandbox + "/stop", `{}`},
		"open": {r.URL + "/api/sandboxes", `{}`},
	} {
		got := call(t, http.DefaultClient, "POST", req[0], req[1], "Authorization", "Bearer "+key, "Content-Type", "application/json")
		var p struct {
			Reason, Remedy string
			Details        struct {
				Held  map[string]int64
				Bound int64
			}
		}
		if err := json.Unmarshal([]byte(got.body), &p); err != nil {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if got.status != http.StatusInsufficientStorage || p.Reason != cove.ReasonTenantDisk || cove.Bytes(p.Details.Held["snapshots"]) != use.Snapshots || p.Details.Bound != int64(2*cove.MiB) || p.Remedy == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := call(t, http.DefaultClient, "POST", r.URL+"/v2/sandboxes", `{"templateID":"base"}`, "X-API-Key", key); got.status != http.StatusInsufficientStorage || !strings.Contains(got.body, "delete snapshots") {
		t.Errorf("E2B: %+v", got)
	}
	end()

	r, _ = serve(t, cfg, daemon.Options{})
	if again := look(); again != use {
		t.Errorf("after a restart it keeps %+v, before %+v", again, use)
	}
	if err := workOnce(t, dial(t, r.URL, tenantKey(t, r, "modest"))); err != nil {
		t.Error(err)
	}
	greedy = dial(t, r.URL, key)
	for saved, err := range greedy.Snapshots().List(t.Context(), cove.SnapshotFilter{}) {
		if err == nil {
			err = greedy.Snapshots().Delete(t.Context(), saved.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := workOnce(t, greedy); err != nil {
		t.Errorf("after its snapshots were deleted: %v", err)
	}
}

// TestDiskReserve: a tenant without a bound fills a small disk up to the reserve, and
// another one goes on: the journal and the database have room.
func TestDiskReserve(t *testing.T) {
	const reserve = 24
	home := filepath.Join(mount(t, 0, "size=64m,mode=700"), "home")
	r, _ := serve(t, settings(t, "COVE_HOME", home, "COVE_TENANT_DISK_MB", "0", "COVE_DISK_RESERVE_MB", "24"), daemon.Options{})
	greedy := dial(t, r.URL, tenantKey(t, r, "greedy"))
	modest := dial(t, r.URL, tenantKey(t, r, "modest"))
	over := beside(t, modest)
	s, err := greedy.Sessions().Open(t.Context(), cove.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := greedy.Files(s.ID).Write(t.Context(), "big", strings.NewReader(strings.Repeat("x", 3<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err = greedy.Snapshots().Snapshot(t.Context(), s.ID, cove.SnapshotRequest{}); err != nil {
			break
		}
		if _, err = greedy.Processes(s.ID).Exec(t.Context(), cove.ExecRequest{Line: "seq 1 200000"}); err != nil {
			break
		}
	}
	if cove.CodeOf(err) != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonDiskReserve {
		t.Fatalf("the tenant got %v", err)
	}
	over()
	for range 5 {
		if err := workOnce(t, modest); err != nil {
			t.Errorf("below the reserve: %v", err)
		}
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(home, &st); err != nil {
		t.Fatal(err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < (reserve-4)<<20 || free > (reserve+8)<<20 {
		t.Errorf("%d bytes are free", free)
	}
}
