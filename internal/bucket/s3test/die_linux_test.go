package s3test_test

import (
	"net/http"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/bucket/s3test"
)

// TestThreadEnds starts a server from a thread that ends. The server goes on.
func TestThreadEnds(t *testing.T) {
	var s *s3test.Server
	started := make(chan int, 1)
	go func() {
		thread := 0
		defer func() { started <- thread }()
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		s = s3test.Start(t, os.Getenv("COVE_TEST_S3"))
		thread = unix.Gettid()
	}()
	thread := <-started
	if s == nil {
		t.SkipNow() // Start has said why
	}
	for unix.Tgkill(os.Getpid(), thread, 0) == nil && thread != os.Getpid() {
		runtime.Gosched() // the thread is about to end
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
