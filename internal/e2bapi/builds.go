package e2bapi

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bounds on builds.
const (
	maxBuilds   = 64
	maxBuildsOf = 4              // of one tenant, that have not ended
	maxUploads  = 64             // of one build
	maxUpload   = 256 * cove.MiB // of one file, as it is sent
	maxLogLines = 2000           // of one build; the first ones stay
	maxLogLine  = 4 << 10
	maxKept     = 2 * cove.GiB // of all files that a tenant sent for builds
	buildTime   = time.Hour    // for a build, from its first call on
)

// How far a build is, beside ready and error.
const (
	statusWaits  = "waiting"
	statusBuilds = "building"
)

// builds are templates that are being made.
type builds struct {
	most cove.Bytes // of the files that a tenant sent

	mu  sync.Mutex
	all map[string]*build // by id; guarded by mu
}

// build is one of them. All but the first fields is guarded by builds.mu.
type build struct {
	id, tenant, name string
	tags             []string

	files  map[string]*sentFile // by hash
	bytes  cove.Bytes           // of these files, and of those that are being sent
	status string
	why    string
	log    []logEntry
	rest   string // of a line that has not ended
}

// logEntry is a line of what a build tells.
type logEntry struct {
	Time    time.Time `json:"timestamp"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
}

// add begins a build, which is forgotten after a while.
func (b *builds) add(one *build) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.makeRoom()
	mine := 0
	for _, other := range b.all {
		if other.tenant == one.tenant && (other.status == statusWaits || other.status == statusBuilds) {
			mine++
		}
	}
	if mine >= maxBuildsOf {
		return cove.Errorf(cove.Exhausted, "%d template builds of this tenant wait or run, the most", mine).Remedy("try again when one of them has ended; one that was given up ends after %s", buildTime)
	}
	if len(b.all) >= maxBuilds {
		return cove.Errorf(cove.Exhausted, "%d template builds wait or run", len(b.all)).Remedy("try again later")
	}
	if b.all == nil {
		b.all = map[string]*build{}
	}
	b.all[one.id] = one
	time.AfterFunc(buildTime, func() { b.drop(one) })
	return nil
}

// makeRoom forgets those that have ended, the first ones first, where there are too
// many. The caller holds the lock.
func (b *builds) makeRoom() {
	for _, id := range slices.Sorted(maps.Keys(b.all)) { // ids begin with a time
		if one := b.all[id]; len(b.all) >= maxBuilds && one.status != statusWaits && one.status != statusBuilds {
			delete(b.all, id)
		}
	}
}

// drop forgets a build and removes its files.
func (b *builds) drop(one *build) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, one.id)
	one.clear()
}

// clear removes the files of a build. The caller holds the lock.
func (one *build) clear() {
	for _, f := range one.files {
		_ = f.Close() // nothing reads it any more
	}
	one.files, one.bytes = map[string]*sentFile{}, 0
}

// of is a build of a tenant, by its id.
func (b *builds) of(tenant, name, id string) (*build, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.all[id]; one != nil && one.tenant == tenant && one.name == name {
		return one, nil
	}
	return nil, cove.Errorf(cove.NotFound, "there is no build %q of template %q", clip(id), clip(name)).Remedy("begin it again")
}

// open is a build that has not begun, or nil.
func (b *builds) open(id string) *build {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.all[id]; one != nil && one.status == statusWaits {
		return one
	}
	return nil
}

// waiting is a build of a template that has not begun.
func (b *builds) waiting(tenant, name string) (*build, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var last *build // ids begin with a time, and an earlier one was given up
	for _, one := range b.all {
		if one.name == name && one.status == statusWaits && one.tenant == tenant && (last == nil || one.id > last.id) {
			last = one
		}
	}
	if last != nil {
		return last, nil
	}
	return nil, cove.Errorf(cove.NotFound, "no build of template %q waits for files", clip(name))
}

// newTemplate begins a build. Who may not build is told here, before files are sent.
func (c *call) newTemplate() error {
	var asked struct {
		Name  string   `json:"name"`
		Alias string   `json:"alias"` // as older clients say
		Tags  []string `json:"tags"`
	}
	if err := c.body(&asked); err != nil {
		return err
	}
	if asked.Name == "" {
		asked.Name = asked.Alias
	}
	if name, tag, ok := strings.Cut(asked.Name, ":"); ok {
		asked.Name, asked.Tags = name, append([]string{tag}, asked.Tags...)
	}
	if err := cove.ValidTemplateName(asked.Name); err != nil {
		return err
	}
	one := &build{id: c.h.marked(string(cove.NewID())), tenant: c.who.Tenant, name: asked.Name, status: statusWaits, files: map[string]*sentFile{}}
	for _, tag := range asked.Tags {
		if tag != tagDefault && tag != tagLatest {
			one.tags = append(one.tags, tag)
		}
	}
	if len(one.tags) > 0 {
		if err := tagged("tags", one.tags); err != nil {
			return err
		}
	}
	if t, err := c.template(one.name); err == nil && t.Shared {
		return cove.Errorf(cove.Conflict, "template %s is shared with all tenants", one.name).With("field", "name").Remedy("use another name")
	}
	if err := c.h.builds.add(one); err != nil {
		return err
	}
	c.answer(http.StatusAccepted, struct {
		Template string   `json:"templateID"`
		Build    string   `json:"buildID"`
		Public   bool     `json:"public"`
		Names    []string `json:"names"`
		Tags     []string `json:"tags"`
		Aliases  []string `json:"aliases"`
	}{one.name, one.id, false, []string{one.name}, append([]string{}, asked.Tags...), []string{one.name}})
	return nil
}

// buildFiles says where the files of a step are to be sent.
func (c *call) buildFiles() error {
	name, hash := c.r.PathValue("id"), c.r.PathValue("hash")
	one, err := c.h.builds.waiting(c.who.Tenant, name)
	if err != nil {
		return err
	}
	if !isHash(hash) {
		return cove.InvalidField("hash", "%q is none", clip(hash))
	}
	c.h.builds.mu.Lock()
	present := one.files[hash] != nil
	c.h.builds.mu.Unlock()
	to := c.h.origin(c.r).JoinPath("templates", name, "upload", one.id, hash)
	to.RawQuery = url.Values{"token": {Token(c.h.cfg.Secret, kindUpload, uploadID(one.id, hash), c.who.Name)}}.Encode()
	c.answer(http.StatusCreated, struct {
		Present bool   `json:"present"`
		URL     string `json:"url,omitempty"`
	}{present, to.String()})
	return nil
}

// startBuild has a template built. It goes on when the call is over.
func (c *call) startBuild() error {
	one, err := c.h.builds.of(c.who.Tenant, c.r.PathValue("id"), c.r.PathValue("build"))
	if err != nil {
		return err
	}
	var asked buildSteps
	if err := c.body(&asked); err != nil {
		return err
	}
	text, err := asked.dockerfile()
	if err != nil {
		return err
	}
	c.h.builds.mu.Lock()
	defer c.h.builds.mu.Unlock()
	if one.status != statusWaits {
		return cove.Errorf(cove.Conflict, "the build has begun already")
	}
	for _, s := range asked.Steps {
		if s.Type == "COPY" && one.files[s.Files] == nil {
			return cove.InvalidField("filesHash", "%q names no files that were sent", clip(s.Files))
		}
	}
	one.status = statusBuilds
	files := maps.Clone(one.files)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), buildTime)
	go func() {
		defer cancel()
		c.h.builds.end(one, c.build(ctx, one, text, files))
	}()
	c.answer(http.StatusAccepted, struct{}{})
	return nil
}

// build makes the template.
func (c *call) build(ctx context.Context, one *build, text string, files map[string]*sentFile) error {
	if c.h.cfg.Watch != nil {
		var stop func()
		ctx, stop = c.h.cfg.Watch(ctx, c.who)
		defer stop()
	}
	r, w := io.Pipe()
	defer func() { _ = r.Close() }() // so that who writes ends, too
	go func() { _ = w.CloseWithError(pack(w, text, files)) }()
	made, err := c.platform.Templates().Build(ctx, cove.TemplateRequest{Name: one.name, Files: r, OnOutput: func(ch cove.Chunk) { c.h.builds.hear(one, ch.Data) }})
	if err != nil {
		return err
	}
	for _, tag := range one.tags {
		if _, err := c.platform.Templates().Tag(ctx, made.Name, templateName(one.name+":"+tag), false); err != nil {
			return err
		}
	}
	return nil
}

// pack writes the Dockerfile and the files that were sent, by their hashes, as one tar.
func pack(to io.Writer, text string, files map[string]*sentFile) error {
	w := tar.NewWriter(to)
	if err := w.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	for hash, f := range files {
		if err := repack(w, f.content(), path.Join(filesDir, hash)); err != nil {
			return cove.Wrap(cove.Invalid, err, "the files that were sent are no tar")
		}
	}
	return w.Close()
}

// repack writes what is in a tar, which may be packed, below a directory.
func repack(to *tar.Writer, content io.Reader, below string) error {
	in := io.Reader(bufio.NewReader(content))
	if head, err := in.(*bufio.Reader).Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		if in, err = gzip.NewReader(in); err != nil {
			return err
		}
	}
	from := tar.NewReader(in)
	for {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeDir, tar.TypeSymlink:
		default:
			continue
		}
		if err := to.WriteHeader(&tar.Header{
			Name: path.Join(below, path.Clean("/"+h.Name)), Linkname: h.Linkname, Mode: h.Mode, Size: h.Size, Typeflag: h.Typeflag, ModTime: h.ModTime,
		}); err != nil {
			return err
		}
		if _, err := io.Copy(to, from); err != nil { //nolint:gosec // who unpacks it has a bound
			return err
		}
	}
}

// hear keeps the lines that a build tells.
func (b *builds) hear(one *build, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := strings.Split(one.rest+strings.ToValidUTF8(string(data), "\uFFFD"), "\n")
	for _, line := range lines[:len(lines)-1] {
		one.note("info", line)
	}
	one.rest = lines[len(lines)-1]
	one.rest = one.rest[:min(len(one.rest), maxLogLine)]
}

// note adds a line. The caller holds the lock.
func (one *build) note(level, line string) {
	if line = strings.TrimRight(line, "\r"); line != "" && len(one.log) < maxLogLines {
		one.log = append(one.log, logEntry{time.Now().UTC(), level, strings.ToValidUTF8(line[:min(len(line), maxLogLine)], "\uFFFD")})
	}
}

// end says how a build went.
func (b *builds) end(one *build, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.note("info", one.rest)
	one.clear()
	one.status = "ready"
	if err != nil {
		one.status, one.why = lineError, textOf(err)
		one.note("error", one.why)
	}
}

// buildStatus says how far a build is.
func (c *call) buildStatus() error {
	one, err := c.h.builds.of(c.who.Tenant, c.r.PathValue("id"), c.r.PathValue("build"))
	if err != nil {
		return err
	}
	skip, err := strconv.Atoi(c.r.URL.Query().Get("logsOffset"))
	if err != nil || skip < 0 {
		skip = 0
	}
	type reason struct {
		Message string `json:"message"`
	}
	answer := struct {
		Build    string     `json:"buildID"`
		Template string     `json:"templateID"`
		Status   string     `json:"status"`
		Logs     []string   `json:"logs"`
		Entries  []logEntry `json:"logEntries"`
		Reason   *reason    `json:"reason,omitempty"`
	}{Build: one.id, Template: one.name, Logs: []string{}, Entries: []logEntry{}}
	c.h.builds.mu.Lock()
	answer.Status = one.status
	if one.why != "" {
		answer.Reason = &reason{one.why}
	}
	for _, e := range one.log[min(skip, len(one.log)):] {
		answer.Logs, answer.Entries = append(answer.Logs, e.Message), append(answer.Entries, e)
	}
	c.h.builds.mu.Unlock()
	c.answer(http.StatusOK, answer)
	return nil
}
