package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/archive/archivetest"
	"github.com/cove-sandbox/cove/internal/bucket"
	"github.com/cove-sandbox/cove/internal/bucket/s3test"
)

// refused wants an error that an operator can act on and that tells no secret.
func refused(t *testing.T, what string, err error, code cove.Code, words string) {
	t.Helper()
	if !errors.Is(err, code) || !strings.Contains(cove.MessageOf(err), words) || cove.RemedyOf(err) == "" {
		t.Errorf("%s: got %v, remedy %q; want %s with %q", what, err, cove.RemedyOf(err), code, words)
	}
	if err != nil && strings.Contains(fmt.Sprintf("%+v", err), s3test.SecretKey) {
		t.Errorf("%s shows the secret: %v", what, err)
	}
}

func TestCredentials(t *testing.T) {
	r := newBucket(t)
	for name, c := range map[string]struct {
		change func(*bucket.Config)
		url    string
		code   cove.Code
		words  string
	}{
		"none":             {func(c *bucket.Config) { c.AccessKey, c.SecretKey = "", "" }, r.url, cove.Invalid, "no credentials"},
		"half":             {func(c *bucket.Config) { c.SecretKey = "" }, r.url, cove.Invalid, "no credentials"},
		"a wrong secret":   {func(c *bucket.Config) { c.SecretKey += "x" }, r.url, cove.Unavailable, "does not accept the credentials"},
		"an unknown key":   {func(c *bucket.Config) { c.AccessKey = "somebody" }, r.url, cove.Unavailable, "the bucket archives at"},
		"another region":   {func(*bucket.Config) {}, strings.Replace(r.url, s3test.Region, "elsewhere-1", 1), cove.Unavailable, "the bucket archives at"},
		"no bucket":        {func(*bucket.Config) {}, strings.Replace(r.url, "//archives", "//others", 1), cove.Unavailable, "is not there"},
		"plain where TLS":  {func(*bucket.Config) {}, strings.Replace(r.url, "http", "https", 1), cove.Unavailable, "does not answer"},
		"a scratch folder": {func(c *bucket.Config) { c.Scratch = filepath.Join(c.Scratch, "no", "where") }, r.url, cove.Unavailable, "does not exist"},
	} {
		cfg := config(t)
		c.change(&cfg)
		_, err := bucket.Open(t.Context(), c.url, cfg)
		if name == "a scratch folder" { // the words are the remedy, as in internal/archive
			if !errors.Is(err, c.code) || !strings.Contains(cove.MessageOf(err), c.words) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		refused(t, name, err, c.code, c.words)
	}
}

// TestServerGoesAway ends the server before and in the middle of things.
func TestServerGoesAway(t *testing.T) {
	r := newBucket(t)
	a := open(t, r.url)
	id := cove.NewID()
	big := strings.Repeat("0123456789abcdef", 1<<20) // more than lies in sockets
	put(t, a, id, big)
	stream, err := a.Get(t.Context(), id)
	check(t, err)
	_, err = io.ReadFull(stream, make([]byte, 10))
	check(t, err)
	r.server.Stop()
	_, err = io.Copy(io.Discard, stream)
	refused(t, "in the middle", err, cove.Unavailable, "does not answer")
	check(t, stream.Close())
	a.Impatient(time.Minute)
	_, put := a.Put(t.Context(), cove.NewID(), strings.NewReader("x"))
	_, get := a.Get(t.Context(), id)
	_, swept := a.Sweep(t.Context())
	var listed error
	for _, err := range a.List(t.Context()) {
		listed = err
	}
	for name, err := range map[string]error{"put": put, "get": get, "list": listed, "sweep": swept, "delete": a.Delete(t.Context(), id)} {
		refused(t, name, err, cove.Unavailable, "does not answer")
	}
}

// cutter passes connections on, and cuts each off after so many bytes of the client.
type cutter struct {
	net.Listener
	to    string
	after atomic.Int64
	cut   atomic.Int64 // connections
	wg    sync.WaitGroup
}

func newCutter(t *testing.T, to string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	c := &cutter{Listener: l, to: to}
	c.after.Store(1 << 40)
	c.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() { c.pass(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.wg.Wait()
	})
	return c
}

func (c *cutter) pass(client net.Conn) {
	server, err := net.Dial("tcp", c.to)
	if err != nil {
		_ = client.Close()
		return
	}
	c.wg.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	after := c.after.Load()
	if n, _ := io.CopyN(server, client, after); n == after {
		c.cut.Add(1)
	}
	_ = errors.Join(client.Close(), server.Close())
}

// TestCutOff cuts uploads off: nothing of them is there afterwards, and what was
// there before is.
func TestCutOff(t *testing.T) {
	r := newBucket(t)
	c := newCutter(t, r.server.Address)
	direct := open(t, r.url)
	id := cove.NewID()
	put(t, direct, id, "old")
	c.after.Store(1 << 20)
	a := open(t, r.server.URL(c.Addr().String(), "some/prefix"))
	_, err := a.Put(t.Context(), id, io.LimitReader(noise(1), 8<<20))
	refused(t, "cut off", err, cove.Unavailable, "does not answer")
	if c.cut.Load() < 3 {
		t.Errorf("it was tried %d times", c.cut.Load())
	}
	r.files(t, "blobs", 1)
	if got := archivetest.Content(t, direct, id); got != "old" {
		t.Errorf("the old archive holds %q", got)
	}
}

// noise is an endless stream that is another one for each seed.
func noise(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

// TestBoundedMemory stores and reads 300 MB, half of them zeros, and allocates less
// than a tenth of it on the way.
func TestBoundedMemory(t *testing.T) {
	onEach(t, func(t *testing.T, r rig) {
		a := open(t, r.url)
		id := cove.NewID()
		const half = 150 << 20
		allocated := func() uint64 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.TotalAlloc
		}
		before := allocated()
		n, err := a.Put(t.Context(), id, io.MultiReader(io.LimitReader(zeros{}, half), io.LimitReader(noise(2), half)))
		check(t, err)
		stream, err := a.Get(t.Context(), id)
		check(t, err)
		read, err := io.Copy(io.Discard, stream)
		check(t, errors.Join(err, stream.Close()))
		if n != 2*half || read != 2*half {
			t.Errorf("stored %d and read %d", n, read)
		}
		if got := allocated() - before; got > 30<<20 {
			t.Errorf("%d bytes were allocated", got)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestTooLong(t *testing.T) {
	onEach(t, func(t *testing.T, r rig) {
		cfg := config(t)
		cfg.Most = 1000
		a, err := bucket.Open(t.Context(), r.url, cfg)
		check(t, err)
		defer func() { check(t, a.Close()) }()
		id := cove.NewID()
		put(t, a, id, strings.Repeat("x", 1000))
		_, err = a.Put(t.Context(), id, io.LimitReader(zeros{}, 1001))
		refused(t, "too long", err, cove.Exhausted, "more than the archives take")
		if got := archivetest.Content(t, a, id); len(got) != 1000 {
			t.Errorf("%d bytes are left", len(got))
		}
	})
}

// TestServersThatAreNone speaks to servers that are not S3, or have their moods.
func TestServersThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		words string
	}{
		"a page":             {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello") }, "not as S3 does"},
		"endless":            {marked(endlessPages), "not as S3 does"},
		"elsewhere":          {http.RedirectHandler("http://127.0.0.1:1/", http.StatusTemporaryRedirect).ServeHTTP, "in another region"},
		"busy":               {sayCode(503, "SlowDown"), "cannot answer now"},
		"full":               {sayCode(507, ""), "is full"},
		"skewed":             {sayCode(403, "RequestTimeTooSkewed"), "clock"},
		"denied":             {sayCode(403, "<Code>"+s3test.SecretKey+"</Code>"), "does not accept"},
		"a page for nothing": {http.NotFound, "refuses a request"},
		"odd":                {sayCode(418, "Teapot"), "refuses a request"},
		"gone at once":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "does not answer"}, //nolint:forbidigo // the server's own way to break a connection off
	} {
		server := httptest.NewServer(c.serve)
		a, err := bucket.Open(t.Context(), "s3://bucket?endpoint="+server.URL, config(t))
		if err == nil {
			for _, e := range a.List(t.Context()) {
				err = e
			}
			check(t, a.Close())
		}
		if code := cove.CodeOf(err); code != cove.Unavailable && code != cove.Exhausted {
			t.Errorf("%s: %v", name, err)
		}
		refused(t, name, err, cove.CodeOf(err), c.words)
		server.CloseClientConnections()
		server.Close()
	}
}

func sayCode(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>topsecret</Message></Error>", code)
	}
}

// marked serves the object that names the owner, and has a handler serve all else.
func marked(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/owner") {
			_, _ = io.WriteString(w, "tests\n")
			return
		}
		h(w, r)
	}
}

// endlessPages promises more of the same for ever.
func endlessPages(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken></ListBucketResult>`)
}

// TestPatience ends a call to a server that took it and says nothing more.
func TestPatience(t *testing.T) {
	quiet := make(chan struct{})
	var calls atomic.Int64
	server := httptest.NewServer(marked(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			_, _ = io.WriteString(w, "<ListBucketResult/>")
			return
		}
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "cove1 ")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-quiet:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(quiet)
	a := open(t, "s3://bucket?endpoint="+server.URL)
	a.Impatient(time.Millisecond)
	_, err := a.Get(t.Context(), cove.NewID())
	refused(t, "silent", err, cove.Unavailable, "does not answer")
	a.Impatient(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := a.Get(ctx, cove.NewID()); !errors.Is(err, cove.Canceled) {
		t.Errorf("the caller left: %v", err)
	}
}

func TestFoldersThatAreNone(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for path, words := range map[string]string{
		filepath.Join(dir, "no", "archives"): "does not exist",
		filepath.Join(dir, "file"):           "not a folder",
	} {
		_, err := bucket.Open(t.Context(), "file://"+path, config(t))
		if msg := cove.MessageOf(err); !errors.Is(err, cove.Unavailable) || !strings.Contains(msg, path) || !strings.Contains(msg, words) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
