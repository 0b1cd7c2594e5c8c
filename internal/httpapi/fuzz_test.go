package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
)

// ask makes a request without a network.
func ask(p cove.Platform, method, target string, body io.Reader, header ...string) answer {
	h := httpapi.New(httpapi.Config{
		Platform:     func(cove.Principal) cove.Platform { return p },
		Authenticate: func(*http.Request) (cove.Principal, func(), error) { return cove.Principal{}, nil, nil },
	})
	req := httptest.NewRequest(method, target, body)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// FuzzQuery: whatever a query and a Range header hold, the answer is one of a
// few, and its headers and its body agree.
func FuzzQuery(f *testing.F) {
	for _, seed := range [][2]string{
		{"path=f", "bytes=0-3"},
		{"path=f&offset=2&length=3", "bytes=-3"},
		{"path=f&path=g", "bytes=5-"},
		{"path=%00&offset=-1", "bytes=-0"},
		{"path=f&offset=9223372036854775807&length=9223372036854775807", "bytes=9223372036854775807-"},
		{"path=f&offset=99999999999999999999", "bytes=18446744073709551616-1"},
		{"%zz", "bytes=0-1,2-3"},
		{"path=f;x", "lines=0-1"},
		{"", "bytes=9-9"},
	} {
		f.Add(seed[0], seed[1])
	}
	const content = "0123456789"
	f.Fuzz(func(t *testing.T, query, span string) {
		if strings.ContainsFunc(query, func(c rune) bool { return c <= ' ' || c > '~' || c == '#' }) {
			t.Skip("no request line holds this")
		}
		p := &fake{size: cove.Bytes(len(content)), read: func(offset, length int64) (io.ReadCloser, error) {
			if offset < 0 || length < 0 {
				t.Fatalf("asked for %d bytes from %d", length, offset)
			}
			rest := content[min(offset, int64(len(content))):]
			if length > 0 {
				rest = rest[:min(length, int64(len(rest)))]
			}
			return io.NopCloser(strings.NewReader(rest)), nil
		}}
		a := ask(p, "GET", "/api/sandboxes/x/files?"+query, nil, "Range", span)
		switch a.status {
		case 200, 400, 416:
		case 206:
			var from, to, size int
			if n, err := fmt.Sscanf(a.header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &size); n != 3 || err != nil || a.body != content[from:to+1] || size != len(content) {
				t.Fatalf("%q and %q: %q is %q", query, span, a.header.Get("Content-Range"), a.body)
			}
		default:
			t.Fatalf("%d %s", a.status, a.body)
		}
		if told := a.header.Get("Content-Length"); told != "" && told != strconv.Itoa(len(a.body)) {
			t.Fatalf("%q and %q: %s bytes were told and %d came", query, span, told, len(a.body))
		}
	})
}
