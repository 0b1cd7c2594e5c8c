//go:build linux

package keeper

import (
	"errors"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cove-sandbox/cove/internal/flock"
)

// Name is what argv[0] of a keeper is, by which an executable that is more than
// that knows what it was started for. Its directory is the argument.
const Name = "cove-keeper"

// DefaultFD is where a keeper finds the connection of whoever started it.
const DefaultFD = 3

// Names of files in the directory of a keeper.
const (
	socketFile = "keeper.sock"
	lockFile   = "keeper.lock"
	logsDir    = "kept"
)

// How long things may take.
var (
	idleTime  = within(5 * time.Second) // without a server and with nothing to hold
	yieldTime = within(2 * time.Second) // of a server that is gone, until that is noticed
	lockTime  = within(5 * time.Second) // of a keeper that is ending
	lookTime  = within(time.Minute)     // between looks at the own socket
)

// helloTime is how long one may take to say who one is.
const helloTime = 5 * time.Second

// span is a time that tests make shorter while keepers of theirs still end.
type span struct{ d atomic.Int64 }

func within(d time.Duration) *span {
	var s span
	s.d.Store(int64(d))
	return &s
}

func (s *span) long() time.Duration { return time.Duration(s.d.Load()) }

// set returns what it was.
func (s *span) set(d time.Duration) time.Duration { return time.Duration(s.d.Swap(int64(d))) }

// maxConns bounds connections of whoever they are.
const maxConns = 16

// Main is the keeper of a directory, started with a connection to its first
// server. It returns the exit code of the process.
func Main(fd int, dir string) int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGTSTP, unix.SIGPIPE)
	unix.Umask(0o077)
	unix.CloseOnExec(fd)
	first, err := connOf(fd)
	if err != nil {
		return 1
	}
	s, err := newServer(dir)
	if err != nil {
		refuse(first, err)
		return 1
	}
	s.serve(first)
	return 0
}

// refuse tells the one who says hello why he is not served.
func refuse(c *net.UnixConn, why error) {
	_ = c.SetDeadline(time.Now().Add(helloTime))
	if _, files, err := newReceiver(c).next(); err == nil {
		closeAll(files)
		_ = send(c, failed(why).encode(), nil)
	}
	_ = c.Close()
}

// server is a running keeper.
type server struct {
	holdings

	listener *net.UnixListener
	lock     *os.File
	place    *os.File      // the directory
	socket   os.FileInfo   // as it was made
	daemon   chan struct{} // holds one while a server is served
	conns    chan struct{} // one for each connection
	over     chan struct{}
	end      func()
	idle     *time.Timer

	guard   sync.Mutex
	running map[*net.UnixConn]bool // guarded by guard, as place is from the end on
}

// newServer takes the directory.
func newServer(dir string) (_ *server, err error) {
	s := &server{daemon: make(chan struct{}, 1), conns: make(chan struct{}, maxConns), over: make(chan struct{}), running: map[*net.UnixConn]bool{}}
	s.boxes = map[string]*box{}
	s.end = sync.OnceFunc(func() { close(s.over) })
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.lock, err = takeLock(filepath.Join(dir, lockFile)); err != nil {
		return nil, err
	}
	if s.place, err = openDir(dir); err != nil {
		return nil, err
	}
	// What an earlier keeper left is of no use to anybody: it died with it.
	logs := filepath.Join(dir, logsDir)
	if err := errors.Join(os.RemoveAll(logs), os.Mkdir(logs, 0o700)); err != nil {
		return nil, err
	}
	if s.root, err = os.OpenRoot(logs); err != nil {
		return nil, err
	}
	if err := clear(filepath.Join(dir, socketFile)); err != nil {
		return nil, err
	}
	if s.listener, err = net.ListenUnix("unixpacket", address(s.place)); err != nil {
		return nil, err
	}
	if err := os.Chmod(address(s.place).Name, 0o600); err != nil {
		return nil, err
	}
	s.socket, err = os.Lstat(address(s.place).Name)
	return s, err
}

// errLocked says that there is a keeper already.
var errLocked = errors.New("another keeper holds the directory")

// takeLock makes us the keeper of a directory. One that is ending has a moment
// to do so.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // in the provider's directory
	if err != nil {
		return nil, err
	}
	late := time.After(lockTime.long())
	for {
		ok, err := flock.Try(f, flock.Exclusive)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if ok {
			_ = f.Truncate(0)
			_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
			return f, err
		}
		select {
		case <-late:
			return nil, errors.Join(errLocked, f.Close())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// clear removes the socket of a keeper that is gone. Nothing else may be there.
func clear(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return &os.PathError{Op: "listen", Path: path, Err: errors.New("something that is no socket is there")}
	}
	return os.Remove(path)
}

func openDir(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0) //nolint:gosec // the provider's own
}

// address names the socket by a descriptor of its directory: the names of
// sockets must be short, those of directories need not be.
func address(dir *os.File) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixpacket", Name: "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + socketFile}
}

// serve serves until there is nothing to do.
func (s *server) serve(first *net.UnixConn) {
	s.idle = time.AfterFunc(idleTime.long(), s.rest)
	if first != nil {
		s.admit(first)
	}
	go s.accept()
	look := time.NewTicker(lookTime.long())
	defer look.Stop()
	for s.waits(look.C) {
	}
	s.close()
}

// waits reports, after a while, whether the keeper is still of use: one whose
// socket was removed cannot be reached by the next server, and what it holds must
// not live on unseen.
func (s *server) waits(tick <-chan time.Time) bool {
	select {
	case <-s.over:
		return false
	case <-tick:
	}
	if s.reachable() {
		return true
	}
	select {
	case s.daemon <- struct{}{}: // no server is served
		return false
	default:
		return true
	}
}

// reachable reports whether the socket is still where the next server looks for it.
func (s *server) reachable() bool {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.place == nil { // the keeper ends
		return false
	}
	now, err := os.Lstat(address(s.place).Name)
	return err == nil && os.SameFile(s.socket, now)
}

func (s *server) close() {
	if s.listener != nil {
		_ = s.listener.Close() // which removes the socket
	}
	s.guard.Lock()
	for c := range s.running {
		_ = c.Close()
	}
	s.guard.Unlock()
	for _, name := range s.list() {
		s.drop(name)
	}
	if s.root != nil {
		_ = s.root.Close()
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	for _, f := range []*os.File{s.place, s.lock} {
		if f != nil {
			_ = f.Close()
		}
	}
	s.place = nil
}

func (s *server) accept() {
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			s.end()
			return
		}
		if _, err := peerOf(c); err != nil {
			_ = c.Close()
			continue
		}
		s.admit(c)
	}
}

// admit serves a connection, unless there are too many.
func (s *server) admit(c *net.UnixConn) {
	select {
	case s.conns <- struct{}{}:
	default:
		_ = c.Close()
		return
	}
	s.guard.Lock()
	s.running[c] = true
	s.guard.Unlock()
	go func() {
		defer func() { <-s.conns }()
		s.attend(c)
		s.guard.Lock()
		delete(s.running, c)
		s.guard.Unlock()
		_ = c.Close()
	}()
}

// rest ends a keeper that has nothing to do.
func (s *server) rest() {
	select {
	case s.daemon <- struct{}{}: // no server comes in between
		if s.empty() {
			s.end()
			return
		}
		<-s.daemon
	default:
	}
}

// attend greets a server and answers it until it is gone.
func (s *server) attend(c *net.UnixConn) {
	in := newReceiver(c)
	_ = c.SetReadDeadline(time.Now().Add(helloTime))
	text, files, err := in.next()
	closeAll(files)
	if err != nil {
		return
	}
	a := &answer{protocol: Protocol}
	r, err := decodeRequest(text)
	switch {
	case err != nil || r.kind != kindHello:
		a.code = codeWrong
	case r.protocol != Protocol:
		a.code = codeVersion
	case !s.take():
		a.code = codeBusy
	}
	if send(c, a.encode(), nil) != nil || a.code != codeDone {
		if a.code == codeDone {
			s.giveBack()
		}
		return
	}
	defer s.giveBack()
	_ = c.SetReadDeadline(time.Time{})
	for s.answer(c, in) {
	}
	s.farewell()
}

// take makes a connection that of the server.
func (s *server) take() bool {
	late := time.NewTimer(yieldTime.long())
	defer late.Stop()
	select {
	case s.daemon <- struct{}{}:
		s.idle.Stop()
		return true
	case <-late.C:
		return false
	}
}

func (s *server) giveBack() {
	if !s.reachable() {
		s.end() // there will be no other server
	}
	<-s.daemon
	s.idle.Reset(idleTime.long())
}

// answer answers one request, and reports whether there may be more.
func (s *server) answer(c *net.UnixConn, in *receiver) bool {
	text, files, err := in.next()
	if err != nil {
		return false
	}
	r, err := decodeRequest(text)
	if err != nil {
		closeAll(files)
		_ = send(c, (&answer{code: codeWrong}).encode(), nil)
		return false
	}
	if r.kind == kindBye {
		closeAll(files)
		s.bye(c)
		return false
	}
	a, with := s.do(&r, files)
	err = send(c, a.encode(), with)
	closeAll(with)
	// A server that died leaves requests in the queue, which are carried out; the
	// end of the connection comes after them.
	return err == nil || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
}

// bye ends the keeper if it holds nothing, and says so.
func (s *server) bye(c *net.UnixConn) {
	a := &answer{}
	if s.empty() {
		a.text = ending
		defer s.end()
	}
	_ = send(c, a.encode(), nil)
}

// do carries a request out. It takes over the files, and what it returns is the
// caller's to close.
func (s *server) do(r *request, files []int) (*answer, []int) {
	if !fitting(r, files) {
		closeAll(files)
		return &answer{code: codeWrong}, nil
	}
	switch r.kind { //nolint:exhaustive // the others are about one program
	case kindPut:
		return &answer{code: s.put(r, files)}, nil
	case kindList:
		return &answer{names: s.list()}, nil
	case kindGet:
		return s.get(r.sandbox)
	case kindDrop:
		s.drop(r.sandbox)
		return &answer{}, nil
	case kindKeep:
		return &answer{code: s.keep(r, files)}, nil
	case kindPrograms:
		return s.programs(r.sandbox), nil
	case kindForget:
		s.forget(r)
		return &answer{}, nil
	case kindGate, kindListen, kindSet, kindConnections, kindUngate:
		return s.way(r, files), nil
	}
	p := s.program(r)
	if p == nil {
		return &answer{code: codeUnknown}, nil
	}
	return p.do(r)
}

// do carries out a request about one program.
func (p *program) do(r *request) (*answer, []int) {
	switch r.kind { //nolint:exhaustive // the others are not about programs
	case kindLook:
		fd, err := p.input()
		if err != nil {
			return failed(err), nil
		}
		if fd < 0 {
			return &answer{note: p.note}, nil
		}
		return &answer{note: p.note, names: []string{inName}}, []int{fd}
	case kindFollow:
		fd, err := p.follow(r.offset)
		if err != nil {
			return failed(err), nil
		}
		return &answer{}, []int{fd}
	case kindShut:
		p.shut()
	case kindFinish:
		p.finish()
	default:
		return &answer{code: codeWrong}, nil
	}
	return &answer{}, nil
}

// takesFiles are the requests with descriptors.
var takesFiles = map[kind]bool{kindPut: true, kindKeep: true, kindGate: true, kindListen: true, kindSet: true}

// fitting reports whether a request has the descriptors that it must have.
func fitting(r *request, files []int) bool {
	if len(r.names) != len(files) || len(files) > 0 && !takesFiles[r.kind] {
		return false
	}
	names := slices.Sorted(slices.Values(r.names))
	if len(slices.Compact(names)) != len(files) {
		return false
	}
	if r.kind != kindList && r.sandbox == "" {
		return false
	}
	if r.kind != kindKeep {
		return true
	}
	return r.program != "" && !slices.ContainsFunc(r.names, func(n string) bool { return n != inName && n != outName && n != errName })
}
