package escape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// socketName is the unix socket of the host in the arena's directory.
const socketName = "socket"

// watch holds listeners on the host and counts who calls.
type watch struct {
	tcp      []*net.TCPListener
	udp      *net.UDPConn
	unix     *net.UnixListener
	abstract *net.UnixListener

	callers atomic.Int64
	wait    sync.WaitGroup
}

// keepWatch opens the listeners, and calls each one from outside: one that
// does not answer there would prove nothing inside.
func keepWatch(ctx context.Context, dir, token string) (w *watch, err error) {
	w = &watch{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.end())
		}
	}()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address) //nolint:noctx // it takes no time
		if err != nil && address[0] == '[' {
			continue // the host has no IPv6
		}
		if err != nil {
			return w, err
		}
		w.tcp = append(w.tcp, l.(*net.TCPListener)) //nolint:forcetypeassert // net says so
	}
	if w.udp, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		return w, err
	}
	if w.unix, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"}); err != nil {
		return w, err
	}
	if err := os.Chmod(w.unix.Addr().String(), 0o777); err != nil {
		return w, err
	}
	if w.abstract, err = net.ListenUnix("unix", &net.UnixAddr{Name: "@cove-escape-" + token, Net: "unix"}); err != nil {
		return w, err
	}
	w.listen()
	return w, w.callAll(ctx)
}

// greeting is what every listener says.
const greeting = "this is the host\n"

func (w *watch) listeners() []net.Listener {
	var all []net.Listener
	for _, l := range w.tcp {
		all = append(all, l)
	}
	if w.unix != nil {
		all = append(all, w.unix)
	}
	if w.abstract != nil {
		all = append(all, w.abstract)
	}
	return all
}

func (w *watch) listen() {
	for _, l := range w.listeners() {
		w.wait.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return // it was closed
				}
				w.callers.Add(1)
				_, _ = io.WriteString(c, greeting)
				_ = c.Close()
			}
		})
	}
	w.wait.Go(func() {
		buf := make([]byte, 64)
		for {
			if _, _, err := w.udp.ReadFrom(buf); err != nil {
				return // it was closed
			}
			w.callers.Add(1)
		}
	})
}

// callAll calls every listener from the host.
func (w *watch) callAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, l := range w.listeners() {
		var d net.Dialer
		c, err := d.DialContext(ctx, l.Addr().Network(), l.Addr().String())
		if err != nil {
			return fmt.Errorf("call our own listener: %w", err)
		}
		text, err := io.ReadAll(io.LimitReader(c, 64))
		_ = c.Close()
		if string(text) != greeting {
			return fmt.Errorf("our own listener at %s says %q: %w", l.Addr(), text, err)
		}
	}
	w.callers.Store(0)
	return nil
}

// uncalled says whether nobody called since the last time it was asked.
func (w *watch) uncalled() verdict {
	if n := w.callers.Swap(0); n > 0 {
		return breach(strconv.FormatInt(n, 10) + " calls arrived at listeners of the host")
	}
	return heldBy("")
}

func (w *watch) end() error {
	var errs []error
	for _, l := range w.listeners() {
		errs = append(errs, l.Close())
	}
	if w.udp != nil {
		errs = append(errs, w.udp.Close())
	}
	w.wait.Wait()
	return errors.Join(errs...)
}
