package httpapi_test

import (
	"io"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
)

func TestHeadOfAFile(t *testing.T) {
	r := serve(t)
	r.fake.size = 1 << 40
	a := r.send("HEAD", filesPath, "")
	if a.status != 200 || a.header.Get("Content-Length") != "1099511627776" || a.header.Get("Accept-Ranges") != "bytes" || a.header.Get("Content-Disposition") != "attachment" {
		t.Errorf("%d %v", a.status, a.header)
	}
	if n := len(r.fake.seen(cove.FileRead)); n != 0 {
		t.Error("the file was read")
	}
	r.fake.size = 0 // a directory
	if a := r.send("HEAD", filesPath, ""); a.status != 400 {
		t.Errorf("%d %v", a.status, a.header)
	}
	if a := r.send("HEAD", "/api/sandboxes/x/files", ""); a.status != 400 {
		t.Errorf("without a path: %d", a.status)
	}
	if a := r.send("POST", filesPath, ""); a.header.Get("Allow") != "DELETE, GET, HEAD, PUT" {
		t.Errorf("Allow: %q", a.header.Get("Allow"))
	}
	r.fake.fail = cove.Errorf(cove.NotFound, "no such file")
	if a := r.send("HEAD", filesPath, ""); a.status != 404 {
		t.Errorf("a file that is not there: %d", a.status)
	}
}

// TestRangeOfAFileThatChanges: a client never takes a part of a range for the
// whole of it.
func TestRangeOfAFileThatChanges(t *testing.T) {
	r := serve(t)
	content := ""
	r.fake.read = func(int64, int64) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
	r.fake.size, content = 10, "0123456789 and more"
	if a := r.send("GET", filesPath, "", "Range", "bytes=0-8"); a.status != 206 || a.body != "012345678" || a.header.Get("Content-Length") != "9" {
		t.Errorf("a file that grows: %d %q", a.status, a.body)
	}
	if a := r.send("GET", filesPath, ""); a.status != 200 || a.body != content {
		t.Errorf("the whole of it: %d %q", a.status, a.body)
	}
	content = "01234"
	resp, err := r.server.Client().Do(r.request("GET", filesPath, nil, "Range", "bytes=0-8"))
	if err != nil {
		return // it broke off before its header
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("a range that got shorter looks whole")
	}
	_ = resp.Body.Close()
}
