package httpapi_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cove-sandbox/cove"
)

// trip is one method: how it is called, and what must reach the platform. What
// comes back must be what the fake gave, but for what lost says.
type trip struct {
	call func(ctx context.Context, p cove.Platform) ([]any, error)
	args []any
	lost func(result any)
}

const id = cove.ID("01hsession")

func one[T any](v T, err error) ([]any, error) { return []any{v}, err }
func none(err error) ([]any, error)            { return nil, err }

func list[T any](seq iter.Seq2[T, error]) ([]any, error) {
	out := []T{}
	for v, err := range seq {
		if err != nil {
			return []any{out}, err
		}
		out = append(out, v)
	}
	return []any{out}, nil
}

// listOf is list for pointers, which the fake made of values.
func listOf[T any](seq iter.Seq2[*T, error]) ([]any, error) {
	return list(func(yield func(T, error) bool) {
		for v, err := range seq {
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			if !yield(*v, nil) {
				return
			}
		}
	})
}

func text(r io.ReadCloser, err error) ([]any, error) {
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return []any{string(data)}, err
}

// spec is a filled spec as a caller may send it.
func spec() cove.Spec {
	s := filled[cove.Spec]()
	s.Floors = nil // the engine's own
	return s
}

func exec() cove.ExecRequest {
	return cove.ExecRequest{
		Line: "echo 'hi' \u2028 <&>", Dir: "/workspace/d", Env: map[string]string{"A": "b"}, TTY: &cove.WindowSize{Cols: 3, Rows: 4},
		KeepStdin: true, Limits: cove.Limits{Wall: 1500 * time.Millisecond, Output: 12345},
	}
}

func withStdin(r cove.ExecRequest, text string) cove.ExecRequest {
	r.Stdin = strings.NewReader(text)
	return r
}

func trips() map[cove.Verb]trip {
	all := map[cove.Verb]trip{}
	for _, part := range []map[cove.Verb]trip{sessionTrips(), trialTrips(), processTrips(), fileTrips(), contextTrips(), linkTrips(), volumeTrips(), dataTrips(), adminTrips(), nodeTrips()} {
		maps.Copy(all, part)
	}
	return all
}

type ctxt = context.Context

func sessionTrips() map[cove.Verb]trip {
	filter := cove.SessionFilter{Project: "p", User: "u&x", Thread: "t", State: cove.Running, Node: "n.1", Metadata: map[string]string{"k": "v=w"}}
	asked := filter
	asked.Limit = 501
	return map[cove.Verb]trip{
		cove.SessionOpen: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Sessions().Open(ctx, cove.OpenRequest{Spec: spec(), OnFull: cove.RejectWhenFull, IdempotencyKey: "once é"}))
		}, args(cove.OpenRequest{Spec: spec(), OnFull: cove.RejectWhenFull, IdempotencyKey: "once é"}), nil},
		cove.SessionGet:  {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Sessions().Get(ctx, id)) }, args(id), nil},
		cove.SessionList: {func(ctx ctxt, p cove.Platform) ([]any, error) { return listOf(p.Sessions().List(ctx, filter)) }, args(asked), nil},
		cove.SessionRenew: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Sessions().Renew(ctx, id, 90*time.Second))
		}, args(id, 90*time.Second), nil},
		cove.SessionStop:  {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Sessions().Stop(ctx, id)) }, args(id), nil},
		cove.SessionStart: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Sessions().Start(ctx, id)) }, args(id), nil},
		cove.SessionClose: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Sessions().Close(ctx, id, true)) }, args(id, true), nil},
		cove.SessionUsage: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Sessions().Usage(ctx, id)) }, args(id), nil},

		cove.SnapshotPause:  {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Snapshots().Pause(ctx, id)) }, args(id), nil},
		cove.SnapshotResume: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Snapshots().Resume(ctx, id)) }, args(id), nil},
		cove.SnapshotSnapshot: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Snapshots().Snapshot(ctx, id, filled[cove.SnapshotRequest]()))
		}, args(id, filled[cove.SnapshotRequest]()), nil},
		cove.SnapshotFork: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Snapshots().Fork(ctx, id, filled[cove.ForkRequest]()))
		}, args(id, filled[cove.ForkRequest]()), nil},
		cove.SnapshotList: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return listOf(p.Snapshots().List(ctx, cove.SnapshotFilter{Session: id}))
		}, args(cove.SnapshotFilter{Session: id, Limit: 501}), nil},
		cove.SnapshotDelete: {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Snapshots().Delete(ctx, "snap")) }, args(cove.ID("snap")), nil},
	}
}

func processTrips() map[cove.Verb]trip {
	return map[cove.Verb]trip{
		cove.ProcessExec: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Processes(id).Exec(ctx, withStdin(exec(), "in\x00\xff")))
		}, args(id, exec(), "in\x00\xff"), nil},
		cove.ProcessStart: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Processes(id).Start(ctx, withStdin(cove.ExecRequest{Argv: []string{"a b", "", "c"}}, "in")))
		}, args(id, cove.ExecRequest{Argv: []string{"a b", "", "c"}}, "in"), nil},
		cove.ProcessList: {func(ctx ctxt, p cove.Platform) ([]any, error) { return list(p.Processes(id).List(ctx)) }, args(id), nil},
		cove.ProcessConnect: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return list(p.Processes(id).Connect(ctx, 7, 42))
		}, args(id, cove.PID(7), int64(42)), nil},
		cove.ProcessWait: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Processes(id).Wait(ctx, 7)) }, args(id, cove.PID(7)), nil},
		cove.ProcessInput: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return none(p.Processes(id).Input(ctx, 7, []byte("typed\xfe"), true))
		}, args(id, cove.PID(7), "typed\xfe", true), nil},
		cove.ProcessSignal: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return none(p.Processes(id).Signal(ctx, 7, "USR1"))
		}, args(id, cove.PID(7), cove.Signal("USR1")), nil},
		cove.ProcessResize: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return none(p.Processes(id).Resize(ctx, 7, cove.WindowSize{Cols: 120, Rows: 40}))
		}, args(id, cove.PID(7), cove.WindowSize{Cols: 120, Rows: 40}), nil},
		cove.ProcessOutput: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Processes(id).Output(ctx, "out/1", cove.OutputRange{Stream: cove.Stderr, Offset: 5, Limit: 6, Grep: "a.*b"}))
		}, args(id, cove.OutputID("out/1"), cove.OutputRange{Stream: cove.Stderr, Offset: 5, Limit: 6, Grep: "a.*b"}), nil},
		cove.PortDial: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			c, err := p.Ports(id).Dial(ctx, 8080)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			data, err := io.ReadAll(c)
			if string(data) != "hello from inside" {
				err = errors.Join(err, errors.New("the port said "+string(data)))
			}
			return nil, err
		}, args(id, 8080), nil},
	}
}

func fileTrips() map[cove.Verb]trip {
	const name = "a dir/ü&\xff.txt"
	return map[cove.Verb]trip{
		cove.FileStat: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Files(id).Stat(ctx, name)) }, args(id, name), nil},
		cove.FileRead: {func(ctx ctxt, p cove.Platform) ([]any, error) { return text(p.Files(id).Read(ctx, name, 3, 9)) }, args(id, name, int64(3), int64(9)), nil},
		cove.FileWrite: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return none(p.Files(id).Write(ctx, name, strings.NewReader("new\x00"), 0o755))
		}, args(id, name, "new\x00", fs.FileMode(0o755)), nil},
		cove.FileList: {func(ctx ctxt, p cove.Platform) ([]any, error) { return list(p.Files(id).List(ctx, name, 4)) }, args(id, name, 4), nil},
		cove.FileMkdir: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return none(p.Files(id).Mkdir(ctx, name))
		}, args(id, name), nil},
		cove.FileMove: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return none(p.Files(id).Move(ctx, name, "b\xfe"))
		}, args(id, name, "b\xfe"), nil},
		cove.FileRemove:  {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Files(id).Remove(ctx, name)) }, args(id, name), nil},
		cove.FileArchive: {func(ctx ctxt, p cove.Platform) ([]any, error) { return text(p.Files(id).Archive(ctx, name)) }, args(id, name), nil},
		cove.FileUnpack: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return none(p.Files(id).Unpack(ctx, name, strings.NewReader("a tar")))
		}, args(id, name, "a tar"), nil},
		cove.FileTag: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return none(p.Files(id).Tag(ctx, name, map[string]string{"e2b.k": "ü"}))
		}, args(id, name, map[string]string{"e2b.k": "ü"}), nil},
		cove.FileWatch: {func(ctx ctxt, p cove.Platform) ([]any, error) { return list(p.Files(id).Watch(ctx, name)) }, args(id, name), nil},
	}
}

func contextTrips() map[cove.Verb]trip {
	code := cove.CodeRequest{Language: "python", Code: "print('é')", Context: "c", Limits: cove.Limits{Wall: time.Second, Output: 99}}
	look := cove.AnalyzeRequest{Language: "python", Code: "import os", Imports: cove.ImportsBlock}
	return map[cove.Verb]trip{
		cove.ContextRun: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Contexts(id).Run(ctx, code)) }, args(id, code), nil},
		cove.ContextOpen: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Contexts(id).Open(ctx, filled[cove.ContextSpec]()))
		}, args(id, filled[cove.ContextSpec]()), nil},
		cove.ContextList:      {func(ctx ctxt, p cove.Platform) ([]any, error) { return list(p.Contexts(id).List(ctx)) }, args(id), nil},
		cove.ContextRestart:   {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Contexts(id).Restart(ctx, "..")) }, args(id, ".."), nil},
		cove.ContextInterrupt: {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Contexts(id).Interrupt(ctx, "a/b")) }, args(id, "a/b"), nil},
		cove.ContextClose:     {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Contexts(id).Close(ctx, "a?b#c%")) }, args(id, "a?b#c%"), nil},
		cove.ContextAnalyze:   {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Contexts(id).Analyze(ctx, look)) }, args(id, look), nil},
	}
}

func adminTrips() map[cove.Verb]trip {
	key := filled[cove.KeyRequest]()
	key.Defaults.Floors = nil // the engine's own
	tenant := filled[cove.Tenant]()
	sent := tenant
	sent.UpdatedAt = time.Time{} // the engine's own
	events := cove.EventFilter{Tenant: "acme", Session: id, Kind: "session.", After: 1}
	asked := events
	asked.Limit = 501
	return map[cove.Verb]trip{
		cove.AdminCreateKey: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			k, secret, err := p.Admin().CreateKey(ctx, key)
			return []any{k, secret}, err
		}, args(key), forgetKey},
		cove.AdminKeys:      {func(ctx ctxt, p cove.Platform) ([]any, error) { return listOf(p.Admin().Keys(ctx)) }, nil, forgetKey},
		cove.AdminRevokeKey: {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Admin().RevokeKey(ctx, "key")) }, args(cove.ID("key")), nil},
		cove.AdminTenant:    {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Admin().Tenant(ctx, "acme.eu")) }, args("acme.eu"), nil},
		cove.AdminSetTenant: {func(ctx ctxt, p cove.Platform) ([]any, error) { return none(p.Admin().SetTenant(ctx, tenant)) }, args(sent), nil},
		cove.AdminStats:     {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Admin().Stats(ctx)) }, nil, nil},
		cove.AdminTasks:     {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Admin().Tasks(ctx)) }, nil, nil},
		cove.AdminControlTask: {func(ctx ctxt, p cove.Platform) ([]any, error) {
			return one(p.Admin().ControlTask(ctx, "orphans", cove.RunTask))
		}, args("orphans", cove.RunTask), nil},
		cove.AdminEvents: {func(ctx ctxt, p cove.Platform) ([]any, error) { return list(p.Admin().Events(ctx, events)) }, args(asked), func(result any) {
			if all, ok := result.(*[]cove.Event); ok {
				*all = (*all)[1:] // before the cursor
			}
		}},
		cove.AdminDoctor: {func(ctx ctxt, p cove.Platform) ([]any, error) { return one(p.Admin().Doctor(ctx)) }, nil, nil},
	}
}

// forgetKey takes out of a key what must not travel.
func forgetKey(result any) {
	switch v := result.(type) {
	case **cove.Key:
		k := **v
		k.Hash, k.Defaults.Floors = nil, nil
		*v = &k
	case *[]cove.Key:
		for i := range *v {
			(*v)[i].Hash, (*v)[i].Defaults.Floors = nil, nil
		}
	}
}

// What the platform notes down for itself does not travel.
var same = cmp.Options{
	cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(cove.ExecRequest{}),
	cmpopts.IgnoreFields(cove.Session{}, "Counted", "Memory", "ArchiveSize", "Was", "WasCause", "Enlarged"), cmpopts.IgnoreFields(cove.RunRequest{}, "IdempotencyKey"), cmpopts.IgnoreFields(cove.Snapshot{}, "Pending", "Disk"), cmpopts.IgnoreFields(cove.SavedVolume{}, "Pending"),
	cmpopts.IgnoreFields(cove.Table{}, "Stamp", "Source"), cmpopts.IgnoreFields(cove.Decision{}, "Programs"),
}

// check compares what a method gave with what the fake had given.
func (tr trip) check(t *testing.T, got made, results []any) {
	t.Helper()
	if tr.args != nil {
		if diff := cmp.Diff(tr.args, got.Args, same); diff != "" {
			t.Errorf("the platform was asked for something else (-want +got):\n%s", diff)
		}
	}
	if len(results) != len(got.Results) {
		t.Fatalf("%d results came back, %d were given", len(results), len(got.Results))
	}
	for i, want := range got.Results {
		if tr.lost != nil {
			want = lose(want, tr.lost)
		}
		if diff := cmp.Diff(want, results[i], same); diff != "" {
			t.Errorf("something else came back (-given +got):\n%s", diff)
		}
	}
}

func lose(v any, lost func(any)) any {
	switch v := v.(type) {
	case *cove.Key:
		lost(&v)
		return v
	case []cove.Key:
		lost(&v)
		return v
	case []cove.Event:
		lost(&v)
		return v
	case []cove.Run:
		lost(&v)
		return v
	case []cove.Dataset:
		lost(&v)
		return v
	case []cove.Message:
		lost(&v)
		return v
	case *cove.Node:
		lost(&v)
		return v
	case []cove.Node:
		lost(&v)
		return v
	}
	return v
}

func TestEveryMethodGoesThereAndBack(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *rig{"tcp": func(t *testing.T) *rig { return serve(t) }, "unix": serveUnix} {
		t.Run(name, func(t *testing.T) {
			all := trips()
			for _, verb := range cove.Verbs() {
				t.Run(string(verb), func(t *testing.T) {
					tr, ok := all[verb]
					if !ok {
						t.Fatal("no case calls this method; add one")
					}
					r := open(t)
					results, err := tr.call(t.Context(), r.client)
					if err != nil {
						t.Fatal(err)
					}
					calls := r.fake.seen(verb)
					if len(calls) != 1 {
						t.Fatalf("the platform was called %d times: %v", len(calls), calls)
					}
					tr.check(t, calls[0], results)
				})
			}
		})
	}
}

// TestEveryMethodFails: an error of the platform comes out of every method.
func TestEveryMethodFails(t *testing.T) {
	r := serve(t)
	r.fake.fail = cove.Errorf(cove.Conflict, "not now").Reason(cove.ReasonSessionPaused).Remedy("resume it").With("fields", []string{"a", "b"})
	for verb, tr := range trips() {
		t.Run(string(verb), func(t *testing.T) {
			_, err := tr.call(t.Context(), r.client)
			if !errors.Is(err, cove.Conflict) || cove.ReasonOf(err) != cove.ReasonSessionPaused || cove.RemedyOf(err) != "resume it" || cove.MessageOf(err) != "not now" {
				t.Errorf("the error came back as %v", err)
			}
		})
	}
}

func TestEveryCodeGoesThereAndBack(t *testing.T) {
	r := serve(t)
	for _, code := range cove.Codes() {
		t.Run(string(code), func(t *testing.T) {
			sent := &cove.Error{
				Code: code, Op: "session.get", Message: "what is wrong, ünd so on",
				Details: map[string]any{"reason": "finer", "remedy": "do that", "fields": []string{"a", "b"}, "n": 3, "f": 1.5, "ok": true, "mixed": []any{"a", 1}, "deep": map[string]any{"n": 7}},
				Err:     errors.New("the hidden cause"),
			}
			r.fake.fail = sent
			_, err := r.client.Sessions().Get(t.Context(), id)
			got, ok := errors.AsType[*cove.Error](err)
			if !ok {
				t.Fatalf("%T came back: %v", err, err)
			}
			delete(got.Details, "request_id")
			want := *sent
			want.Err = nil
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("-sent +got:\n%s", diff)
			}
		})
	}
}

// TestForeignErrors: an error that is not ours shows its code and no more.
func TestForeignErrors(t *testing.T) {
	r := serve(t)
	for err, code := range map[error]cove.Code{
		errors.New("password is hunter2"): cove.Internal,
		context.DeadlineExceeded:          cove.Timeout,
		errors.ErrUnsupported:             cove.Unsupported,
	} {
		r.fake.fail = err
		_, got := r.client.Sessions().Get(t.Context(), id)
		if !errors.Is(got, code) || strings.Contains(got.Error(), "hunter2") {
			t.Errorf("%v came back as %v", err, got)
		}
	}
}

func TestStartedRunHasNoAnswer(t *testing.T) {
	r := serve(t)
	run, err := r.client.Runs().Submit(t.Context(), cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1"})
	if err != nil || run.Answer != nil {
		t.Errorf("a run that has begun is %+v, %v", run, err)
	}
}

func TestListsComeInPages(t *testing.T) {
	r := serve(t)
	r.fake.count = 700
	for name, count := range map[string]func() (int, error){
		"sessions": func() (int, error) {
			return length(r.client.Sessions().List(t.Context(), cove.SessionFilter{}))
		},
		"snapshots": func() (int, error) {
			return length(r.client.Snapshots().List(t.Context(), cove.SnapshotFilter{}))
		},
		"volumes":     func() (int, error) { return length(r.client.Volumes().List(t.Context(), cove.VolumeFilter{})) },
		"connections": func() (int, error) { return length(r.client.Sessions().Connections(t.Context(), id, 0)) },
		"runs":        func() (int, error) { return length(r.client.Runs().List(t.Context(), cove.RunFilter{})) },
		"datasets": func() (int, error) {
			return length(r.client.Datasets().List(t.Context(), cove.DatasetFilter{}))
		},
		"messages": func() (int, error) {
			return length(r.client.Chats().Messages(t.Context(), cove.MessageFilter{Thread: "t"}))
		},
		"processes": func() (int, error) { return length(r.client.Processes(id).List(t.Context())) },
		"contexts":  func() (int, error) { return length(r.client.Contexts(id).List(t.Context())) },
		"keys":      func() (int, error) { return length(r.client.Admin().Keys(t.Context())) },
		"events":    func() (int, error) { return length(r.client.Admin().Events(t.Context(), cove.EventFilter{})) },
		"files":     func() (int, error) { return length(r.client.Files(id).List(t.Context(), ".", 1)) },
	} {
		if n, err := count(); err != nil || n != r.fake.count {
			t.Errorf("%d of %d %s came, %v", n, r.fake.count, name, err)
		}
	}
	n, err := length(r.client.Sessions().List(t.Context(), cove.SessionFilter{Limit: 520}))
	if err != nil || n != 520 {
		t.Errorf("of at most 520 sessions came %d, %v", n, err)
	}
	calls := r.fake.seen(cove.SessionList)
	limits := []int{}
	for _, c := range calls[len(calls)-2:] {
		limits = append(limits, c.Args[0].(cove.SessionFilter).Limit)
	}
	if !slices.Equal(limits, []int{501, 21}) {
		t.Errorf("the pages were asked for with limits %v", limits)
	}
}

func length[T any](seq iter.Seq2[T, error]) (int, error) {
	n := 0
	for _, err := range seq {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func TestLeavingAListEarly(t *testing.T) {
	r := serve(t)
	r.fake.count = 600
	for range r.client.Sessions().List(t.Context(), cove.SessionFilter{}) {
		break
	}
	for range r.client.Files(id).List(t.Context(), ".", 1) {
		break
	}
	if n := len(r.fake.seen(cove.SessionList)); n != 1 {
		t.Errorf("%d pages were fetched for one element", n)
	}
}
