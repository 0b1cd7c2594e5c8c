package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cove-sandbox/cove"
)

const filesPath = "/api/sandboxes/x/files?path=f"

func TestRanges(t *testing.T) {
	r := serve(t)
	r.fake.size = 10
	r.fake.read = func(offset, length int64) (io.ReadCloser, error) {
		text := "0123456789"[offset:]
		if length > 0 {
			text = text[:length]
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
	for _, c := range []struct {
		header        string
		status        int
		content, body string
	}{
		{"bytes=0-3", 206, "bytes 0-3/10", "0123"},
		{"bytes=4-", 206, "bytes 4-9/10", "456789"},
		{"bytes=-3", 206, "bytes 7-9/10", "789"},
		{"bytes=-100", 206, "bytes 0-9/10", "0123456789"},
		{"bytes=8-100", 206, "bytes 8-9/10", "89"},
		{"bytes=9-9", 206, "bytes 9-9/10", "9"},
		{"bytes=10-", 416, "bytes */10", ""},
		{"bytes=99-100", 416, "bytes */10", ""},
		{"bytes=-0", 416, "bytes */10", ""},
		{"bytes=0-1,3-4", 200, "", "0123456789"},
		{"bytes=5-2", 200, "", "0123456789"},
		{"bytes=a-b", 200, "", "0123456789"},
		{"bytes=--5", 200, "", "0123456789"},
		{"bytes=5", 200, "", "0123456789"},
		{"lines=1-2", 200, "", "0123456789"},
		{"", 200, "", "0123456789"},
	} {
		a := r.send("GET", filesPath, "", "Range", c.header)
		if a.status != c.status || a.header.Get("Content-Range") != c.content || c.body != "" && a.body != c.body {
			t.Errorf("%s: %d %q %q", c.header, a.status, a.header.Get("Content-Range"), a.body)
		}
		if size := fmt.Sprint(len(a.body)); a.header.Get("Accept-Ranges") != "bytes" || a.header.Get("Content-Length") != size {
			t.Errorf("%s: %s bytes, and the header says %v", c.header, size, a.header)
		}
	}
	if a := r.send("GET", filesPath, "", "Range", "bytes=0-3", "If-Range", `"tag"`); a.status != 200 {
		t.Errorf("with If-Range: %d", a.status)
	}
	if a := r.send("GET", filesPath+"&offset=2&length=3", "", "Range", "bytes=0-3"); a.status != 200 || a.body != "234" {
		t.Errorf("with offset and length: %d %q", a.status, a.body)
	}
	r.fake.read = func(int64, int64) (io.ReadCloser, error) { return nil, cove.Errorf(cove.NotFound, "gone") }
	if a := r.send("GET", filesPath, "", "Range", "bytes=0-3"); a.status != 404 || a.header.Get("Content-Range") != "" {
		t.Errorf("a file that went away: %d", a.status)
	}
	r.fake.fail = cove.Errorf(cove.NotFound, "no such file")
	if a := r.send("GET", filesPath, "", "Range", "bytes=0-3"); a.status != 404 {
		t.Errorf("a file that is not there: %d", a.status)
	}
}

func TestDownloadsAreHarmless(t *testing.T) {
	r := serve(t)
	for _, path := range []string{filesPath, "/api/sandboxes/x/archive"} {
		a := r.send("GET", path, "")
		if a.header.Get("Content-Disposition") != "attachment" || !strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox") || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, a.header)
		}
	}
	if got := r.fake.seen(cove.FileArchive); len(got) != 1 || got[0].Args[1] != "/workspace" {
		t.Errorf("an archive without a path is one of %v", got)
	}
}

// TestDownloadBreaksOff: an error before the first byte is an answer; one
// after it is a broken connection, never a file that looks whole.
func TestDownloadBreaksOff(t *testing.T) {
	r := serve(t)
	fault := cove.Errorf(cove.Unavailable, "the disk is gone")
	r.fake.read = func(int64, int64) (io.ReadCloser, error) { return io.NopCloser(iotest.ErrReader(fault)), nil }
	if a := r.send("GET", filesPath, ""); a.status != 503 {
		t.Errorf("%d %q", a.status, a.body)
	}
	r.fake.read = func(int64, int64) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 200_000)), iotest.ErrReader(fault))), nil
	}
	body, err := r.client.Files(id).Read(t.Context(), "f", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.Copy(io.Discard, body); !errors.Is(err, cove.Unavailable) || !strings.Contains(cove.MessageOf(err), "broke off") {
		t.Errorf("reading ended with %v", err)
	}
}

// TestDownloadNobodyWants: the source is closed when its client leaves.
func TestDownloadNobodyWants(t *testing.T) {
	r := serve(t)
	closed := make(chan struct{})
	r.fake.read = func(int64, int64) (io.ReadCloser, error) { return &closing{endless{}, closed}, nil }
	body, err := r.client.Files(id).Read(t.Context(), "f", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, body, 1<<20); err != nil {
		t.Fatal(err)
	}
	_ = body.Close()
	<-closed
}

type closing struct {
	io.Reader
	closed chan struct{}
}

func (c *closing) Close() error { close(c.closed); return nil }

func TestModes(t *testing.T) {
	r := serve(t)
	for header, want := range map[string]string{"": "-rw-r--r--", "600": "-rw-------", "0755": "-rwxr-xr-x", "4711": "urwx--x--x"} {
		if a := r.send("PUT", filesPath, "x", "X-File-Mode", header); a.status != 204 {
			t.Errorf("%q: %d %s", header, a.status, a.body)
		}
		got := r.fake.seen(cove.FileWrite)
		if mode := got[len(got)-1].Args[3]; fmt.Sprint(mode) != want {
			t.Errorf("%q arrived as %v", header, mode)
		}
	}
	for _, bad := range []string{"rw", "0999", "77777", "-1"} {
		if a := r.send("PUT", filesPath, "x", "X-File-Mode", bad); a.status != 400 {
			t.Errorf("%q: %d", bad, a.status)
		}
	}
}

// TestLargeTransfers: what goes through is not held in memory, and arrives.
func TestLargeTransfers(t *testing.T) {
	r := serve(t)
	const size = 64 << 20
	var got int64
	r.fake.write = func(_ context.Context, src io.Reader) (err error) {
		got, err = io.Copy(io.Discard, src)
		return err
	}
	if err := r.client.Files(id).Write(t.Context(), "f", io.LimitReader(endless{}, size), 0o644); err != nil || got != size {
		t.Errorf("%d of %d bytes arrived, %v", got, size, err)
	}
	r.fake.read = func(int64, int64) (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(endless{}, size)), nil }
	body, err := r.client.Files(id).Read(t.Context(), "f", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if n, err := io.Copy(io.Discard, body); err != nil || n != size {
		t.Errorf("%d of %d bytes came, %v", n, size, err)
	}
}

// TestRefusedWhileSending: a client that is still sending learns why it was
// refused.
func TestRefusedWhileSending(t *testing.T) {
	r := serve(t)
	r.fake.write = func(_ context.Context, src io.Reader) error {
		_, _ = io.CopyN(io.Discard, src, 1<<20)
		return cove.Errorf(cove.Exhausted, "no room").Reason(cove.ReasonWorkspaceFull)
	}
	for range 5 {
		err := r.client.Files(id).Write(t.Context(), "f", endless{}, 0o644)
		if cove.ReasonOf(err) != cove.ReasonWorkspaceFull {
			t.Errorf("%v", err)
		}
	}
	a := r.sendBody("PUT", filesPath, io.LimitReader(endless{}, 50<<20))
	if a.status != 507 {
		t.Errorf("%d", a.status)
	}
}

// TestUploadBreaksOff: a client that goes away in the middle leaves nothing
// that looks whole.
func TestUploadBreaksOff(t *testing.T) {
	for name, head := range map[string]string{
		"sized":   "Content-Length: 1000\r\n\r\n0123456789",
		"chunked": "Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t)
			done := make(chan error, 1)
			r.fake.write = func(_ context.Context, src io.Reader) error {
				_, err := io.Copy(io.Discard, src)
				done <- err
				return err
			}
			conn := r.raw("PUT " + filesPath + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret + "\r\n" + head)
			_ = conn.Close()
			if err := <-done; !errors.Is(err, cove.Canceled) {
				t.Errorf("the platform saw %v", err)
			}
		})
	}
}

func TestUploadStalls(t *testing.T) {
	r := serve(t, quick)
	r.fake.write = func(_ context.Context, src io.Reader) error {
		_, err := io.Copy(io.Discard, src)
		return cove.Wrap(cove.Internal, err, "writing")
	}
	conn := r.raw("PUT " + filesPath + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret + "\r\nContent-Length: 1000\r\n\r\n01234")
	defer conn.Close()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 504 {
		t.Errorf("an upload that stalls is answered with %d", resp.StatusCode)
	}
}

func TestUploadOfAReaderThatFails(t *testing.T) {
	r := serve(t)
	done := make(chan error, 2)
	r.fake.write = func(_ context.Context, src io.Reader) error {
		_, err := io.Copy(io.Discard, src)
		done <- err
		return err
	}
	broken := errors.New("the source broke")
	for _, fault := range []error{broken, cove.Wrap(cove.Denied, broken, "not yours")} {
		err := r.client.Files(id).Write(t.Context(), "f", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(fault)), 0o644)
		if !errors.Is(err, broken) || cove.CodeOf(err) != cove.CodeOf(fault) {
			t.Errorf("%v", err)
		}
		if err := <-done; err == nil {
			t.Error("the platform saw a whole file")
		}
	}
	if err := r.client.Files(id).Write(t.Context(), "f", nil, 0o644); !errors.Is(err, cove.Invalid) {
		t.Errorf("nothing to write: %v", err)
	}
}

// TestUploadOfAReaderThatBlocks: neither a refusal nor a caller that leaves
// waits for a reader.
func TestUploadOfAReaderThatBlocks(t *testing.T) {
	r := serve(t)
	never, writer := io.Pipe()
	defer writer.Close()
	ctx, leave := context.WithCancel(t.Context())
	began := make(chan struct{})
	r.fake.write = func(_ context.Context, src io.Reader) error {
		close(began)
		_, err := io.Copy(io.Discard, src)
		return err
	}
	go func() {
		<-began
		leave()
	}()
	if err := r.client.Files(id).Write(ctx, "f", io.MultiReader(strings.NewReader("x"), never), 0o644); !errors.Is(err, cove.Canceled) {
		t.Errorf("%v", err)
	}
	r.fake.write = func(context.Context, io.Reader) error { return cove.Errorf(cove.Denied, "no") }
	if err := r.client.Files(id).Write(t.Context(), "f", io.MultiReader(strings.NewReader("x"), never), 0o644); !errors.Is(err, cove.Denied) {
		t.Errorf("%v", err)
	}
}

// TestEarlyBytes: bytes that come with the request for a connection are not
// lost, and each way can end by itself.
func TestEarlyBytes(t *testing.T) {
	r := serve(t)
	near, far := tcpPair(t)
	r.fake.dial = func() (net.Conn, error) { return near, nil }
	echoed := make(chan string, 1)
	go func() {
		defer far.Close()
		data, _ := io.ReadAll(far)
		echoed <- string(data)
		_, _ = io.WriteString(far, "answer")
	}()
	conn := r.raw("GET /api/sandboxes/x/ports/80/connect HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret +
		"\r\nConnection: keep-alive, Upgrade\r\nUpgrade: TCP\r\n\r\nearly ")
	defer conn.Close()
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 101 || resp.Header.Get("X-Request-Id") == "" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	_, _ = io.WriteString(conn, "late")
	_ = conn.(*net.TCPConn).CloseWrite()
	if got := <-echoed; got != "early late" {
		t.Errorf("inside came %q", got)
	}
	if rest, err := io.ReadAll(in); err != nil || string(rest) != "answer" {
		t.Errorf("outside came %q, %v", rest, err)
	}
}

// tcpPair is a connection with both ends.
func tcpPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

func TestDialTheOtherWay(t *testing.T) {
	r := serve(t)
	near, far := tcpPair(t)
	r.fake.dial = func() (net.Conn, error) { return near, nil }
	conn, err := r.client.Ports(id).Dial(t.Context(), 80)
	if err != nil {
		t.Fatal(err)
	}
	if conn.LocalAddr() == nil || conn.RemoteAddr() == nil {
		t.Error("the connection has no addresses")
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Error(err)
	}
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		t.Error("the connection cannot be half closed")
	}
	if data, err := io.ReadAll(far); err != nil || string(data) != "hello" {
		t.Errorf("%q %v", data, err)
	}
	_ = conn.Close()
	if _, err := bufio.NewReader(far).ReadByte(); err == nil {
		t.Error("the far end is still open")
	}
	_ = far.Close()
}

func TestPortsNeedAnUpgrade(t *testing.T) {
	r := serve(t)
	if a := r.send("GET", "/api/sandboxes/x/ports/80/connect", ""); a.status != 400 {
		t.Errorf("%d", a.status)
	}
	r.fake.fail = cove.Errorf(cove.Unavailable, "nobody listens")
	if _, err := r.client.Ports(id).Dial(t.Context(), 80); !errors.Is(err, cove.Unavailable) || cove.MessageOf(err) != "nobody listens" {
		t.Errorf("%v", err)
	}
	if n := len(r.fake.seen(cove.PortDial)); n != 1 {
		t.Errorf("%d dials", n)
	}
}

func TestLongInputGoesInPieces(t *testing.T) {
	r := serve(t)
	var got bytes.Buffer
	var ends []bool
	r.fake.input = func(data []byte, eof bool) error {
		got.Write(data)
		ends = append(ends, eof)
		return nil
	}
	want := bytes.Repeat([]byte("\x00\xffx"), 1<<20)
	if err := r.client.Processes(id).Input(t.Context(), 1, want, true); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) || fmt.Sprint(ends) != "[false false true]" {
		t.Errorf("%d bytes came in pieces with the ends %v", got.Len(), ends)
	}
}
