package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/audit"
	"github.com/cove-sandbox/cove/internal/daemon"
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
	needProvider(t, cfg, provider)
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

// fillDisk takes all that is free in a directory's file system, and returns what frees it.
func fillDisk(t *testing.T, dir string) (free func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	for size := 1 << 20; err == nil || size > 1; {
		if _, err = f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if cerr := f.Close(); !errors.Is(err, syscall.ENOSPC) || cerr != nil {
		t.Fatal(err, cerr)
	}
	return func() {
		if err := os.Remove(f.Name()); err != nil {
			t.Error(err)
		}
	}
}

// TestFullDisk: on a full disk a server says so, refuses what is new, answers with what
// ran meanwhile, and closes sessions. It goes on by itself when there is room again.
func TestFullDisk(t *testing.T) {
	dir := mount(t, 0, "size=64m,mode=700")
	cfg := settings(t, "COVE_HOME", filepath.Join(dir, "home"), "COVE_DISK_RESERVE_MB", "0")
	r, end := serve(t, cfg, daemon.Options{})
	c := dial(t, r.URL, tenantKey(t, r, "one"))
	var ids []cove.ID
	for range 8 {
		s, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	if err := daemon.FullHome(cfg); err != nil {
		t.Errorf("doctor, before: %v", err)
	}

	// It is full when the program has begun, and before it writes more than an answer has.
	began, full, ran := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		in, say := io.Pipe()
		go func() { <-full; _, _ = io.WriteString(say, "go\n"); _ = say.Close() }()
		seen := false
		x, err := c.Processes(ids[0]).Exec(t.Context(), cove.ExecRequest{Line: "echo began; read -r word; seq 1 400000; exit 7", Stdin: in, OnOutput: func(cove.Chunk) {
			if !seen {
				seen = true
				close(began)
			}
		}})
		if err == nil && (x.ExitCode != 7 || x.OutputLost == "" || !strings.HasPrefix(string(x.Stdout.Data), "began\n1\n") || !strings.HasSuffix(string(x.Stdout.Data), "400000\n")) {
			err = fmt.Errorf("exit code %d, lost %q, %d bytes", x.ExitCode, x.OutputLost, x.Stdout.Bytes)
		}
		ran <- err
	}()
	<-began
	free := fillDisk(t, dir)
	close(full)
	if err := <-ran; err != nil {
		t.Errorf("the program that ran: %v", err)
	}

	_, err := c.Sessions().Open(t.Context(), cove.OpenRequest{})
	if cove.CodeOf(err) != cove.Exhausted || cove.ReasonOf(err) != cove.ReasonDiskReserve || !strings.Contains(cove.RemedyOf(err), "goes on by itself") {
		t.Errorf("a new session: %v", err)
	}
	if _, err := c.Processes(ids[0]).Exec(t.Context(), cove.ExecRequest{Line: "true"}); cove.ReasonOf(err) != cove.ReasonDiskReserve {
		t.Errorf("a program: %v", err)
	}
	if code, body := ask(t, r.URL+"/ready"); code != http.StatusServiceUnavailable || !strings.Contains(body, "is full") || !strings.Contains(body, " needed") {
		t.Errorf("/ready: %d %s", code, body)
	}
	if err := daemon.FullHome(cfg); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("doctor: %v", err)
	}
	for _, id := range ids[:6] {
		if _, err := c.Sessions().Close(t.Context(), id, false); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	free()
	if code, body := ask(t, r.URL+"/ready"); code != http.StatusOK {
		t.Errorf("/ready with room again: %d %s", code, body)
	}
	if err := workOnce(t, c); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if x, err := c.Processes(ids[7]).Exec(t.Context(), cove.ExecRequest{Line: "echo here"}); err != nil || string(x.Stdout.Data) != "here\n" {
		t.Errorf("an old session: %+v, %v", x, err)
	}
	end()
	if report, err := audit.Verify(t.Context(), filepath.Join(dir, "home", "journal")); err != nil || !report.OK() {
		t.Errorf("the journal: %+v, %v", report, err)
	}
}
