package e2bapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// message is one message of a watch, or its end.
type message struct {
	Start, Keepalive *struct{}
	Filesystem       *struct {
		Name, Type string
		Entry      *struct{ Path, Size string }
	}
	Error *struct{ Code, Message string }
	end   bool
}

// watching is a watch that a client has open.
type watching struct {
	t    *testing.T
	body io.ReadCloser
}

func (r *rig) watch(ctx context.Context, id cove.ID, ask string) watching {
	r.t.Helper()
	req := r.inside(ctx, id, 49983, http.MethodPost, "/filesystem.Filesystem/WatchDir", bytes.NewReader(framed(0, ask)), "Content-Type", "application/connect+json")
	return watching{r.t, r.do(req).Body} //nolint:bodyclose // by who watches
}

// next reads one message.
func (w watching) next() (m message) {
	w.t.Helper()
	flags, body, err := e2bapi.ReadFrame(w.body, e2bapi.MaxFrame)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal(body, &m); err != nil {
		w.t.Fatal(err)
	}
	m.end = flags&e2bapi.FlagEnd != 0
	return m
}

// sees reads until the kinds of changes of a file were told, and returns the last.
func (w watching) sees(name string, kinds ...string) (m message) {
	w.t.Helper()
	for len(kinds) > 0 {
		m = w.next()
		switch {
		case m.end:
			w.t.Fatalf("the watch ended: %+v", m.Error)
		case m.Filesystem != nil && m.Filesystem.Name == name && m.Filesystem.Type == "EVENT_TYPE_"+kinds[0]:
			kinds = kinds[1:]
		}
	}
	return m
}

func TestWatchDir(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	files := r.platform().Files(id)
	r.putFile(id, "d/sub/old", "x")
	must(r.platform().Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "ln -s d link"}))(t)
	flat := r.watch(t.Context(), id, `{"path":"/home/user/link"}`)
	defer flat.body.Close()
	deep := r.watch(t.Context(), id, `{"path":"d","recursive":true,"includeEntry":true}`)
	defer deep.body.Close()
	for _, w := range []watching{flat, deep} {
		if m := w.next(); m.Start == nil {
			t.Fatalf("the first message is %+v", m)
		}
	}
	r.putFile(id, "d/sub/new", "below")
	r.putFile(id, "d/f", "12345")
	r.putFile(id, "d/f", "123456")
	if m := deep.sees("sub/new", "CREATE"); m.Filesystem.Entry == nil || m.Filesystem.Entry.Path != "/home/user/d/sub/new" || m.Filesystem.Entry.Size != "5" {
		t.Errorf("%+v", m.Filesystem)
	}
	deep.sees("f", "CREATE", "WRITE")
	if m := flat.next(); m.Filesystem == nil || m.Filesystem.Name != "f" || m.Filesystem.Entry != nil {
		t.Errorf("what is below is told, or the description: %+v", m.Filesystem)
	}
	must(r.platform().Processes(id).Exec(t.Context(), cove.ExecRequest{Line: "chmod 600 d/f; mv d/f d/g; mv d/g d/f"}))(t)
	deep.sees("f", "CHMOD")
	if m := deep.sees("f", "RENAME"); m.Filesystem.Entry != nil {
		t.Errorf("what has another name is described: %+v", m.Filesystem)
	}
	deep.sees("g", "CREATE", "RENAME")
	if err := files.Remove(t.Context(), "d/f"); err != nil {
		t.Fatal(err)
	}
	flat.sees("f", "REMOVE")
	if m := deep.sees("f", "REMOVE"); m.Filesystem.Entry != nil {
		t.Errorf("what is gone is described: %+v", m.Filesystem)
	}
	must(r.platform().Sessions().Close(t.Context(), id, false))(t)
	for _, w := range []watching{flat, deep} {
		for m := w.next(); ; m = w.next() {
			if m.end {
				if m.Error == nil || m.Error.Code != "unavailable" {
					t.Errorf("the end of a watch whose sandbox was closed: %+v", m.Error)
				}
				break
			}
		}
	}
}

func TestWatchDirErrors(t *testing.T) {
	r := serve(t)
	id := r.open(cove.Spec{})
	r.putFile(id, "f", "x")
	for ask, want := range map[string]string{`{"path":"none"}`: "not_found", `{"path":"f"}`: "invalid_argument", `{"path":"a\u0000"}`: "invalid_argument", `[]`: "invalid_argument"} {
		w := r.watch(t.Context(), id, ask)
		if m := w.next(); !m.end || m.Error == nil || m.Error.Code != want {
			t.Errorf("%s: %+v", ask, m)
		}
		w.body.Close()
	}
	// A deadline ends a watch, and so does a client that goes; nothing is left of either.
	req := r.inside(t.Context(), id, 49983, http.MethodPost, "/filesystem.Filesystem/WatchDir", bytes.NewReader(framed(0, `{"path":""}`)),
		"Content-Type", "application/connect+json", "Connect-Timeout-Ms", "50")
	timed := watching{t, r.do(req).Body} //nolint:bodyclose // below
	defer timed.body.Close()
	for m := timed.next(); ; m = timed.next() {
		if m.end {
			if m.Error == nil || m.Error.Code != "deadline_exceeded" {
				t.Errorf("%+v", m)
			}
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := r.watch(ctx, id, `{"path":""}`)
	gone.next()
	cancel()
	gone.body.Close()
}

// stub is a platform that has nothing but files to watch.
type stub struct {
	cove.Platform

	files stubFiles
}

func (s stub) Files(cove.ID) cove.Files { return s.files }

type stubFiles struct {
	cove.Files

	watch func(ctx context.Context, yield func(cove.Change, error) bool)
	stat  func(name string) // is told what is looked at; nil: nothing is
}

func (s stubFiles) Stat(_ context.Context, name string) (cove.FileInfo, error) {
	if s.stat != nil {
		s.stat(name)
	}
	return cove.FileInfo{Path: name, Mode: fs.ModeDir | 0o755}, nil
}

func (s stubFiles) Watch(ctx context.Context, _ string) iter.Seq2[cove.Change, error] {
	return func(yield func(cove.Change, error) bool) {
		if yield(cove.Change{Kind: cove.Watching}, nil) {
			s.watch(ctx, yield)
		}
	}
}

func numbered(n int) cove.Change {
	return cove.Change{Kind: cove.Created, Path: "/workspace/f" + strconv.Itoa(n)}
}

// faceOf is a face in front of files that change.
func faceOf(watch func(ctx context.Context, yield func(cove.Change, error) bool)) *e2bapi.Handler {
	return e2bapi.New(e2bapi.Config{
		Secret:   []byte("s"),
		Platform: func(cove.Principal) cove.Platform { return stub{files: stubFiles{watch: watch}} },
		Key:      func(context.Context, string) (cove.Principal, func(), error) { return cove.Principal{}, nil, nil },
		Watch: func(ctx context.Context, _ cove.Principal) (context.Context, func()) {
			return context.WithCancel(ctx)
		},
	})
}

const someID = "01jd8x8s5m8y3nq6e5k2v7w9ab"

// asked is a request to a sandbox of such a face.
func asked(ctx context.Context, base, method, kind string, body []byte) *http.Request {
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, base+"/filesystem.Filesystem/"+method, bytes.NewReader(body))
	req.RequestURI = ""
	for name, value := range map[string]string{
		"Content-Type": kind, "E2b-Sandbox-Id": someID, "E2b-Sandbox-Port": "49983", "X-Access-Token": e2bapi.Token([]byte("s"), "access", someID, "tester"),
	} {
		req.Header.Set(name, value)
	}
	return req
}

// streams opens a watch of such a face.
func streams(t *testing.T, face *e2bapi.Handler) io.Reader {
	t.Helper()
	server := httptest.NewServer(face)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	resp := must(server.Client().Do(asked(ctx, server.URL, "WatchDir", "application/connect+json", framed(0, `{"path":"","recursive":true}`))))(t) //nolint:bodyclose // at the end of the test
	t.Cleanup(func() { resp.Body.Close() })
	return bufio.NewReaderSize(resp.Body, 1<<20)
}

// Ten thousand changes at once are told, each, in their order.
func TestWatchManyChanges(t *testing.T) {
	const many = 10_000
	in := streams(t, faceOf(func(ctx context.Context, yield func(cove.Change, error) bool) {
		for n := range many {
			if !yield(numbered(n), nil) {
				return
			}
		}
		<-ctx.Done()
	}))
	for n := -1; n < many; {
		_, body, err := e2bapi.ReadFrame(in, e2bapi.MaxFrame)
		if err != nil {
			t.Fatal(err)
		}
		if n >= 0 && string(body) != `{"filesystem":{"name":"f`+strconv.Itoa(n)+`","type":"EVENT_TYPE_CREATE"}}` {
			t.Fatalf("message %d is %s", n, body)
		}
		n++
	}
}

// A client that reads nothing costs a bounded memory, and learns that it lost something.
func TestWatchSlowClient(t *testing.T) {
	full := make(chan int, 1)
	in := streams(t, faceOf(func(_ context.Context, yield func(cove.Change, error) bool) {
		n := 0
		for n < 16*e2bapi.MaxWaiting && yield(numbered(n), nil) {
			n++
		}
		full <- n
	}))
	if n := <-full; n < e2bapi.MaxWaiting || n >= 16*e2bapi.MaxWaiting {
		t.Errorf("%d changes were taken", n)
	}
	for {
		flags, body, err := e2bapi.ReadFrame(in, e2bapi.MaxFrame)
		if err != nil {
			t.Fatal(err)
		}
		if flags&e2bapi.FlagEnd != 0 {
			if !strings.Contains(string(body), `"resource_exhausted"`) {
				t.Errorf("the end is %s", body)
			}
			return
		}
	}
}

func TestWatchOverflow(t *testing.T) {
	for what, last := range map[string]struct {
		change cove.Change
		err    error
		want   string
	}{
		"lost":   {cove.Change{Kind: cove.Overflow}, nil, `"resource_exhausted"`},
		"broken": {cove.Change{}, cove.Errorf(cove.Unavailable, "the link broke"), `"unavailable"`},
	} {
		in := streams(t, faceOf(func(_ context.Context, yield func(cove.Change, error) bool) {
			_ = yield(numbered(1), nil) && yield(last.change, last.err)
		}))
		all := must(io.ReadAll(in))(t)
		if !strings.Contains(string(all), `"f1"`) || !strings.Contains(string(all), last.want) {
			t.Errorf("%s: %s", what, all)
		}
	}
}

// call asks a face for one message.
func poll(t *testing.T, face *e2bapi.Handler, method, ask string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	face.ServeHTTP(w, asked(t.Context(), "http://x", method, "application/json", []byte(ask)))
	return w.Code, w.Body.String()
}

func TestWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := make(chan cove.Change)
		face := faceOf(func(ctx context.Context, yield func(cove.Change, error) bool) {
			for {
				select {
				case <-ctx.Done():
					return
				case c := <-changes:
					if !yield(c, nil) {
						return
					}
				}
			}
		})
		status, body := poll(t, face, "CreateWatcher", `{"path":"d","includeEntry":true}`)
		if status != 200 || !strings.HasPrefix(body, `{"watcherId":"`) {
			t.Fatal(status, body)
		}
		ask := body // an answer is the next question
		changes <- cove.Change{Kind: cove.Modified, Path: "/workspace/d/f"}
		changes <- cove.Change{Kind: cove.Removed, Path: "/workspace/d/f"}
		changes <- cove.Change{Kind: cove.Created, Path: "/workspace/d/below/f"}
		synctest.Wait()
		if status, body := poll(t, face, "GetWatcherEvents", ask); status != 200 || strings.Count(body, `"name":"f"`) != 3 || strings.Count(body, `"entry"`) != 1 ||
			!strings.HasSuffix(body, `{"name":"f","type":"EVENT_TYPE_REMOVE"}]}`) {
			t.Errorf("%d %s", status, body)
		}
		<-time.After(4 * time.Minute)
		if status, body := poll(t, face, "GetWatcherEvents", ask); status != 200 || body != `{"events":[]}` {
			t.Errorf("%d %s", status, body)
		}
		<-time.After(4 * time.Minute) // asked for less than five minutes ago
		if status, _ := poll(t, face, "GetWatcherEvents", ask); status != 200 {
			t.Error("a watcher that is asked is gone")
		}
		changes <- cove.Change{Kind: cove.Overflow}
		synctest.Wait()
		for _, want := range []int{429, 404} {
			if status, body := poll(t, face, "GetWatcherEvents", ask); status != want {
				t.Errorf("%d %s", status, body)
			}
		}
		for n := range 65 {
			status, body := poll(t, face, "CreateWatcher", `{"path":"d"}`)
			if want := map[bool]int{true: 200, false: 429}[n < 64]; status != want {
				t.Errorf("watcher %d: %d %s", n+1, status, body)
			}
			if n == 0 {
				ask = body
			}
		}
		for _, want := range []int{200, 404} {
			if status, body := poll(t, face, "RemoveWatcher", ask); status != want {
				t.Errorf("%d %s", status, body)
			}
		}
		<-time.After(5 * time.Minute) // after which nothing is left of those that nobody asks
		if status, _ := poll(t, face, "CreateWatcher", `{"path":"d"}`); status != 200 {
			t.Error("watchers that nobody asks stay")
		}
		<-time.After(5 * time.Minute)
	})
}

// broken is an answer that nobody takes.
type broken struct{ *httptest.ResponseRecorder }

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestWatchersKeepWhatDidNotArrive: what was in an answer that its client did not get is
// in the next one.
func TestWatchersKeepWhatDidNotArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes, cut := make(chan cove.Change), make(chan struct{})
		face := faceOf(func(ctx context.Context, yield func(cove.Change, error) bool) {
			for {
				select {
				case <-ctx.Done():
					return
				case <-cut:
					return
				case c := <-changes:
					if !yield(c, nil) {
						return
					}
				}
			}
		})
		_, ask := poll(t, face, "CreateWatcher", `{"path":"d"}`)
		changes <- cove.Change{Kind: cove.Created, Path: "/workspace/d/a"}
		synctest.Wait()
		face.ServeHTTP(broken{httptest.NewRecorder()}, asked(t.Context(), "http://x", "GetWatcherEvents", "application/json", []byte(ask)))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		face.ServeHTTP(httptest.NewRecorder(), asked(gone, "http://x", "GetWatcherEvents", "application/json", []byte(ask)))
		changes <- cove.Change{Kind: cove.Removed, Path: "/workspace/d/a"}
		close(cut) // what waits is told before the end is
		synctest.Wait()
		const both = `{"events":[{"name":"a","type":"EVENT_TYPE_CREATE"},{"name":"a","type":"EVENT_TYPE_REMOVE"}]}`
		if status, body := poll(t, face, "GetWatcherEvents", ask); status != 200 || body != both {
			t.Errorf("%d %s", status, body)
		}
		for _, want := range []int{503, 404} {
			if status, body := poll(t, face, "GetWatcherEvents", ask); status != want {
				t.Errorf("%d %s; want %d", status, body, want)
			}
		}
	})
}

// TestWatchersTellInParts: files that are slow to describe do not keep an answer from
// coming, and two who ask at once get each change once.
func TestWatchersTellInParts(t *testing.T) {
	const many = 20
	synctest.Test(t, func(t *testing.T) {
		face := e2bapi.New(e2bapi.Config{
			Secret: []byte("s"),
			Key:    func(context.Context, string) (cove.Principal, func(), error) { return cove.Principal{}, nil, nil },
			Platform: func(cove.Principal) cove.Platform {
				return stub{files: stubFiles{stat: func(name string) {
					if strings.HasPrefix(name, "/workspace/f") {
						<-time.After(time.Second)
					}
				}, watch: func(ctx context.Context, yield func(cove.Change, error) bool) {
					for n := range many {
						yield(numbered(n), nil)
					}
					<-ctx.Done()
				}}}
			},
		})
		_, ask := poll(t, face, "CreateWatcher", `{"path":"","includeEntry":true}`)
		synctest.Wait()
		answers := make(chan string)
		for range 2 {
			go func() {
				for {
					began := time.Now()
					status, body := poll(t, face, "GetWatcherEvents", ask)
					if took := time.Since(began); status != 200 || took > 15*time.Second {
						t.Errorf("%d after %s: %s", status, took, body)
					}
					answers <- body
					if body == `{"events":[]}` {
						return
					}
				}
			}()
		}
		var all strings.Builder
		for empty := 0; empty < 2; {
			body := <-answers
			all.WriteString(body)
			if body == `{"events":[]}` {
				empty++
			}
		}
		for n := range many {
			if got := strings.Count(all.String(), `"name":"f`+strconv.Itoa(n)+`","type":"EVENT`); got != 1 {
				t.Errorf("change %d was told %d times", n, got)
			}
		}
		poll(t, face, "RemoveWatcher", ask)
	})
}
