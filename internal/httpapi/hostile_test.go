package httpapi_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/httpapi"
)

// statusLine reads the status of the next answer.
func statusLine(t *testing.T, conn net.Conn) int {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// trySpeak asks for /health and returns the status, or 0 where nobody answers.
func trySpeak(conn net.Conn) int {
	if _, err := io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return 0
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

func speak(t *testing.T, conn net.Conn) int {
	t.Helper()
	return trySpeak(conn)
}

func (r *rig) dialTCP(l net.Listener) net.Conn {
	r.t.Helper()
	conn, err := new(net.Dialer).DialContext(r.t.Context(), "tcp", l.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// goesOn demands that a server answers others.
func (r *rig) goesOn() {
	r.t.Helper()
	if a := r.send("GET", "/health", ""); a.status != 200 {
		r.t.Errorf("the server does not go on: %d", a.status)
	}
}

// pour writes text again and again until the other end has had enough, or most
// bytes have gone. It returns how many went.
func pour(conn net.Conn, text string, most int64) (sent int64) {
	for sent < most {
		n, err := io.WriteString(conn, text)
		sent += int64(n)
		if err != nil {
			return sent
		}
	}
	return sent
}

const gigabyte = 1 << 30

// TestHeaderOfAGigabyte: it is cut off after a few kilobytes, in one header or
// in many.
func TestHeaderOfAGigabyte(t *testing.T) {
	for name, text := range map[string]string{
		"one header":   strings.Repeat("x", 64<<10),
		"many headers": strings.Repeat("X-A: b\r\n", 8<<10),
		"the path":     strings.Repeat("/x", 32<<10),
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t)
			head := "GET /health HTTP/1.1\r\nHost: x\r\nX-Large: "
			switch name {
			case "many headers":
				head = "GET /health HTTP/1.1\r\nHost: x\r\n"
			case "the path":
				head = "GET "
			}
			conn := r.raw(head)
			defer conn.Close()
			answered := make(chan int, 1)
			go func() {
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					answered <- 0
					return
				}
				_ = resp.Body.Close()
				answered <- resp.StatusCode
			}()
			if sent := pour(conn, text, gigabyte); sent >= 64<<20 {
				t.Errorf("the server took %d bytes", sent)
			}
			if got := <-answered; got != http.StatusRequestHeaderFieldsTooLarge && got != 0 {
				t.Errorf("answered with %d", got) // 0: the answer was lost to the reset that our own bytes caused
			}
			r.goesOn()
		})
	}
}

// TestBodyWithoutAnEnd: a route that takes JSON stops reading at its limit, and
// its client learns why.
func TestBodyWithoutAnEnd(t *testing.T) {
	for name, head := range map[string]string{
		"sized":   "Content-Length: 1073741824\r\n\r\n",
		"chunked": "Transfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, func(c *httpapi.Config) { c.Stall = 300 * time.Millisecond })
			conn := r.raw("POST /api/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret + "\r\n" + head)
			defer conn.Close()
			answered := make(chan string, 1)
			go func() {
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					answered <- err.Error()
					return
				}
				defer resp.Body.Close()
				body, _ := io.ReadAll(resp.Body)
				answered <- resp.Status + " " + string(body)
			}()
			text := `{"project_name":"` + strings.Repeat("x", 32<<10-17)
			if name == "chunked" {
				text = "8000\r\n" + text + "\r\n"
			}
			stop := make(chan struct{})
			go func() {
				defer close(stop)
				pour(conn, text, gigabyte)
			}()
			got := <-answered
			if !strings.HasPrefix(got, "413 ") || !strings.Contains(got, "the body is longer than 1048576 bytes, the most that this route takes") {
				t.Errorf("%s", got)
			}
			<-stop // the server closes the connection
			r.goesOn()
		})
	}
}

// TestSlowHeader: who sends a header too slowly is let go, and takes no place
// from others meanwhile.
func TestSlowHeader(t *testing.T) {
	r := &rig{t: t, fake: &fake{}}
	r.server = httptest.NewUnstartedServer(nil)
	r.server.Config = httpapi.Server(httpapi.New(httpapi.Config{}), nil)
	if r.server.Config.ReadHeaderTimeout != 10*time.Second || r.server.Config.MaxHeaderBytes != 64<<10 || r.server.Config.IdleTimeout != 2*time.Minute {
		t.Errorf("the bounds of a server are %+v", r.server.Config)
	}
	r.server.Config.ReadHeaderTimeout = 500 * time.Millisecond
	r.server.Start()
	defer r.server.Close()
	var slow []net.Conn
	for range 50 {
		conn := r.raw("GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		defer conn.Close()
		slow = append(slow, conn)
	}
	r.goesOn()
	for _, conn := range slow {
		go func() {
			for {
				if _, err := io.WriteString(conn, "x"); err != nil {
					return
				}
			}
		}()
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
			t.Error(err)
		}
	}
	r.goesOn()
}

// TestBadInput: each has its status and a message that says what is wrong.
func TestBadInput(t *testing.T) {
	r := serve(t)
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		want               string
	}{
		"malformed JSON":            {"POST", "/api/sandboxes", `{"flavor":`, 400, "JSON"},
		"two values":                {"POST", "/api/sandboxes", `{}{}`, 400, "after"},
		"wrong type":                {"POST", "/api/sandboxes", `{"flavor":7}`, 400, "flavor"},
		"unknown field":             {"POST", "/api/sandboxes", `{"colour":"red"}`, 400, "colour"},
		"repeated field":            {"POST", "/api/sandboxes", `{"flavor":"a","flavor":"b"}`, 400, "flavor"},
		"a number that is too big":  {"POST", "/api/sandboxes", `{"timeout_minutes":1e400}`, 400, "timeout_minutes"},
		"more time than there is":   {"POST", "/api/sandboxes", `{"timeout_minutes":1e300}`, 400, "timeout_minutes"},
		"a negative timeout":        {"POST", "/api/sandboxes/x/execute", `{"command":"x","timeout":-1}`, 400, "timeout"},
		"a negative idle time":      {"POST", "/api/sandboxes", `{"timeout_minutes":-5}`, 400, "timeout_minutes"},
		"a negative lifetime":       {"POST", "/api/sandboxes", `{"lifetime_minutes":-5}`, 400, "lifetime_minutes"},
		"a negative renewal":        {"POST", "/api/sandboxes/x/renew", `{"timeout_minutes":-1}`, 400, "timeout_minutes"},
		"negative code":             {"POST", "/api/code", `{"code":"1","timeout":-1}`, 400, "timeout"},
		"a negative memory":         {"POST", "/api/sandboxes", `{"memory_limit":"-1g"}`, 400, "memory_limit"},
		"a negative offset":         {"GET", "/api/sandboxes/x/files?path=f&offset=-1", "", 400, "offset"},
		"an offset that is too big": {"GET", "/api/sandboxes/x/files?path=f&offset=99999999999999999999", "", 400, "offset"},
		"half a character":          {"POST", "/api/sandboxes", `{"project_name":"\ud800"}`, 400, "half of a character"},
		"no UTF-8":                  {"POST", "/api/sandboxes", "{\"project_name\":\"\xff\"}", 400, "not UTF-8"},
		"null":                      {"POST", "/api/sandboxes", "null", 400, "the body is null"},
		"an unknown parameter":      {"GET", "/api/sandboxes?colour=red", "", 400, "colour"},
		"no path":                   {"GET", "/api/sandboxes/x/files", "", 400, "path"},
	} {
		a := r.send(c.method, c.path, c.body)
		if p := a.problem(t); a.status != c.status || p.Code != cove.Invalid || !strings.Contains(p.Error, c.want) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		r.goesOn()
	}
}
