package httpapi_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/httpapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "cove_thesecret"

// rig is a server in front of a fake, and a client of it.
type rig struct {
	t      *testing.T
	fake   *fake
	server *httptest.Server
	client *client.Client
	done   atomic.Int32 // how often a request was over
}

// serve starts a server over TCP.
func serve(t *testing.T, change ...func(*httpapi.Config)) *rig {
	t.Helper()
	return start(t, nil, change...)
}

func start(t *testing.T, listener net.Listener, change ...func(*httpapi.Config)) *rig {
	t.Helper()
	r := &rig{t: t, fake: &fake{}}
	cfg := httpapi.Config{
		Platform: func(p cove.Principal) cove.Platform {
			if p.Name != "tester" {
				t.Errorf("the platform is bound to %q", p.Name)
			}
			return r.fake
		},
		Authenticate: func(req *http.Request) (cove.Principal, func(), error) {
			if req.Header.Get("Authorization") != "Bearer "+secret {
				return cove.Principal{}, nil, cove.Errorf(cove.Unauthenticated, "no valid key was shown")
			}
			return cove.Principal{Name: "tester", Tenant: "acme"}, func() { r.done.Add(1) }, nil
		},
		Version: "1.2.3",
	}
	for _, c := range change {
		c(&cfg)
	}
	r.server = httptest.NewUnstartedServer(nil)
	r.server.Config = httpapi.Server(httpapi.New(cfg), cfg.Logger)
	address := ""
	if listener != nil {
		_ = r.server.Listener.Close()
		r.server.Listener = listener
		if listener.Addr().Network() == "unix" {
			address = "unix://" + listener.Addr().String()
		}
	}
	r.server.Start()
	if address == "" {
		address = r.server.URL
	}
	c, err := client.New(address, secret)
	if err != nil {
		t.Fatal(err)
	}
	r.client = c
	t.Cleanup(func() {
		_ = c.Close()
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// serveUnix starts a server on a unix socket.
func serveUnix(t *testing.T) *rig {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, l)
}

// answer is what came back, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// send makes one request with the key.
func (r *rig) send(method, path, body string, header ...string) answer {
	r.t.Helper()
	return r.sendBody(method, path, strings.NewReader(body), header...)
}

func (r *rig) sendBody(method, path string, body io.Reader, header ...string) answer {
	r.t.Helper()
	resp, err := r.server.Client().Do(r.request(method, path, body, header...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if got := resp.Request; resp.StatusCode < 400 && !described(got.Method, got.URL.EscapedPath(), resp.StatusCode) {
		r.t.Errorf("%s %s was answered with %d, which the description of the routes does not have", got.Method, got.URL.Path, resp.StatusCode)
	}
	return answer{resp.StatusCode, resp.Header, string(data)}
}

func (r *rig) request(method, path string, body io.Reader, header ...string) *http.Request {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.server.URL+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			req.Header.Del(header[i])
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	return req
}
