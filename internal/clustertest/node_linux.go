package clustertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Where a node listens, for clients and for other nodes.
const (
	clientPort = "8000"
	nodePort   = "7000"
)

// patience is how long a node may take to be there.
const patience = time.Minute

// node is a server of the cluster.
type node struct {
	*member

	program string
	home    string
	disk    *disk // with the home; nil: that of the machine
	port    string
	alone   bool // it is no part of a cluster
	log     string
	env     []string
	ask     *http.Client
	admin   string // its own key, which it can tell a Redis that lost all keys
	tell    func(format string, args ...any)

	turn    sync.Mutex // of faults
	mu      sync.Mutex
	process *process
	wanted  bool // it is to run: an end is none of ours
	deaths  []string
}

// base is where clients reach it.
func (n *node) base() string { return "http://" + net.JoinHostPort(n.address, n.port) }

// start waits until it answers, and is a part of its cluster. One that gives up while it starts is started again,
// as whoever looks after servers would.
func (n *node) start(ctx context.Context) error {
	err := until(ctx, patience, func(ctx context.Context) error {
		p, err := n.running()
		if err != nil {
			return err
		}
		if _, err = n.health(ctx); err == nil && !n.alone {
			err = n.well(ctx) // it answers before it has asked Redis, and gives up where it cannot
		}
		if err != nil && p.ended() {
			return fmt.Errorf("%s ended at its start: %w\n%s", n.name, p.err, lastOf(n.log))
		}
		return err
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted = err == nil
	return err
}

// lastOf is the end of a log.
func lastOf(path string) string {
	text, _ := os.ReadFile(path) // then there is nothing to show
	return string(text[max(0, len(text)-2000):])
}

// running starts the process, unless it runs.
func (n *node) running() (*process, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil && !n.process.ended() {
		return n.process, nil
	}
	p, err := launch(n.space, n.log, n.env, n.program, "serve")
	if err != nil {
		return nil, err
	}
	n.process = p
	go n.mourn(p)
	return p, nil
}

// mourn writes down an end that nobody asked for.
func (n *node) mourn(p *process) {
	<-p.done
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wanted && n.process == p {
		n.deaths = append(n.deaths, fmt.Sprintf("%s ended by itself: %v", n.name, p.err))
		n.tell("%s ended by itself: %v", n.name, p.err)
	}
}

// health is how the node says it is.
type health struct {
	Status         string `json:"status"`
	RedisConnected bool   `json:"redis_connected"`
	NodeID         string `json:"node_id"`
}

func (n *node) health(ctx context.Context) (h health, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.base()+"/health", http.NoBody)
	if err != nil {
		return h, err
	}
	res, err := n.ask.Do(req)
	if err != nil {
		return h, err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	return h, json.NewDecoder(res.Body).Decode(&h)
}

// well returns what the node lacks for taking part in the cluster.
func (n *node) well(ctx context.Context) error {
	h, err := n.health(ctx)
	if err == nil && (h.Status != "healthy" || !n.alone && (!h.RedisConnected || h.NodeID != n.name)) {
		err = fmt.Errorf("%s is not well: %+v", n.name, h)
	}
	return err
}

// end ends the server with a signal; what it holds elsewhere stays.
func (n *node) end(sig syscall.Signal) {
	n.mu.Lock()
	n.wanted = false
	p := n.process
	n.mu.Unlock()
	if p != nil {
		p.signal(syscall.SIGCONT)
		p.stop(sig, patience)
	}
}

func (n *node) signal(sig syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		n.process.signal(sig)
	}
}

// pull ends all processes of the node at once.
func (n *node) pull(ctx context.Context) error {
	n.mu.Lock()
	n.wanted = false
	n.mu.Unlock()
	return n.space.killAll(ctx)
}

// key is the node's own key for everything.
func (n *node) key() (string, error) {
	text, err := n.space.read(filepath.Join(n.home, "admin.key"))
	if err == nil && len(text) == 0 {
		err = errors.New("the key of " + n.name + " is empty")
	}
	return strings.TrimSpace(string(text)), err
}

// endedByItself returns how often it did.
func (n *node) endedByItself() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.deaths
}

// loseDatabase removes the database of a server that does not run, and nothing else.
func (n *node) loseDatabase() (err error) {
	n.space.run(func() {
		all, _ := filepath.Glob(filepath.Join(n.home, "cove.db*"))
		for _, path := range all {
			err = errors.Join(err, os.Remove(path))
		}
	})
	return err
}

// takeUp has a server that started without its database take up its sessions, as its
// operator would.
func (n *node) takeUp(ctx context.Context) error {
	p, err := launch(n.space, n.log, n.env, n.program, "recover", "--take-up")
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.stop(syscall.SIGKILL, patience)
	}
	if p.err != nil {
		return fmt.Errorf("take up the sessions of %s: %w\n%s", n.name, p.err, lastOf(n.log))
	}
	return nil
}
