package fence

import "github.com/cove-sandbox/cove/internal/guest/protocol"

// JobKind is what to do with the layers of a workspace.
type JobKind byte

// The kinds of jobs, and the descriptors that each is given. A store is the root
// of a file system whose directories are layers.
const (
	// JobShow makes a stack what a sandbox sees at /workspace, instead of what it
	// sees now. Before that, what the layer Name of the store changes is put into
	// the upper one; after it, the layer To is removed. Namespace, store, and the
	// stores of the lower layers. EBUSY means that somebody uses what is there, and
	// nothing has changed; see also [Torn]. What comes to light when the sandbox's
	// stack is taken away, because that was put over it with Bare, is the new one.
	JobShow JobKind = 1 + iota
	// JobStore makes a store of Bounds with an empty layer To. None; the answer
	// brings the store.
	JobStore
	// JobCopy copies what a sandbox sees at /workspace into the empty layer To.
	// Namespace, and the store of the layer.
	JobCopy
	// JobErase removes the layer Name, if one is named, and gives the store Bounds,
	// if there are any. The store.
	JobErase
	// JobChanges writes down how the layer Name differs from the lower ones. A
	// pipe to write to, the store of Name, and the stores of the lower layers.
	JobChanges
	// JobPack writes the lower layers down as one tree. A file to write to, and
	// their stores.
	JobPack
	// JobUnpack makes the empty layer To what was written down. A file to read
	// from, and the store.
	JobUnpack
	// JobWalls opens the landlock rules of a sandbox for a process that goes there.
	// With Bare its workspace has layers. A pidfd of the first process; the answer
	// brings the ruleset.
	JobWalls
	// JobBefore writes the file Path of the lower layers as it is, if it has no more
	// than Bounds.Size bytes: EFBIG if it has, ENOENT if there is none, and EINVAL if
	// it is no regular one. A pipe to write to, and the stores of the lower layers.
	JobBefore
	// JobMeasure counts the bytes and files of the lower layers but for the first Slack
	// of them, as far as no layer above hides them. The stores of the lower layers.
	JobMeasure
	lastJob = JobMeasure
)

// Job is one thing to do with layers, by who has the rights.
type Job struct {
	Kind JobKind
	// Owner is the user of the host that the files of the sandbox belong to.
	Owner    uint32
	Stack    Stack
	Name, To string
	// Bounds are those of a new store, of what is read, or new ones of the store of a
	// stack if they are not zero; while the stack is being changed, Slack more files fit in.
	Bounds Bounds
	Slack  int64
	// Bare says that nothing is to be taken away from /workspace before: nothing is
	// there, or it stays below, and nobody uses it.
	Bare bool
	Path string // from the top of the workspace
}

// Stack is what a workspace is made of. Upper is a directory of the sandbox's own
// store and takes all changes; it is made if it is not there. Without lower
// layers it is all there is.
type Stack struct {
	Upper string
	Lower []Layer // the topmost first
}

// Layer is a directory that nobody changes any more.
type Layer struct {
	Name  string
	Owner uint32 // of what is in it
}

// PromiseOf is the directory that says that a layer is to be merged, from before it is
// taken off until that is done.
func PromiseOf(layer string) string { return layer + ".commit" }

// WorkOf is the directory that an overlay needs beside its upper one.
func WorkOf(upper string) string { return upper + ".work" }

func (j *Job) encode(e *protocol.Encoder) {
	e.Uint(uint64(j.Kind)) // one byte
	e.Uint(uint64(j.Owner))
	e.Text(j.Stack.Upper)
	e.Uint(uint64(len(j.Stack.Lower)))
	for _, l := range j.Stack.Lower {
		e.Text(l.Name)
		e.Uint(uint64(l.Owner))
	}
	e.Text(j.Name)
	e.Text(j.To)
	j.Bounds.encode(e)
	e.Int(j.Slack)
	e.Bool(j.Bare)
	if j.Kind == JobBefore { // older spawners know none
		e.Text(j.Path)
	}
}

func (j *Job) decode(d *protocol.Decoder) {
	j.Kind = JobKind(d.Byte(byte(lastJob)))
	j.Owner = uint32(d.UpTo(1<<32 - 1)) //nolint:gosec // bounded
	j.Stack.Upper = d.Text(maxName)
	for range d.UpTo(maxFiles) {
		j.Stack.Lower = append(j.Stack.Lower, Layer{d.Text(maxName), uint32(d.UpTo(1<<32 - 1))}) //nolint:gosec // bounded
	}
	j.Name, j.To = d.Text(maxName), d.Text(maxName)
	j.Bounds.decode(d)
	j.Slack, j.Bare = d.Int(), d.Bool()
	if j.Kind == JobBefore {
		j.Path = d.Text(longest)
	}
}

// maxName bounds the name of a layer.
const maxName = 64
