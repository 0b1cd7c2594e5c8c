package platformtest

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"net"
	"time"

	"github.com/cove-sandbox/cove"
)

// recorder is a Platform that writes down what was called. It embeds nothing,
// so that a new method of a part does not compile until it is recorded here.
type recorder struct {
	in  cove.Platform
	rec *record
}

func (r recorder) Sessions() cove.Sessions { return sessionRecorder{r.in.Sessions(), r.rec} }
func (r recorder) Processes(id cove.ID) cove.Processes {
	return processRecorder{r.in.Processes(id), r.rec}
}
func (r recorder) Files(id cove.ID) cove.Files { return fileRecorder{r.in.Files(id), r.rec} }
func (r recorder) Contexts(id cove.ID) cove.Contexts {
	return contextRecorder{r.in.Contexts(id), r.rec}
}
func (r recorder) Ports(id cove.ID) cove.Ports { return portRecorder{r.in.Ports(id), r.rec} }
func (r recorder) Trials(id cove.ID) cove.Trials {
	return trialRecorder{r.in.Trials(id), r.rec}
}
func (r recorder) Snapshots() cove.Snapshots { return snapshotRecorder{r.in.Snapshots(), r.rec} }
func (r recorder) Volumes() cove.Volumes     { return volumeRecorder{r.in.Volumes(), r.rec} }
func (r recorder) Runs() cove.Runs           { return runRecorder{r.in.Runs(), r.rec} }
func (r recorder) Datasets() cove.Datasets   { return datasetRecorder{r.in.Datasets(), r.rec} }
func (r recorder) Chats() cove.Chats         { return chatRecorder{r.in.Chats(), r.rec} }
func (r recorder) Templates() cove.Templates { return templateRecorder{r.in.Templates(), r.rec} }
func (r recorder) Links() cove.Links         { return linkRecorder{r.in.Links(), r.rec} }
func (r recorder) Admin() cove.Admin         { return adminRecorder{r.in.Admin(), r.rec} }
func (r recorder) Nodes() cove.Nodes         { return nodeRecorder{r.in.Nodes(), r.rec} }

type sessionRecorder struct {
	in  cove.Sessions
	rec *record
}

func (r sessionRecorder) Open(ctx context.Context, req cove.OpenRequest) (*cove.Session, error) {
	return noted[*cove.Session](r.rec, cove.SessionOpen)(r.in.Open(ctx, req))
}

func (r sessionRecorder) Get(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return noted[*cove.Session](r.rec, cove.SessionGet)(r.in.Get(ctx, id))
}

func (r sessionRecorder) List(ctx context.Context, f cove.SessionFilter) iter.Seq2[*cove.Session, error] {
	return notedSeq(r.rec, cove.SessionList, r.in.List(ctx, f))
}

func (r sessionRecorder) Renew(ctx context.Context, id cove.ID, d time.Duration) (*cove.Session, error) {
	return noted[*cove.Session](r.rec, cove.SessionRenew)(r.in.Renew(ctx, id, d))
}

func (r sessionRecorder) Stop(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return noted[*cove.Session](r.rec, cove.SessionStop)(r.in.Stop(ctx, id))
}

func (r sessionRecorder) Start(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return noted[*cove.Session](r.rec, cove.SessionStart)(r.in.Start(ctx, id))
}

func (r sessionRecorder) Close(ctx context.Context, id cove.ID, keep bool) (cove.ID, error) {
	return noted[cove.ID](r.rec, cove.SessionClose)(r.in.Close(ctx, id, keep))
}

func (r sessionRecorder) Usage(ctx context.Context, id cove.ID) (cove.Usage, error) {
	return noted[cove.Usage](r.rec, cove.SessionUsage)(r.in.Usage(ctx, id))
}

func (r sessionRecorder) SetNetwork(ctx context.Context, id cove.ID, n cove.Network) (*cove.Session, error) {
	return noted[*cove.Session](r.rec, cove.SessionSetNetwork)(r.in.SetNetwork(ctx, id, n))
}

func (r sessionRecorder) Connections(ctx context.Context, id cove.ID, after int64) iter.Seq2[cove.Connection, error] {
	return notedSeq(r.rec, cove.SessionConnections, r.in.Connections(ctx, id, after))
}

type trialRecorder struct {
	in  cove.Trials
	rec *record
}

func (r trialRecorder) Run(ctx context.Context, req cove.TrialRequest) (*cove.TrialResult, error) {
	return noted[*cove.TrialResult](r.rec, cove.TrialRun)(r.in.Run(ctx, req))
}

func (r trialRecorder) Get(ctx context.Context) (*cove.TrialResult, error) {
	return noted[*cove.TrialResult](r.rec, cove.TrialGet)(r.in.Get(ctx))
}

func (r trialRecorder) Before(ctx context.Context, name string) ([]byte, error) {
	return noted[[]byte](r.rec, cove.TrialBefore)(r.in.Before(ctx, name))
}

func (r trialRecorder) Commit(ctx context.Context) error {
	return r.rec.done(cove.TrialCommit, r.in.Commit(ctx))
}

func (r trialRecorder) Discard(ctx context.Context) error {
	return r.rec.done(cove.TrialDiscard, r.in.Discard(ctx))
}

type processRecorder struct {
	in  cove.Processes
	rec *record
}

func (r processRecorder) Exec(ctx context.Context, req cove.ExecRequest) (*cove.Execution, error) {
	return noted[*cove.Execution](r.rec, cove.ProcessExec)(r.in.Exec(ctx, req))
}

func (r processRecorder) Start(ctx context.Context, req cove.ExecRequest) (*cove.ProcessInfo, error) {
	return noted[*cove.ProcessInfo](r.rec, cove.ProcessStart)(r.in.Start(ctx, req))
}

func (r processRecorder) List(ctx context.Context) iter.Seq2[cove.ProcessInfo, error] {
	return notedSeq(r.rec, cove.ProcessList, r.in.List(ctx))
}

func (r processRecorder) Connect(ctx context.Context, pid cove.PID, offset int64) iter.Seq2[cove.Chunk, error] {
	return notedSeq(r.rec, cove.ProcessConnect, r.in.Connect(ctx, pid, offset))
}

func (r processRecorder) Wait(ctx context.Context, pid cove.PID) (*cove.Execution, error) {
	return noted[*cove.Execution](r.rec, cove.ProcessWait)(r.in.Wait(ctx, pid))
}

func (r processRecorder) Input(ctx context.Context, pid cove.PID, data []byte, eof bool) error {
	return r.rec.done(cove.ProcessInput, r.in.Input(ctx, pid, data, eof))
}

func (r processRecorder) Signal(ctx context.Context, pid cove.PID, sig cove.Signal) error {
	return r.rec.done(cove.ProcessSignal, r.in.Signal(ctx, pid, sig))
}

func (r processRecorder) Resize(ctx context.Context, pid cove.PID, size cove.WindowSize) error {
	return r.rec.done(cove.ProcessResize, r.in.Resize(ctx, pid, size))
}

func (r processRecorder) Output(ctx context.Context, id cove.OutputID, o cove.OutputRange) (*cove.OutputPage, error) {
	return noted[*cove.OutputPage](r.rec, cove.ProcessOutput)(r.in.Output(ctx, id, o))
}

type fileRecorder struct {
	in  cove.Files
	rec *record
}

func (r fileRecorder) Stat(ctx context.Context, name string) (cove.FileInfo, error) {
	return noted[cove.FileInfo](r.rec, cove.FileStat)(r.in.Stat(ctx, name))
}

func (r fileRecorder) Read(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return noted[io.ReadCloser](r.rec, cove.FileRead)(r.in.Read(ctx, name, offset, length))
}

func (r fileRecorder) Write(ctx context.Context, name string, body io.Reader, mode fs.FileMode) error {
	return r.rec.done(cove.FileWrite, r.in.Write(ctx, name, body, mode))
}

func (r fileRecorder) List(ctx context.Context, dir string, depth int) iter.Seq2[cove.FileInfo, error] {
	return notedSeq(r.rec, cove.FileList, r.in.List(ctx, dir, depth))
}

func (r fileRecorder) Mkdir(ctx context.Context, name string) error {
	return r.rec.done(cove.FileMkdir, r.in.Mkdir(ctx, name))
}

func (r fileRecorder) Move(ctx context.Context, from, to string) error {
	return r.rec.done(cove.FileMove, r.in.Move(ctx, from, to))
}

func (r fileRecorder) Remove(ctx context.Context, name string) error {
	return r.rec.done(cove.FileRemove, r.in.Remove(ctx, name))
}

func (r fileRecorder) Archive(ctx context.Context, dir string) (io.ReadCloser, error) {
	return noted[io.ReadCloser](r.rec, cove.FileArchive)(r.in.Archive(ctx, dir))
}

func (r fileRecorder) Unpack(ctx context.Context, dir string, tar io.Reader) error {
	return r.rec.done(cove.FileUnpack, r.in.Unpack(ctx, dir, tar))
}

func (r fileRecorder) Tag(ctx context.Context, name string, meta map[string]string) error {
	return r.rec.done(cove.FileTag, r.in.Tag(ctx, name, meta))
}

func (r fileRecorder) Watch(ctx context.Context, dir string) iter.Seq2[cove.Change, error] {
	return notedSeq(r.rec, cove.FileWatch, r.in.Watch(ctx, dir))
}

type contextRecorder struct {
	in  cove.Contexts
	rec *record
}

func (r contextRecorder) Run(ctx context.Context, req cove.CodeRequest) (*cove.CodeResult, error) {
	return noted[*cove.CodeResult](r.rec, cove.ContextRun)(r.in.Run(ctx, req))
}

func (r contextRecorder) Open(ctx context.Context, spec cove.ContextSpec) (*cove.CodeContext, error) {
	return noted[*cove.CodeContext](r.rec, cove.ContextOpen)(r.in.Open(ctx, spec))
}

func (r contextRecorder) List(ctx context.Context) iter.Seq2[cove.CodeContext, error] {
	return notedSeq(r.rec, cove.ContextList, r.in.List(ctx))
}

func (r contextRecorder) Restart(ctx context.Context, name string) error {
	return r.rec.done(cove.ContextRestart, r.in.Restart(ctx, name))
}

func (r contextRecorder) Interrupt(ctx context.Context, name string) error {
	return r.rec.done(cove.ContextInterrupt, r.in.Interrupt(ctx, name))
}

func (r contextRecorder) Close(ctx context.Context, name string) error {
	return r.rec.done(cove.ContextClose, r.in.Close(ctx, name))
}

func (r contextRecorder) Analyze(ctx context.Context, req cove.AnalyzeRequest) (*cove.CodeAnalysis, error) {
	return noted[*cove.CodeAnalysis](r.rec, cove.ContextAnalyze)(r.in.Analyze(ctx, req))
}

type portRecorder struct {
	in  cove.Ports
	rec *record
}

func (r portRecorder) Dial(ctx context.Context, port int) (net.Conn, error) {
	return noted[net.Conn](r.rec, cove.PortDial)(r.in.Dial(ctx, port))
}

type snapshotRecorder struct {
	in  cove.Snapshots
	rec *record
}

func (r snapshotRecorder) Pause(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return noted[*cove.Session](r.rec, cove.SnapshotPause)(r.in.Pause(ctx, id))
}

func (r snapshotRecorder) Resume(ctx context.Context, id cove.ID) (*cove.Session, error) {
	return noted[*cove.Session](r.rec, cove.SnapshotResume)(r.in.Resume(ctx, id))
}

func (r snapshotRecorder) Snapshot(ctx context.Context, id cove.ID, req cove.SnapshotRequest) (*cove.Snapshot, error) {
	return noted[*cove.Snapshot](r.rec, cove.SnapshotSnapshot)(r.in.Snapshot(ctx, id, req))
}

func (r snapshotRecorder) Fork(ctx context.Context, id cove.ID, as cove.ForkRequest) (*cove.Session, error) {
	return noted[*cove.Session](r.rec, cove.SnapshotFork)(r.in.Fork(ctx, id, as))
}

func (r snapshotRecorder) List(ctx context.Context, f cove.SnapshotFilter) iter.Seq2[*cove.Snapshot, error] {
	return notedSeq(r.rec, cove.SnapshotList, r.in.List(ctx, f))
}

func (r snapshotRecorder) Delete(ctx context.Context, snapshot cove.ID) error {
	return r.rec.done(cove.SnapshotDelete, r.in.Delete(ctx, snapshot))
}

type volumeRecorder struct {
	in  cove.Volumes
	rec *record
}

func (r volumeRecorder) Create(ctx context.Context, req cove.VolumeRequest) (*cove.SavedVolume, error) {
	return noted[*cove.SavedVolume](r.rec, cove.VolumeCreate)(r.in.Create(ctx, req))
}

func (r volumeRecorder) Get(ctx context.Context, ref string) (*cove.SavedVolume, error) {
	return noted[*cove.SavedVolume](r.rec, cove.VolumeGet)(r.in.Get(ctx, ref))
}

func (r volumeRecorder) List(ctx context.Context, f cove.VolumeFilter) iter.Seq2[*cove.SavedVolume, error] {
	return notedSeq(r.rec, cove.VolumeList, r.in.List(ctx, f))
}

func (r volumeRecorder) Delete(ctx context.Context, ref string) error {
	return r.rec.done(cove.VolumeDelete, r.in.Delete(ctx, ref))
}

type runRecorder struct {
	in  cove.Runs
	rec *record
}

func (r runRecorder) Submit(ctx context.Context, req cove.RunRequest) (*cove.Run, error) {
	return noted[*cove.Run](r.rec, cove.RunSubmit)(r.in.Submit(ctx, req))
}

func (r runRecorder) Get(ctx context.Context, id cove.ID) (*cove.Run, error) {
	return noted[*cove.Run](r.rec, cove.RunGet)(r.in.Get(ctx, id))
}

func (r runRecorder) Wait(ctx context.Context, id cove.ID) (*cove.Run, error) {
	return noted[*cove.Run](r.rec, cove.RunWait)(r.in.Wait(ctx, id))
}

func (r runRecorder) Delete(ctx context.Context, id cove.ID) error {
	return r.rec.done(cove.RunDelete, r.in.Delete(ctx, id))
}

func (r runRecorder) Analyze(ctx context.Context, req cove.RunRequest) (*cove.RunDecision, error) {
	return noted[*cove.RunDecision](r.rec, cove.RunAnalyze)(r.in.Analyze(ctx, req))
}

func (r runRecorder) List(ctx context.Context, f cove.RunFilter) iter.Seq2[*cove.Run, error] {
	return notedSeq(r.rec, cove.RunList, r.in.List(ctx, f))
}

type datasetRecorder struct {
	in  cove.Datasets
	rec *record
}

func (r datasetRecorder) List(ctx context.Context, f cove.DatasetFilter) iter.Seq2[*cove.Dataset, error] {
	return notedSeq(r.rec, cove.DatasetList, r.in.List(ctx, f))
}

func (r datasetRecorder) Schema(ctx context.Context, id string) (*cove.Dataset, error) {
	return noted[*cove.Dataset](r.rec, cove.DatasetSchema)(r.in.Schema(ctx, id))
}

type templateRecorder struct {
	in  cove.Templates
	rec *record
}

func (r templateRecorder) List(ctx context.Context) iter.Seq2[cove.Template, error] {
	return notedSeq(r.rec, cove.TemplateList, r.in.List(ctx))
}

func (r templateRecorder) Build(ctx context.Context, req cove.TemplateRequest) (*cove.Template, error) {
	return noted[*cove.Template](r.rec, cove.TemplateBuild)(r.in.Build(ctx, req))
}

func (r templateRecorder) Tag(ctx context.Context, name, as string, shared bool) (*cove.Template, error) {
	return noted[*cove.Template](r.rec, cove.TemplateTag)(r.in.Tag(ctx, name, as, shared))
}

func (r templateRecorder) Delete(ctx context.Context, name string, shared bool) error {
	return r.rec.done(cove.TemplateDelete, r.in.Delete(ctx, name, shared))
}

type chatRecorder struct {
	in  cove.Chats
	rec *record
}

func (r chatRecorder) Send(ctx context.Context, req cove.ChatRequest) (*cove.ChatAnswer, error) {
	return noted[*cove.ChatAnswer](r.rec, cove.ChatSend)(r.in.Send(ctx, req))
}

func (r chatRecorder) Messages(ctx context.Context, f cove.MessageFilter) iter.Seq2[*cove.Message, error] {
	return notedSeq(r.rec, cove.ChatMessages, r.in.Messages(ctx, f))
}

func (r chatRecorder) Delete(ctx context.Context, thread string) error {
	return r.rec.done(cove.ChatDelete, r.in.Delete(ctx, thread))
}

type adminRecorder struct {
	in  cove.Admin
	rec *record
}

func (r adminRecorder) CreateKey(ctx context.Context, req cove.KeyRequest) (*cove.Key, string, error) {
	key, secret, err := r.in.CreateKey(ctx, req)
	r.rec.note(cove.AdminCreateKey, err)
	return key, secret, err
}

func (r adminRecorder) Keys(ctx context.Context) iter.Seq2[*cove.Key, error] {
	return notedSeq(r.rec, cove.AdminKeys, r.in.Keys(ctx))
}

func (r adminRecorder) RevokeKey(ctx context.Context, id cove.ID) error {
	return r.rec.done(cove.AdminRevokeKey, r.in.RevokeKey(ctx, id))
}

func (r adminRecorder) Tenant(ctx context.Context, name string) (*cove.TenantReport, error) {
	return noted[*cove.TenantReport](r.rec, cove.AdminTenant)(r.in.Tenant(ctx, name))
}

func (r adminRecorder) SetTenant(ctx context.Context, t cove.Tenant) error {
	return r.rec.done(cove.AdminSetTenant, r.in.SetTenant(ctx, t))
}

func (r adminRecorder) Stats(ctx context.Context) (*cove.Stats, error) {
	return noted[*cove.Stats](r.rec, cove.AdminStats)(r.in.Stats(ctx))
}

func (r adminRecorder) Tasks(ctx context.Context) ([]cove.TaskStatus, error) {
	return noted[[]cove.TaskStatus](r.rec, cove.AdminTasks)(r.in.Tasks(ctx))
}

func (r adminRecorder) ControlTask(ctx context.Context, name string, do cove.TaskVerb) ([]cove.TaskStatus, error) {
	return noted[[]cove.TaskStatus](r.rec, cove.AdminControlTask)(r.in.ControlTask(ctx, name, do))
}

func (r adminRecorder) Events(ctx context.Context, f cove.EventFilter) iter.Seq2[cove.Event, error] {
	return notedSeq(r.rec, cove.AdminEvents, r.in.Events(ctx, f))
}

func (r adminRecorder) Doctor(ctx context.Context) ([]cove.ProviderReport, error) {
	return noted[[]cove.ProviderReport](r.rec, cove.AdminDoctor)(r.in.Doctor(ctx))
}

type nodeRecorder struct {
	in  cove.Nodes
	rec *record
}

func (r nodeRecorder) List(ctx context.Context) ([]cove.Node, error) {
	return noted[[]cove.Node](r.rec, cove.NodeList)(r.in.List(ctx))
}

func (r nodeRecorder) Drain(ctx context.Context, node string) (*cove.Node, error) {
	return noted[*cove.Node](r.rec, cove.NodeDrain)(r.in.Drain(ctx, node))
}

func (r nodeRecorder) Uncordon(ctx context.Context, node string) (*cove.Node, error) {
	return noted[*cove.Node](r.rec, cove.NodeUncordon)(r.in.Uncordon(ctx, node))
}
