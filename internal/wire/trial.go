package wire

import "github.com/cove-sandbox/cove"

// TrialRequest asks for a program to be run on trial.
type TrialRequest struct {
	ExecRequest

	Then cove.TrialEnd `json:"then,omitempty" jsonschema:"commit, discard or commit_on_success when it has ended; left out, the trial stays open"`
}

// TrialRequestOf returns the form of r with stdin as its input.
func TrialRequestOf(r cove.TrialRequest, stdin []byte) TrialRequest {
	return TrialRequest{ExecRequest: ExecRequestOf(r.ExecRequest, stdin), Then: r.Then}
}

// Cove returns the platform's own form.
func (w TrialRequest) Cove() (cove.TrialRequest, error) {
	r := cove.TrialRequest{Then: w.Then}
	if w.Background {
		return r, cove.InvalidField("background", "a program on trial runs to its end; leave it out")
	}
	var err error
	r.ExecRequest, err = w.ExecRequest.Cove()
	return r, err
}

// Trial is the answer about a trial.
type Trial struct {
	Open      bool         `json:"open" jsonschema:"neither committed nor discarded yet"`
	Committed bool         `json:"committed"`
	Created   int64        `json:"created" jsonschema:"how many files in all"`
	Modified  int64        `json:"modified"`
	Removed   int64        `json:"removed"`
	Bytes     cove.Bytes   `json:"bytes" jsonschema:"in the files that were created or modified"`
	Truncated bool         `json:"truncated" jsonschema:"there are more changes than the list has"`
	Changes   []FileChange `json:"changes" jsonschema:"sorted by path"`
	Execution *Execution   `json:"execution,omitempty" jsonschema:"left out where the server has restarted since"`
}

// TrialOf returns the form of t.
func TrialOf(t *cove.TrialResult) Trial {
	w := Trial{
		Open: t.Open, Committed: t.Committed, Created: t.Created, Modified: t.Modified, Removed: t.Removed,
		Bytes: t.Bytes, Truncated: t.Truncated, Changes: make([]FileChange, len(t.Changes)),
	}
	for i, c := range t.Changes {
		w.Changes[i] = FileChangeOf(c)
	}
	if t.Execution != nil {
		w.Execution = new(ExecutionOf(t.Execution))
	}
	return w
}

// Cove returns the platform's own form.
func (w Trial) Cove() *cove.TrialResult {
	t := &cove.TrialResult{
		Open: w.Open, Committed: w.Committed, Created: w.Created, Modified: w.Modified, Removed: w.Removed,
		Bytes: w.Bytes, Truncated: w.Truncated, Changes: make([]cove.FileChange, len(w.Changes)),
	}
	for i, c := range w.Changes {
		t.Changes[i] = c.Cove()
	}
	if w.Execution != nil {
		t.Execution = w.Execution.Cove()
	}
	return t
}

// FileChange is one difference that a trial made.
type FileChange struct {
	Kind       cove.ChangeKind `json:"kind" jsonschema:"created, modified or removed"`
	Path       string          `json:"path,omitempty"`
	PathBase64 []byte          `json:"path_base64,omitempty" jsonschema:"in the place of path where that is not UTF-8"`
	File       *File           `json:"file,omitempty" jsonschema:"as it is now; left out when removed"`
}

// FileChangeOf returns the form of c.
func FileChangeOf(c cove.FileChange) FileChange {
	w := FileChange{Kind: c.Kind}
	w.Path, w.PathBase64 = names(c.Path)
	if c.Info != nil {
		w.File = new(FileOf(*c.Info))
	}
	return w
}

// Cove returns the platform's own form.
func (w FileChange) Cove() cove.FileChange {
	c := cove.FileChange{Kind: w.Kind, Path: unnames(w.Path, w.PathBase64)}
	if w.File != nil {
		c.Info = new(w.File.Cove())
	}
	return c
}
