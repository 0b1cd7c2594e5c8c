package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// trip sends a filled T over the wire in the form W and compares what is back.
func trip[T, W any](t *testing.T, form func(T) W, back func(W) (T, error), lost func(*T)) {
	t.Helper()
	sent := filled[T]()
	data, err := json.Marshal(form(sent))
	if err != nil {
		t.Fatal(err)
	}
	var w W
	if err := json.Unmarshal(data, &w); err != nil {
		t.Fatal(err)
	}
	got, err := back(w)
	if err != nil {
		t.Fatal(err)
	}
	if lost != nil {
		lost(&sent)
	}
	if diff := cmp.Diff(sent, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%T (-sent +got):\n%s", sent, diff)
	}
}

// sure makes a way back that cannot fail one that can.
func sure[W, T any](back func(W) T) func(W) (T, error) {
	return func(w W) (T, error) { return back(w), nil }
}

func TestEveryFormGoesThereAndBack(t *testing.T) {
	trip(t, wire.SpecOf, wire.Spec.Cove, func(s *cove.Spec) { s.Floors = nil })
	trip(t, wire.SessionOf, wire.Session.Cove, func(s **cove.Session) {
		(*s).Counted, (*s).Memory, (*s).ArchiveSize, (*s).Was, (*s).WasCause, (*s).Enlarged = nil, 0, 0, "", "", cove.Workspace{}
	})
	trip(t, wire.OpenRequestOf, wire.OpenRequest.Cove, func(r *cove.OpenRequest) { r.IdempotencyKey, r.Spec.Floors = "", nil })
	trip(t, wire.RenewRequestOf, wire.RenewRequest.Cove, nil)
	trip(t, wire.UsageOf, sure(wire.Usage.Cove), nil)
	trip(t, wire.SavedVolumeOf, sure(wire.SavedVolume.Cove), func(v **cove.SavedVolume) { (*v).Pending = false })
	trip(t, wire.SnapshotOf, sure(wire.Snapshot.Cove), func(s **cove.Snapshot) { (*s).Pending, (*s).Disk = false, 0 })
	trip(t, wire.ForkRequestOf, sure(wire.ForkRequest.Cove), func(r *cove.ForkRequest) { r.IdempotencyKey = "" })
	trip(t, wire.ExecutionOf, sure(wire.Execution.Cove), nil)
	trip(t, wire.TrialOf, sure(wire.Trial.Cove), nil)
	trip(t, wire.ConnectionOf, sure(wire.Connection.Cove), nil)
	trip(t, wire.ProcessOf, sure(wire.Process.Cove), nil)
	trip(t, wire.OutputPageOf, sure(wire.OutputPage.Cove), nil)
	trip(t, wire.ChunkOf, sure(func(w wire.Chunk) cove.Chunk { return w.Cove("Stream-2") }), nil)
	trip(t, wire.EventOf, sure(wire.Event.Cove), nil)
	trip(t, wire.CodeRequestOf, wire.CodeRequest.Cove, func(r *cove.CodeRequest) { r.IdempotencyKey = "" })
	trip(t, func(r *cove.CodeResult) wire.CodeResult { return wire.CodeResultOf("s", r) }, sure(wire.CodeResult.Cove), nil)
	trip(t, wire.ContextRequestOf, sure(wire.ContextRequest.Cove), func(s *cove.ContextSpec) { s.IdempotencyKey = "" })
	trip(t, wire.ContextOf, sure(wire.Context.Cove), nil)
	trip(t, wire.FileOf, sure(wire.File.Cove), nil)
	trip(t, wire.ChangeOf, sure(wire.Change.Cove), nil)
	trip(t, wire.KeyRequestOf, wire.KeyRequest.Cove, func(r *cove.KeyRequest) { r.IdempotencyKey, r.Defaults.Floors = "", nil })
	trip(t, wire.KeyOf, wire.Key.Cove, func(k **cove.Key) { (*k).Hash, (*k).Defaults.Floors = nil, nil })
	trip(t, wire.TenantOf, sure(wire.Tenant.Cove), nil)
	trip(t, wire.TenantRequestOf, sure(func(w wire.TenantRequest) cove.Tenant { return w.Cove("string-2") }), func(t *cove.Tenant) { t.UpdatedAt = time.Time{} })
	trip(t, wire.StatsOf, sure(wire.Stats.Cove), nil)
	trip(t, wire.NodeOf, sure(wire.Node.Cove), func(n *cove.Node) {
		n.Capacity.CPUSeconds, n.Capacity.Disk, n.Used.CPUSeconds, n.Used.Disk = 0, 0, 0, 0
	})
	trip(t, func(list []cove.TaskStatus) wire.Maintenance { return wire.MaintenanceOf(list) }, sure(wire.Maintenance.Cove), func(list *[]cove.TaskStatus) {
		(*list)[0], (*list)[1] = (*list)[1], (*list)[0] // by name
	})
	trip(t, wire.RunRequestOf, wire.RunRequest.Cove, func(r *cove.RunRequest) { r.IdempotencyKey = "" })
	trip(t, wire.RunOf, wire.Run.Cove, func(r **cove.Run) { (*r).Request.IdempotencyKey = "" })
	trip(t, wire.RunAnalysisOf, sure(wire.Analysis.CoveRun), nil)
	trip(t, wire.DatasetOf, sure(wire.Dataset.Cove), func(d **cove.Dataset) {
		for i := range (*d).Tables {
			(*d).Tables[i].Stamp, (*d).Tables[i].Source = "", "" // the server's own
		}
	})
	trip(t, wire.ChatRequestOf, wire.ChatRequest.Cove, func(r *cove.ChatRequest) { r.IdempotencyKey = "" })
	trip(t, wire.ChatAnswerOf, wire.ChatAnswer.Cove, func(a **cove.ChatAnswer) { (*a).Result.Request.IdempotencyKey = "" })
	trip(t, wire.MessageOf, sure(wire.Message.Cove), nil)
	trip(t, wire.ChatEventOf, func(w wire.ChatEvent) (cove.ChatEvent, error) { return w.Cove("ChatEventKind-2") }, func(e *cove.ChatEvent) { e.Run.Request.IdempotencyKey = "" })
}

func TestRequestsWithBytes(t *testing.T) {
	const odd = "a\xff"
	if w := wire.MkdirRequestOf(odd); w.Name() != odd || w.Path != "" {
		t.Errorf("%+v", w)
	}
	if from, to := wire.MoveRequestOf(odd, "plain").Names(); from != odd || to != "plain" {
		t.Errorf("%q %q", from, to)
	}
	if w := wire.InputRequestOf([]byte(odd), true); string(w.Bytes()) != odd || !w.EOF || w.Data != nil {
		t.Errorf("%+v", w)
	}
	if w := wire.InputRequestOf(nil, false); len(w.Bytes()) != 0 || w.Data != nil {
		t.Errorf("%+v", w)
	}
	r, err := wire.ExecRequestOf(cove.ExecRequest{Line: "x"}, []byte(odd)).Cove()
	if err != nil || r.Stdin == nil {
		t.Errorf("%+v %v", r, err)
	}
	if k, err := wire.KeyOf(&cove.Key{ID: "k"}).Cove(); err != nil || k.ID != "k" {
		t.Errorf("%+v %v", k, err)
	}
	if r, err := wire.KeyRequestOf(cove.KeyRequest{TTL: -time.Second}).Cove(); err != nil || r.TTL != -time.Second {
		t.Errorf("%+v %v", r, err)
	}
}
