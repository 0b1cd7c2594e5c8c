//go:build linux

package agent

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/guest/protocol"
)

// namePort is where the name server is.
const namePort = 53

// maxConnections bounds those that are on their way out, of all hosts' requests:
// each takes two of the streams that a link can have.
const maxConnections = 512

// ways are the sockets of one request to listen.
type ways struct {
	s      *server
	id     uint64
	host   int // whose they are, of all hosts
	closed atomic.Bool

	mu    sync.Mutex
	files []*os.File
}

func (s *server) newWays(id uint64) *ways {
	s.berths.mu.Lock()
	defer s.berths.mu.Unlock()
	return &ways{s: s, id: id, host: s.berths.hosts}
}

// listen opens the sockets of a way out, until the stream of the request ends.
func (s *server) listen(m *protocol.Message) {
	req, err := protocol.DecodeListen(m.Body)
	want := 1
	if req.Names {
		want = 2
	}
	if err != nil || len(m.Streams) != want {
		s.malformed(m)
		return
	}
	w := s.newWays(m.ID)
	var tcp []*os.File
	for _, port := range req.Ports {
		f, err := w.bind(place{kind: unix.SOCK_STREAM, port: int(port)})
		if err != nil {
			w.refuse(m, err, port)
			return
		}
		tcp = append(tcp, f)
	}
	loopback := [4]byte{127, 0, 0, 1}
	var packets, names *os.File
	if req.Names {
		if packets, err = w.bind(place{unix.SOCK_DGRAM, loopback, namePort}); err == nil {
			names, err = w.bind(place{unix.SOCK_STREAM, loopback, namePort})
		}
		if err != nil {
			w.refuse(m, err, namePort)
			return
		}
	}
	s.reply(m.ID, protocol.Reply{})
	for _, f := range tcp {
		go w.accept(f, false)
	}
	if req.Names {
		go w.accept(names, true)
		link := m.Streams[1].File("names")
		w.own(link)
		go w.ask(packets, link)
		go w.answer(packets, link)
	}
	go w.last(m.Streams[0].File("listen"))
}

// refuse answers that a port cannot be had.
func (w *ways) refuse(m *protocol.Message, err error, port uint16) {
	w.close()
	r := failure(err)
	r.Text = strconv.Itoa(int(port))
	w.s.reply(m.ID, r)
}

// own has a file closed with the others.
func (w *ways) own(f *os.File) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files = append(w.files, f)
}

// bind opens one socket.
func (w *ways) bind(at place) (*os.File, error) {
	f, err := w.s.berths.bind(at, w)
	if err != nil {
		return nil, err
	}
	w.own(f)
	return f, nil
}

// last ends everything with the stream that stands for the request.
func (w *ways) last(f *os.File) {
	var b [1]byte
	for {
		if _, err := f.Read(b[:]); err != nil {
			break
		}
	}
	_ = f.Close()
	w.close()
}

func (w *ways) close() {
	w.closed.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.files {
		_ = f.Close()
	}
	w.files = nil
}

// accept hands connections to the host.
func (w *ways) accept(f *os.File, names bool) {
	rc, err := f.SyscallConn()
	if err != nil {
		return
	}
	for {
		conn := -1
		var got error
		err := rc.Read(func(fd uintptr) bool {
			conn, _, got = unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return !errors.Is(got, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return // it is closed
		case got == nil:
			w.hand(conn, names)
		case !errors.Is(got, unix.EINTR) && !errors.Is(got, unix.ECONNABORTED):
			pause := time.NewTimer(backOff)
			<-pause.C
		}
	}
}

// hand gives one connection to the host, unless there are too many.
func (w *ways) hand(conn int, names bool) {
	at, err := unix.Getsockname(conn)
	to, ok := at.(*unix.SockaddrInet4)
	if err == nil && ok && !names && !leadsOut(to.Addr) {
		// To reset it says that nobody is there; only to close it would look like
		// somebody who is, and is silent.
		_ = unix.SetsockoptLinger(conn, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		_ = unix.Close(conn)
		return
	}
	if err != nil || !ok || w.s.out.Add(1) > maxConnections {
		if err == nil && ok {
			w.s.out.Add(-1)
		}
		_ = unix.Close(conn)
		return
	}
	st := protocol.NewStream(conn, protocol.Duplex)
	st.After(func() { w.s.out.Add(-1) })
	told := protocol.Accepted{Address: to.Addr, Port: uint16(to.Port), Names: names} //nolint:gosec // a port
	_ = w.s.link.Send(&protocol.Message{Kind: protocol.KindAccepted, ID: w.id, Body: told.Encode(), Streams: []*protocol.Stream{st}})
}

// leadsOut reports whether an address can be that of a name. At others, such as
// 127.0.0.1, programs look for each other.
func leadsOut(a [4]byte) bool { return a[0] == 127 && a[1] >= 64 && a[1] < 128 }

// ask hands packets to the host.
func (w *ways) ask(packets, link *os.File) {
	rc, err := packets.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, protocol.MaxQuery)
	for {
		n := 0
		var from unix.Sockaddr
		var got error
		err := rc.Read(func(fd uintptr) bool {
			n, from, got = unix.Recvfrom(int(fd), buf, 0)
			return !errors.Is(got, unix.EAGAIN)
		})
		if err != nil {
			return
		}
		who, ok := from.(*unix.SockaddrInet4)
		if got != nil || !ok {
			continue // such as when nobody is left whom we answered
		}
		q := protocol.Query{Address: who.Addr, Port: uint16(who.Port), Packet: string(buf[:n])} //nolint:gosec // a port
		if _, err := link.Write(protocol.AppendRecord(nil, protocol.RecordData, q.Encode())); err != nil {
			return
		}
	}
}

// answer sends what the host says.
func (w *ways) answer(packets, link *os.File) {
	rc, err := packets.SyscallConn()
	if err != nil {
		return
	}
	r := protocol.NewRecordReader(link)
	for {
		_, b, err := r.Next()
		if err != nil {
			return
		}
		q, err := protocol.DecodeQuery(b)
		if err != nil {
			return
		}
		// Who asked and gets nothing asks again.
		_ = rc.Control(func(fd uintptr) {
			_ = unix.Sendto(int(fd), []byte(q.Packet), 0, &unix.SockaddrInet4{Port: int(q.Port), Addr: q.Address})
		})
	}
}
