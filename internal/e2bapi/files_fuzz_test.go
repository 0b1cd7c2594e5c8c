package e2bapi_test

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/e2bapi"
)

// sink takes files, and remembers those that came whole.
type sink struct {
	cove.Platform
	stubFiles

	whole *[]string
}

func (s sink) Files(cove.ID) cove.Files { return s }

func (s sink) Stat(context.Context, string) (cove.FileInfo, error) {
	return cove.FileInfo{}, cove.Errorf(cove.NotFound, "not there")
}

func (s sink) Write(_ context.Context, name string, r io.Reader, _ fs.FileMode) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	*s.whole = append(*s.whole, name)
	return nil
}

// Whatever a form holds, the answer is that of the files that came whole, or a refusal
// that is the client's own fault.
func FuzzForm(f *testing.F) {
	f.Add(form("a", "x", "/home/user/b", ""), "edge", "")
	f.Add(form("a", "x"), "edge", "p")
	f.Add("--edge\r\nContent-Disposition: form-data; name=\"file\"; filename*=utf-8''%00\r\n\r\nx\r\n--edge--", "edge", "")
	f.Add("--edge\r\n\r\n", "edge", "p")
	f.Add("--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\\\\b\"\r\n\r\n--edge--", "edge", "")
	f.Fuzz(func(t *testing.T, body, boundary, path string) {
		var whole []string
		face := e2bapi.New(e2bapi.Config{
			Secret:   []byte("s"),
			Platform: func(cove.Principal) cove.Platform { return sink{whole: &whole} },
			Key:      func(context.Context, string) (cove.Principal, func(), error) { return cove.Principal{}, nil, nil },
		})
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/files?path="+url.QueryEscape(path), strings.NewReader(body))
		for name, value := range map[string]string{
			"Content-Type": "multipart/form-data; boundary=" + boundary, "E2b-Sandbox-Id": someID, "E2b-Sandbox-Port": "49983",
			"X-Access-Token": e2bapi.Token([]byte("s"), "access", someID, "tester"),
		} {
			req.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		face.ServeHTTP(w, req)
		switch {
		case w.Code == http.StatusOK && strings.Count(w.Body.String(), `"type":"file"`) != len(whole):
			t.Errorf("%d files came whole, and the answer is %s", len(whole), w.Body)
		case w.Code != http.StatusOK && w.Code != http.StatusBadRequest:
			t.Errorf("%d %s", w.Code, w.Body)
		}
		for _, name := range whole {
			if !strings.HasPrefix(name, "/") || strings.ContainsRune(name, 0) || name != "/" && strings.HasSuffix(name, "/") {
				t.Errorf("a file went to %q", name)
			}
		}
	})
}

// No link but the one that was signed opens a file.
func FuzzSignature(f *testing.F) {
	token := e2bapi.Token([]byte("s"), "access", someID, "tester")
	good := link("f", "read", "", token, 0).Encode()
	f.Add(good)
	f.Add(strings.Replace(good, "v1_", "v1_A", 1))
	f.Add(good + "&signature_expiration=1")
	f.Add(link("f", "write", "", token, 0).Encode())
	f.Add("signature=v1_&path=f&signature_expiration=-1")
	f.Fuzz(func(t *testing.T, query string) {
		face := e2bapi.New(e2bapi.Config{
			Secret: []byte("s"),
			Holders: func(context.Context, cove.ID) iter.Seq2[cove.ID, string] {
				return maps.All(map[cove.ID]string{someID: "tester"})
			},
			Key: func(context.Context, string) (cove.Principal, func(), error) {
				return cove.Principal{}, nil, cove.Errorf(cove.NotFound, "it got this far")
			},
		})
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/files", nil)
		req.URL.RawQuery = query
		w := httptest.NewRecorder()
		face.ServeHTTP(w, req)
		values, _ := url.ParseQuery(query)
		right := values.Get("signature") == e2bapi.Sign(values.Get("path"), "read", values.Get("username"), token, 0) && values.Get("signature_expiration") == ""
		switch {
		case w.Code == http.StatusBadGateway && !right:
			t.Errorf("%q opens a file", query)
		case w.Code != http.StatusBadGateway && right && w.Code != http.StatusBadRequest:
			t.Errorf("%q: %d %s", query, w.Code, w.Body)
		}
	})
}
