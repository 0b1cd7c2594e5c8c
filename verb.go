package cove

import "slices"

// Verb names one method of one part of [Platform]: what a principal wants to do.
type Verb string

// The verbs, one for each method.
const (
	SessionOpen  Verb = "session.open"
	SessionGet   Verb = "session.get"
	SessionList  Verb = "session.list"
	SessionRenew Verb = "session.renew"
	SessionStop  Verb = "session.stop"
	SessionStart Verb = "session.start"
	SessionClose Verb = "session.close"
	SessionUsage Verb = "session.usage"

	SessionSetNetwork  Verb = "session.set_network"
	SessionConnections Verb = "session.connections"

	ProcessExec    Verb = "process.exec"
	ProcessStart   Verb = "process.start"
	ProcessList    Verb = "process.list"
	ProcessConnect Verb = "process.connect"
	ProcessWait    Verb = "process.wait"
	ProcessInput   Verb = "process.input"
	ProcessSignal  Verb = "process.signal"
	ProcessResize  Verb = "process.resize"
	ProcessOutput  Verb = "process.output"

	FileStat    Verb = "file.stat"
	FileRead    Verb = "file.read"
	FileWrite   Verb = "file.write"
	FileList    Verb = "file.list"
	FileMkdir   Verb = "file.mkdir"
	FileMove    Verb = "file.move"
	FileRemove  Verb = "file.remove"
	FileArchive Verb = "file.archive"
	FileUnpack  Verb = "file.unpack"
	FileWatch   Verb = "file.watch"
	FileTag     Verb = "file.tag"

	ContextRun       Verb = "context.run"
	ContextOpen      Verb = "context.open"
	ContextList      Verb = "context.list"
	ContextRestart   Verb = "context.restart"
	ContextInterrupt Verb = "context.interrupt"
	ContextClose     Verb = "context.close"
	ContextAnalyze   Verb = "context.analyze"

	PortDial Verb = "port.dial"

	TrialRun     Verb = "trial.run"
	TrialGet     Verb = "trial.get"
	TrialBefore  Verb = "trial.before"
	TrialCommit  Verb = "trial.commit"
	TrialDiscard Verb = "trial.discard"

	SnapshotPause    Verb = "snapshot.pause"
	SnapshotResume   Verb = "snapshot.resume"
	SnapshotSnapshot Verb = "snapshot.snapshot"
	SnapshotFork     Verb = "snapshot.fork"
	SnapshotList     Verb = "snapshot.list"
	SnapshotDelete   Verb = "snapshot.delete"

	VolumeCreate Verb = "volume.create"
	VolumeGet    Verb = "volume.get"
	VolumeList   Verb = "volume.list"
	VolumeDelete Verb = "volume.delete"

	RunSubmit Verb = "run.submit"
	RunGet    Verb = "run.get"
	RunWait   Verb = "run.wait"
	RunDelete Verb = "run.delete"
	RunList   Verb = "run.list"

	RunAnalyze Verb = "run.analyze"

	DatasetList   Verb = "dataset.list"
	DatasetSchema Verb = "dataset.schema"

	ChatSend     Verb = "chat.send"
	ChatMessages Verb = "chat.messages"
	ChatDelete   Verb = "chat.delete"

	TemplateList   Verb = "template.list"
	TemplateBuild  Verb = "template.build"
	TemplateTag    Verb = "template.tag"
	TemplateDelete Verb = "template.delete"

	LinkDownload Verb = "link.download"
	LinkUpload   Verb = "link.upload"
	LinkPort     Verb = "link.port"
	LinkLogin    Verb = "link.login"

	AdminCreateKey   Verb = "admin.create_key"
	AdminKeys        Verb = "admin.keys"
	AdminRevokeKey   Verb = "admin.revoke_key"
	AdminTenant      Verb = "admin.tenant"
	AdminSetTenant   Verb = "admin.set_tenant"
	AdminStats       Verb = "admin.stats"
	AdminTasks       Verb = "admin.tasks"
	AdminControlTask Verb = "admin.control_task"
	AdminEvents      Verb = "admin.events"
	AdminDoctor      Verb = "admin.doctor"

	NodeList     Verb = "node.list"
	NodeDrain    Verb = "node.drain"
	NodeUncordon Verb = "node.uncordon"
)

// Scope is what a key may do.
type Scope string

// The scopes. ScopeAll holds every other one.
const (
	ScopeAll       Scope = "*"
	ScopeRead      Scope = "sandbox:read"  // see sessions, processes, snapshots and volumes
	ScopeWrite     Scope = "sandbox:write" // open, change and end them
	ScopeExec      Scope = "exec"          // run programs and code, reach ports
	ScopeFileRead  Scope = "files:read"
	ScopeFileWrite Scope = "files:write"
	ScopeRuns      Scope = "runs"      // governed data runs
	ScopeAdmin     Scope = "admin"     // keys, tenants, nodes, maintenance, the journal
	ScopeTemplates Scope = "templates" // build, tag and delete templates of the own tenant
	ScopeMetrics   Scope = "metrics"   // read the server's metrics, and nothing else
	ScopeTrusted   Scope = "trusted"   // run code whose imports nobody looks at
)

// Scopes returns every scope.
func Scopes() []Scope {
	return []Scope{ScopeAll, ScopeRead, ScopeWrite, ScopeExec, ScopeFileRead, ScopeFileWrite, ScopeRuns, ScopeTemplates, ScopeAdmin, ScopeMetrics, ScopeTrusted}
}

// Trait is what the one road needs to know about a verb.
type Trait struct {
	Scope   Scope
	Also    []Scope // do as well, each
	Own     Scope   // does as well where the action is about the caller's own tenant; "" for none
	Reads   bool    // changes nothing: journaled only when denied
	Durable bool    // waits until its journal line is on the disk
	Frees   bool    // gives room back or takes rights away: goes on when the disk is full
}

var traits = map[Verb]Trait{
	SessionOpen: {Scope: ScopeWrite, Durable: true}, SessionGet: {Scope: ScopeRead, Reads: true},
	SessionList: {Scope: ScopeRead, Reads: true}, SessionRenew: {Scope: ScopeWrite},
	SessionStop: {Scope: ScopeWrite}, SessionStart: {Scope: ScopeWrite},
	SessionClose: {Scope: ScopeWrite, Durable: true, Frees: true}, SessionUsage: {Scope: ScopeRead, Reads: true},
	SessionSetNetwork: {Scope: ScopeWrite, Durable: true}, SessionConnections: {Scope: ScopeRead, Reads: true},

	ProcessExec: {Scope: ScopeExec}, ProcessStart: {Scope: ScopeExec}, ProcessList: {Scope: ScopeRead, Reads: true},
	ProcessConnect: {Scope: ScopeExec, Reads: true}, ProcessWait: {Scope: ScopeExec, Reads: true},
	ProcessInput: {Scope: ScopeExec}, ProcessSignal: {Scope: ScopeExec}, ProcessResize: {Scope: ScopeExec},
	ProcessOutput: {Scope: ScopeExec, Reads: true},

	FileStat: {Scope: ScopeFileRead, Reads: true}, FileRead: {Scope: ScopeFileRead, Reads: true},
	FileWrite: {Scope: ScopeFileWrite}, FileList: {Scope: ScopeFileRead, Reads: true}, FileMkdir: {Scope: ScopeFileWrite},
	FileMove: {Scope: ScopeFileWrite}, FileRemove: {Scope: ScopeFileWrite}, FileArchive: {Scope: ScopeFileRead, Reads: true},
	FileUnpack: {Scope: ScopeFileWrite}, FileWatch: {Scope: ScopeFileRead, Reads: true}, FileTag: {Scope: ScopeFileWrite},

	ContextRun: {Scope: ScopeExec}, ContextOpen: {Scope: ScopeExec}, ContextList: {Scope: ScopeRead, Reads: true},
	ContextRestart: {Scope: ScopeExec}, ContextInterrupt: {Scope: ScopeExec}, ContextClose: {Scope: ScopeExec},
	ContextAnalyze: {Scope: ScopeExec, Reads: true},

	PortDial: {Scope: ScopeExec},

	TrialRun: {Scope: ScopeExec}, TrialGet: {Scope: ScopeExec, Reads: true},
	TrialBefore: {Scope: ScopeFileRead, Reads: true}, TrialCommit: {Scope: ScopeExec}, TrialDiscard: {Scope: ScopeExec},

	SnapshotPause: {Scope: ScopeWrite}, SnapshotResume: {Scope: ScopeWrite}, SnapshotSnapshot: {Scope: ScopeWrite, Durable: true},
	SnapshotFork: {Scope: ScopeWrite, Durable: true}, SnapshotList: {Scope: ScopeRead, Reads: true}, SnapshotDelete: {Scope: ScopeWrite, Durable: true, Frees: true},

	VolumeCreate: {Scope: ScopeWrite, Durable: true}, VolumeGet: {Scope: ScopeRead, Reads: true},
	VolumeList: {Scope: ScopeRead, Reads: true}, VolumeDelete: {Scope: ScopeWrite, Durable: true, Frees: true},

	RunSubmit: {Scope: ScopeRuns}, RunGet: {Scope: ScopeRuns, Reads: true}, RunWait: {Scope: ScopeRuns, Reads: true}, RunDelete: {Scope: ScopeRuns},
	RunList: {Scope: ScopeRuns, Reads: true}, RunAnalyze: {Scope: ScopeRuns, Reads: true},

	DatasetList: {Scope: ScopeRuns, Reads: true}, DatasetSchema: {Scope: ScopeRuns, Reads: true},

	ChatSend: {Scope: ScopeRuns}, ChatMessages: {Scope: ScopeRuns, Reads: true}, ChatDelete: {Scope: ScopeRuns},

	TemplateList: {Scope: ScopeRead, Reads: true}, TemplateBuild: {Scope: ScopeAdmin, Own: ScopeTemplates, Durable: true},
	TemplateTag: {Scope: ScopeAdmin, Own: ScopeTemplates, Durable: true}, TemplateDelete: {Scope: ScopeAdmin, Own: ScopeTemplates, Durable: true, Frees: true},

	LinkDownload: {Scope: ScopeFileRead, Durable: true}, LinkUpload: {Scope: ScopeFileWrite, Durable: true},
	LinkPort: {Scope: ScopeExec, Durable: true}, LinkLogin: {Scope: ScopeRead, Also: []Scope{ScopeRuns, ScopeAdmin}, Durable: true},

	AdminCreateKey: {Scope: ScopeAdmin, Durable: true}, AdminKeys: {Scope: ScopeAdmin, Reads: true},
	AdminRevokeKey: {Scope: ScopeAdmin, Durable: true, Frees: true}, AdminTenant: {Scope: ScopeAdmin, Own: ScopeRead, Reads: true},
	AdminSetTenant: {Scope: ScopeAdmin, Durable: true}, AdminStats: {Scope: ScopeRead, Reads: true},
	AdminTasks: {Scope: ScopeAdmin, Reads: true}, AdminControlTask: {Scope: ScopeAdmin},
	AdminEvents: {Scope: ScopeAdmin, Own: ScopeRead, Reads: true}, AdminDoctor: {Scope: ScopeRead, Reads: true},

	NodeList: {Scope: ScopeAdmin, Reads: true}, NodeDrain: {Scope: ScopeAdmin, Durable: true}, NodeUncordon: {Scope: ScopeAdmin, Durable: true},
}

// Trait returns what is known about v. A verb that nobody wrote down needs
// every scope and counts as a change.
func (v Verb) Trait() Trait {
	if t, ok := traits[v]; ok {
		return t
	}
	return Trait{Scope: ScopeAll, Durable: true}
}

// Verbs returns every verb, sorted.
func Verbs() []Verb {
	all := make([]Verb, 0, len(traits))
	for v := range traits {
		all = append(all, v)
	}
	slices.Sort(all)
	return all
}
