package s3test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The only account of a server.
const (
	AccessKey = "cove-test"
	SecretKey = "cove-test-secret"
	Region    = "eu-test-1"
)

// Bucket is the only one there is.
const Bucket = "archives"

// Server is a running server.
type Server struct {
	Address string // host:port
	Dir     string // what is in the bucket

	stop func()
}

// Start starts the server at path, until the test ends. Without a path it skips the
// test, unless COVE_REQUIRE names s3. It uses what only Unix has: a folder as the
// bucket.
func Start(t *testing.T, path string) *Server {
	t.Helper()
	if path == "" {
		const why = "COVE_TEST_S3 does not name an S3 server; make test builds one"
		if slices.Contains(strings.Split(os.Getenv("COVE_REQUIRE"), ","), "s3") {
			t.Fatal("COVE_REQUIRE names s3, and " + why)
		}
		t.Skip(why)
	}
	root := t.TempDir()
	s := &Server{Dir: filepath.Join(root, "files", Bucket)}
	meta := filepath.Join(root, "meta")
	for _, dir := range []string{s.Dir, meta} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 { // somebody may take the port before the server does
		if s.start(t, path, filepath.Dir(s.Dir), meta) {
			return s
		}
	}
	t.Fatal("the S3 server does not start")
	return nil
}

// start reports whether the server came to listen.
func (s *Server) start(t *testing.T, path, files, meta string) bool {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Address = l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(path, "--port", s.Address, "--region", Region, "--quiet", "--keep-alive", "posix", "--sidecar", meta, files) //nolint:gosec,noctx // what the tests built; it ends with its test
	cmd.Env = []string{"ROOT_ACCESS_KEY=" + AccessKey, "ROOT_SECRET_KEY=" + SecretKey, "HOME=" + meta}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 10*time.Second
	dieWithUs(cmd)
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // no other goroutine may end the thread while the server runs
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is killed
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	s.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // unless it is gone
		<-ended
	})
	t.Cleanup(s.stop)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		if answers(s.Address) {
			return true
		}
		select {
		case <-ended:
			t.Logf("the S3 server ended: %s", &out)
			return false
		case <-deadline:
			s.stop()
			t.Fatalf("the S3 server does not answer: %s", &out)
		case <-tick.C:
		}
	}
}

// answers reports whether somebody speaks HTTP there.
func answers(address string) bool {
	transport := &http.Transport{DisableKeepAlives: true}
	client := http.Client{Transport: transport, Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + address + "/") //nolint:noctx // it has a timeout
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil
}

// Stop ends the server in whatever it does.
func (s *Server) Stop() { s.stop() }

// URL is where archives are kept in the bucket, by this server or by who passes on
// to it at another address.
func (s *Server) URL(address, prefix string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=%s&region=%s", Bucket, prefix, url.QueryEscape("http://"+address), Region)
}
