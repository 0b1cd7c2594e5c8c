//go:build !lean

package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/client"
	"github.com/cove-sandbox/cove/internal/config"
	"github.com/cove-sandbox/cove/internal/wire"
)

// startTime bounds how long a server may take to answer its first request,
// unless the caller says otherwise.
const startTime = 60 * time.Second

// Caller is who wants a server.
type Caller struct {
	Version string
	Notify  func(text string) // told what a user should know; nil: nobody
	Wait    time.Duration     // for a server to answer; 0: a minute
}

// Connect returns a client of the server of COVE_HOME and starts one, on
// demand, if nobody serves it. Of many callers at once one starts it and all
// others wait. A server that cannot start is Unavailable with what it said.
func Connect(ctx context.Context, cfg config.Config, c Caller) (*client.Client, error) {
	if c.Wait == 0 {
		c.Wait = startTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Wait, errSlow)
	defer cancel()
	home := Home{dir: cfg.Home}
	// Who only talks to a server needs no room in COVE_HOME, but must know that
	// nobody else can have put the socket there.
	err := home.owned()
	var health wire.Health
	if err == nil {
		health, err = home.reach(ctx)
	}
	if err != nil {
		if home, err = OpenHome(cfg.Home); err != nil {
			return nil, err
		}
		if health, err = home.summon(ctx, cfg); err != nil {
			return nil, err
		}
	}
	if health.Version != c.Version && c.Notify != nil {
		who, _, _ := home.WhoServes()
		c.Notify(fmt.Sprintf("the server of %s (process %d) is version %s and this is %s; stop it, and the next command starts the right one", home.dir, who.PID, health.Version, c.Version))
	}
	return client.New(home.socketURL(), "")
}

// Dial is Connect for those who do not want a server to be started: it is
// Unavailable where nobody serves COVE_HOME.
func Dial(ctx context.Context, cfg config.Config) (*client.Client, error) {
	home := Home{dir: cfg.Home}
	if _, err := home.greet(ctx); err != nil {
		return nil, cove.Errorf(cove.Unavailable, "nobody serves %s now", cfg.Home).Reason(cove.ReasonConnection).Remedy("start cove serve, or any cove sandbox command")
	}
	return client.New(home.socketURL(), "")
}

var errSlow = errors.New("the server did not answer in time")

// greetTime bounds one try to reach a server.
const greetTime = 10 * time.Second

// greet asks a server how it is. An answer also keeps a server that is about to
// end for want of work.
func (h Home) greet(ctx context.Context) (wire.Health, error) {
	var health wire.Health
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	return health, h.ask(ctx, http.MethodGet, "/health", nil, &health)
}

// ask sends a request to the socket and reads the JSON that comes back.
func (h Home) ask(ctx context.Context, method, path string, body []byte, answer any) error {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", h.Socket())
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, "http://cove"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", strings.TrimPrefix(path, "/"), resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, longestAnswer)).Decode(answer)
}

// longestAnswer bounds what a server says of itself, and of what it found.
const longestAnswer = 64 << 20

var errEnding = errors.New("the server is about to end")

// reach is greet for those who want work done: a server on demand that can do
// none is about to end, and another one can take its place.
func (h Home) reach(ctx context.Context) (wire.Health, error) {
	health, err := h.greet(ctx)
	if err != nil || health.Status == wire.Healthy || health.Status == wire.Recovering {
		return health, err
	}
	if who, served, err := h.WhoServes(); err == nil && served && who.OnDemand {
		return health, errEnding
	}
	return health, nil
}

// summon makes somebody serve COVE_HOME. The spawn lock is held meanwhile, so
// that one caller starts a server and the others find it.
func (h Home) summon(ctx context.Context, cfg config.Config) (wire.Health, error) {
	l, err := awaitLock(ctx, h.spawnFile())
	if err != nil {
		return wire.Health{}, h.noAnswer(ctx, err)
	}
	defer func() { _ = l.free() }() // closing a file that was only locked
	var child *child
	for {
		health, err := h.reach(ctx)
		if err == nil {
			return health, nil
		}
		who, served, lookErr := h.WhoServes()
		if lookErr == nil && served && who.embeds() {
			return wire.Health{}, h.taken(who)
		}
		if lookErr == nil && !served {
			if child.gone() {
				return wire.Health{}, child.lastWords()
			}
			if child == nil {
				var failed error
				if child, failed = h.spawn(cfg); failed != nil {
					return wire.Health{}, failed
				}
			}
		}
		if pause(ctx, retryEvery) != nil {
			return wire.Health{}, h.noAnswer(ctx, err)
		}
	}
}

// noAnswer says why there is no server after the wait.
func (h Home) noAnswer(ctx context.Context, err error) error {
	if !errors.Is(context.Cause(ctx), errSlow) {
		if ctx.Err() != nil {
			return cove.Wrap(cove.CodeOf(ctx.Err()), ctx.Err(), "interrupted while the server was starting")
		}
		return homeError(h.dir, err)
	}
	who, served, _ := h.WhoServes()
	if !served {
		return cove.Wrap(cove.Unavailable, err, "no server of %s answered in time", h.dir).Remedy("see %s", h.Log())
	}
	return cove.Wrap(cove.Unavailable, err, "%s serves %s and did not answer in time", who, h.dir).Remedy("stop it%s, and try again", who.howToStop())
}

// child is a server that we started.
type child struct {
	log  string
	from int64 // where its part of the log begins
	done chan struct{}
	err  error // set before done is closed
}

// spawn starts a server that outlives this process: a session of its own, no
// input, and the log as its output.
func (h Home) spawn(cfg config.Config) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, cove.Wrap(cove.Internal, err, "the path of this program is unknown, so that no server can be started").Remedy("start cove serve yourself")
	}
	if _, err := os.Stat(program); err != nil {
		program = "/proc/self/exe" // a file in memory has no path
	}
	if err := rotateLong(h.Log()); err != nil {
		return nil, homeError(h.dir, err)
	}
	log, err := openAppend(h.Log())
	if err != nil {
		return nil, homeError(h.dir, err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	c := &child{log: h.Log(), done: make(chan struct{})}
	if info, err := log.Stat(); err == nil {
		c.from = info.Size()
	}
	args := []string{"serve", "--on-demand", "--home", h.dir}
	if cfg.IsSet("COVE_CONFIG") {
		args = append(args, "--config", cfg.File)
	}
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // this very program, which must outlive the command
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, cove.Wrap(cove.Unavailable, err, "the server cannot be started from %s", program).Remedy("start cove serve yourself")
	}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// gone reports whether the child has ended.
func (c *child) gone() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// lastWords is the error about a child that ended, in its own words.
func (c *child) lastWords() error {
	said := ""
	if f, err := os.Open(c.log); err == nil {
		defer func() { _ = f.Close() }()
		data, _ := io.ReadAll(io.NewSectionReader(f, c.from, 64<<10)) // what can be read will do
		said = complaint(string(data))
	}
	if said == "" && c.err != nil {
		said = c.err.Error()
	}
	return cove.Errorf(cove.Unavailable, "the server ended while it was starting: %s", said).Remedy("see %s", c.log)
}

// complaint finds the sentence that a command ends with in what it wrote.
func complaint(text string) string {
	found := ""
	for line := range strings.Lines(text) {
		if said, ok := strings.CutPrefix(line, "cove: "); ok {
			found = strings.TrimSpace(said)
		} else if found != "" && strings.HasPrefix(line, "  ") {
			found += "; " + strings.TrimSpace(line)
		}
	}
	return found
}
