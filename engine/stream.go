package engine

import (
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/cove-sandbox/cove"
)

// capped reads until a file has as many bytes as it may.
type capped struct {
	r    io.Reader
	left int64
	most cove.Bytes
}

// Read fails with file_too_large once there is a byte too many.
func (c *capped) Read(p []byte) (int, error) {
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.r.Read(p)
	if int64(n) > c.left {
		return 0, tooLarge(c.most, "the file is")
	}
	c.left -= int64(n)
	return n, err
}

// tooLarge is the error about a file over the limit; format begins its sentence.
func tooLarge(most cove.Bytes, format string, args ...any) error {
	return cove.Errorf(cove.Invalid, format+" larger than %s, the most that may be written", append(args, most)...).
		Reason(cove.ReasonFileTooLarge).With("limit", int64(most))
}

// leaving is a stream out of a session that is busy until it is closed.
type leaving struct {
	io.ReadCloser

	once  sync.Once
	leave func(bytes int64)
	bytes atomic.Int64 // read so far
}

// Read implements io.Reader.
func (l *leaving) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	l.bytes.Add(int64(n))
	return n, err
}

// Close implements io.Closer. It is idempotent.
func (l *leaving) Close() error {
	err := l.ReadCloser.Close()
	l.once.Do(func() { l.leave(l.bytes.Load()) })
	return err
}

// leavingConn is leaving for a connection.
type leavingConn struct {
	net.Conn

	once  sync.Once
	leave func()
}

// Close implements net.Conn. It is idempotent.
func (l *leavingConn) Close() error {
	err := l.Conn.Close()
	l.once.Do(l.leave)
	return err
}

// CloseWrite ends what is sent and leaves the other way open. Where the connection
// cannot do that it is Unsupported.
func (l *leavingConn) CloseWrite() error { return closeWrite(l.Conn) }

func closeWrite(conn net.Conn) error {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return cove.Errorf(cove.Unsupported, "this connection cannot be half closed").Remedy("close it when the answer has come")
	}
	return half.CloseWrite()
}
