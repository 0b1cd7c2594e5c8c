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

// changing is a server with a file that says it has 10 bytes, and has others.
func changing(t *testing.T, content string) *rig {
	t.Helper()
	r := serve(t)
	r.fake.size = 10
	r.fake.read = func(int64, int64) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
	return r
}

// TestFileThatChanges: a client never takes a part of a file for the whole, and
// gets a file that grows as it was.
func TestFileThatChanges(t *testing.T) {
	grows := changing(t, "0123456789 and more")
	if a := grows.send("GET", filesPath, ""); a.status != 200 || a.body != "0123456789" || a.header.Get("Content-Length") != "10" {
		t.Errorf("a file that grows: %d %q", a.status, a.body)
	}
	for name, spec := range map[string]string{"whole": "", "range": "bytes=0-8"} {
		r := changing(t, "01234")
		resp, err := r.server.Client().Do(r.request("GET", filesPath, nil, "Range", spec))
		if err != nil {
			continue // it broke off before its header
		}
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: a file that got shorter looks whole", name)
		}
		_ = resp.Body.Close()
	}
	// One that is replaced between the look and the reading comes without a length.
	replaced := changing(t, "")
	replaced.fake.read = func(int64, int64) (io.ReadCloser, error) {
		replaced.fake.size = 12
		return io.NopCloser(strings.NewReader("another file")), nil
	}
	if a := replaced.send("GET", filesPath, ""); a.status != 200 || a.body != "another file" {
		t.Errorf("a file that was replaced: %d %q", a.status, a.body)
	}
	// One that cannot be looked at is read all the same, or says why not.
	gone := changing(t, "whole")
	gone.fake.fail = cove.Errorf(cove.Unavailable, "no look")
	if a := gone.send("GET", filesPath, ""); a.status != 200 || a.body != "whole" {
		t.Errorf("a file without a look: %d %q", a.status, a.body)
	}
}
