package clustertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// redisPort is where Redis listens in its own space.
const redisPort = "6379"

// redis is a Redis that writes everything down before it answers.
type redis struct {
	*member

	dir string
	log string
	net *network

	turn    sync.Mutex // of faults
	mu      sync.Mutex
	process *process
}

func (r *redis) url() string { return "redis://" + net.JoinHostPort(r.address, redisPort) + "/0" }

// start waits until it answers.
func (r *redis) start(ctx context.Context) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	p, err := launch(r.space, r.log, []string{"PATH=" + os.Getenv("PATH")}, "redis-server",
		"--bind", r.address, "--port", redisPort, "--dir", r.dir, "--protected-mode", "no", "--daemonize", "no",
		"--save", "", "--appendonly", "yes", "--appendfsync", "always")
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.process = p
	r.mu.Unlock()
	return until(ctx, 20*time.Second, r.ping)
}

// ping asks it how it is, in its own words.
func (r *redis) ping(ctx context.Context) error {
	conn, err := r.net.dial(ctx, "tcp", net.JoinHostPort(r.address, redisPort))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // all was said
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	said, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && said != "+PONG\r\n" {
		err = fmt.Errorf("redis says %q", said)
	}
	return err
}

// kill ends it where it stands.
func (r *redis) kill() {
	r.mu.Lock()
	p := r.process
	r.mu.Unlock()
	if p != nil {
		p.stop(syscall.SIGKILL, time.Minute)
	}
}

// lose ends it, and removes all that it wrote down.
func (r *redis) lose() error {
	r.kill()
	all, err := filepath.Glob(filepath.Join(r.dir, "*"))
	for _, path := range all {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}
