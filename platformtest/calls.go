package platformtest

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// target names the things of one tenant that a call is tried on.
type target struct {
	session  cove.ID
	pid      cove.PID
	output   cove.OutputID
	snapshot cove.ID
	volume   cove.ID
	run      cove.ID
	key      cove.ID
	language string
}

// call is the plainest use of one method.
type call struct {
	owned bool // it names a thing that belongs to a tenant
	do    func(ctx context.Context, p cove.Platform, at target) error
}

// calls has one row for every method of every part. The walks over scopes and
// tenants run on it, and a test compares it with the interfaces.
func calls() map[cove.Verb]call {
	table := map[cove.Verb]call{}
	for _, rows := range []map[cove.Verb]call{
		sessionCalls(), networkCalls(), trialCalls(), processCalls(), fileCalls(), contextCalls(), snapshotCalls(), volumeCalls(), runCalls(), templateCalls(), linkCalls(), adminCalls(), nodeCalls(),
	} {
		maps.Copy(table, rows)
	}
	return table
}

// failure is the error of a call whose value does not matter.
func failure[T any](_ T, err error) error { return err }

// first is the error of a sequence's first step; the rest is not wanted.
func first[T any](seq iter.Seq2[T, error]) error {
	next, stop := iter.Pull2(seq)
	defer stop()
	_, err, _ := next()
	return err
}

// shut is the error of a call that opens something.
func shut[T io.Closer](c T, err error) error {
	if err != nil {
		return err
	}
	return c.Close()
}

func sessionCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.SessionOpen: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Sessions().Open(ctx, cove.OpenRequest{}))
		}},
		cove.SessionGet: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Sessions().Get(ctx, at.session))
		}},
		cove.SessionList: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return first(p.Sessions().List(ctx, cove.SessionFilter{}))
		}},
		cove.SessionRenew: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Sessions().Renew(ctx, at.session, time.Hour))
		}},
		cove.SessionStop: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Sessions().Stop(ctx, at.session))
		}},
		cove.SessionStart: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Sessions().Start(ctx, at.session))
		}},
		cove.SessionClose: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Sessions().Close(ctx, at.session, false))
		}},
		cove.SessionUsage: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Sessions().Usage(ctx, at.session))
		}},
		cove.PortDial: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return shut(p.Ports(at.session).Dial(ctx, 8080))
		}},
	}
}

func processCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.ProcessExec: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Processes(at.session).Exec(ctx, cove.ExecRequest{Line: "true"}))
		}},
		cove.ProcessStart: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Processes(at.session).Start(ctx, cove.ExecRequest{Line: "true"}))
		}},
		cove.ProcessList: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return first(p.Processes(at.session).List(ctx))
		}},
		cove.ProcessConnect: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return first(p.Processes(at.session).Connect(ctx, at.pid, 0))
		}},
		cove.ProcessWait: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Processes(at.session).Wait(ctx, at.pid))
		}},
		cove.ProcessInput: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Processes(at.session).Input(ctx, at.pid, []byte("x"), true)
		}},
		cove.ProcessSignal: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Processes(at.session).Signal(ctx, at.pid, "TERM")
		}},
		cove.ProcessResize: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Processes(at.session).Resize(ctx, at.pid, cove.WindowSize{Cols: 80, Rows: 24})
		}},
		cove.ProcessOutput: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Processes(at.session).Output(ctx, at.output, cove.OutputRange{}))
		}},
	}
}

func fileCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.FileStat: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Files(at.session).Stat(ctx, "kept"))
		}},
		cove.FileRead: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return shut(p.Files(at.session).Read(ctx, "kept", 0, 0))
		}},
		cove.FileWrite: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Files(at.session).Write(ctx, "kept", strings.NewReader("other"), 0o644)
		}},
		cove.FileList: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return first(p.Files(at.session).List(ctx, ".", 1))
		}},
		cove.FileMkdir: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Files(at.session).Mkdir(ctx, "made")
		}},
		cove.FileMove: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Files(at.session).Move(ctx, "kept", "moved")
		}},
		cove.FileRemove: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Files(at.session).Remove(ctx, "kept")
		}},
		cove.FileArchive: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return shut(p.Files(at.session).Archive(ctx, "."))
		}},
		cove.FileUnpack: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Files(at.session).Unpack(ctx, ".", tarball(&tar.Header{Name: "kept", Mode: 0o644}))
		}},
		cove.FileWatch: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return first(p.Files(at.session).Watch(ctx, "."))
		}},
		cove.FileTag: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Files(at.session).Tag(ctx, "kept", map[string]string{"k": "v"})
		}},
	}
}

func contextCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.ContextRun: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Contexts(at.session).Run(ctx, cove.CodeRequest{Language: at.language, Code: ""}))
		}},
		cove.ContextOpen: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Contexts(at.session).Open(ctx, cove.ContextSpec{Language: at.language}))
		}},
		cove.ContextList: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return first(p.Contexts(at.session).List(ctx))
		}},
		cove.ContextRestart: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Contexts(at.session).Restart(ctx, "main")
		}},
		cove.ContextInterrupt: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Contexts(at.session).Interrupt(ctx, "main")
		}},
		cove.ContextClose: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Contexts(at.session).Close(ctx, "main")
		}},
		cove.ContextAnalyze: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Contexts(at.session).Analyze(ctx, cove.AnalyzeRequest{Language: "python", Code: "import os"}))
		}},
	}
}

func snapshotCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.SnapshotPause: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Snapshots().Pause(ctx, at.session))
		}},
		cove.SnapshotResume: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Snapshots().Resume(ctx, at.session))
		}},
		cove.SnapshotSnapshot: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Snapshots().Snapshot(ctx, at.session, cove.SnapshotRequest{Name: "again"}))
		}},
		cove.SnapshotFork: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Snapshots().Fork(ctx, at.session, cove.ForkRequest{}))
		}},
		cove.SnapshotList: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return first(p.Snapshots().List(ctx, cove.SnapshotFilter{}))
		}},
		cove.SnapshotDelete: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Snapshots().Delete(ctx, at.snapshot)
		}},
	}
}

func volumeCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.VolumeCreate: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Volumes().Create(ctx, cove.VolumeRequest{Name: "v-" + string(cove.NewID())}))
		}},
		cove.VolumeGet: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Volumes().Get(ctx, string(at.volume)))
		}},
		cove.VolumeList: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return first(p.Volumes().List(ctx, cove.VolumeFilter{}))
		}},
		cove.VolumeDelete: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Volumes().Delete(ctx, string(at.volume))
		}},
	}
}

func runCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.RunSubmit: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Runs().Submit(ctx, cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1"}))
		}},
		cove.RunGet: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Runs().Get(ctx, at.run))
		}},
		cove.RunWait: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return failure(p.Runs().Wait(ctx, at.run))
		}},
		cove.RunDelete: {true, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Runs().Delete(ctx, at.run)
		}},
		cove.RunAnalyze: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Runs().Analyze(ctx, cove.RunRequest{Type: cove.QuerySQL, SQL: "SELECT 1"}))
		}},
		cove.RunList: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			_, err := collect(p.Runs().List(ctx, cove.RunFilter{}))
			return err
		}},
		cove.DatasetList: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			_, err := collect(p.Datasets().List(ctx, cove.DatasetFilter{}))
			return err
		}},
		cove.DatasetSchema: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Datasets().Schema(ctx, "nothing"))
		}},
		cove.ChatSend: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Chats().Send(ctx, cove.ChatRequest{Message: "SQL: SELECT 1"}))
		}},
		cove.ChatMessages: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			_, err := collect(p.Chats().Messages(ctx, cove.MessageFilter{Thread: "t"}))
			return err
		}},
		cove.ChatDelete: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return p.Chats().Delete(ctx, "t")
		}},
	}
}

func adminCalls() map[cove.Verb]call {
	return map[cove.Verb]call{
		cove.AdminCreateKey: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			_, _, err := p.Admin().CreateKey(ctx, cove.KeyRequest{Name: "k", Scopes: []cove.Scope{cove.ScopeRead}})
			return err
		}},
		cove.AdminKeys: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return first(p.Admin().Keys(ctx))
		}},
		cove.AdminRevokeKey: {false, func(ctx context.Context, p cove.Platform, at target) error {
			return p.Admin().RevokeKey(ctx, at.key)
		}},
		cove.AdminTenant: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Admin().Tenant(ctx, "globex"))
		}},
		cove.AdminSetTenant: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return p.Admin().SetTenant(ctx, cove.Tenant{Name: "acme"})
		}},
		cove.AdminStats: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Admin().Stats(ctx))
		}},
		cove.AdminTasks: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Admin().Tasks(ctx))
		}},
		cove.AdminControlTask: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Admin().ControlTask(ctx, "expiry", cove.RunTask))
		}},
		cove.AdminEvents: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return first(p.Admin().Events(ctx, cove.EventFilter{Tenant: "globex", Limit: 1}))
		}},
		cove.AdminDoctor: {false, func(ctx context.Context, p cove.Platform, _ target) error {
			return failure(p.Admin().Doctor(ctx))
		}},
	}
}

// tarball packs headers; a regular file holds its own name.
func tarball(headers ...*tar.Header) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		body := ""
		if h.Typeflag == tar.TypeReg || h.Typeflag == 0 {
			body = h.Name
		}
		h.Size = int64(len(body))
		_ = w.WriteHeader(h) // into memory
		_, _ = io.WriteString(w, body)
	}
	_ = w.Close()
	return &b
}

// things makes one of everything for a tenant.
func (r *rig) things(p cove.Platform) target {
	r.t.Helper()
	at := target{session: r.session(p, cove.Spec{}).ID, language: "none", output: "none", snapshot: cove.NewID(), volume: cove.NewID(), run: cove.NewID(), key: cove.NewID()}
	r.write(p, at.session, "kept", "kept")
	at.pid = r.background(p, at.session, cove.ExecRequest{Line: "echo kept"})
	r.wait(p, at.session, at.pid)
	if e := r.exec(p, at.session, cove.ExecRequest{Line: "seq 1 20000"}); e.OutputID != "" {
		at.output = e.OutputID
	}
	if s, err := p.Snapshots().Snapshot(r.ctx, at.session, cove.SnapshotRequest{Name: "first"}); err == nil {
		at.snapshot = s.ID
	}
	if v, err := p.Volumes().Create(r.ctx, cove.VolumeRequest{Name: "first"}); err == nil {
		at.volume = v.ID
	}
	extras := r.h.Extras()
	if extras.Code != nil {
		at.language = extras.Code.Name
		_, err := p.Contexts(at.session).Open(r.ctx, cove.ContextSpec{Name: "main", Language: at.language})
		r.must(err, "open a context")
	}
	if extras.Query != nil {
		run, err := p.Runs().Submit(r.ctx, extras.Query.Good)
		r.must(err, "submit a run")
		_, err = p.Runs().Wait(r.ctx, run.ID)
		r.must(err, "wait for a run")
		at.run = run.ID
	}
	return at
}
