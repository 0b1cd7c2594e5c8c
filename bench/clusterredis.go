package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// redisServer is a Redis that is started for a measurement and keeps what it has on
// the disk, as one that nodes share should.
type redisServer struct {
	addr     string
	patience time.Duration
	cmd      *exec.Cmd
	done     chan struct{} // closed when it has ended
}

// startRedis starts a Redis on loopback, with its files in dir.
func startRedis(ctx context.Context, exe, dir string, patience time.Duration) (*redisServer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	const tries = 10
	var err error
	for range tries { // somebody else may take the port before it does
		var r *redisServer
		if r, err = beginRedis(ctx, exe, dir, patience); err == nil {
			return r, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	log, _ := os.ReadFile(filepath.Join(dir, "log")) //nolint:gosec // it is in a folder of ours
	return nil, fmt.Errorf("%s does not start: %w: %.500s", exe, err, log)
}

func beginRedis(ctx context.Context, exe, dir string, patience time.Duration) (*redisServer, error) {
	free, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := free.Addr().String()
	if err := free.Close(); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	// It ends when we say so and not with ctx: nodes leave before.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), exe, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--logfile", filepath.Join(dir, "log"), //nolint:gosec // the operator names the executable
		"--daemonize", "no", "--save", "", "--appendonly", "yes", "--appendfsync", "everysec")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &redisServer{addr: addr, patience: patience, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		_ = cmd.Wait() // it is killed
	}()
	if err := r.answers(ctx); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

func (r *redisServer) url() string { return "redis://" + r.addr + "/0" }

// stop kills it, with all that it has.
func (r *redisServer) stop() {
	_ = r.cmd.Process.Kill() // it may have ended
	<-r.done
}

// answers waits until it, and nobody else, answers at its port.
func (r *redisServer) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := r.info(ctx)
		if err == nil && strings.Contains(info, fmt.Sprintf("process_id:%d\r", r.cmd.Process.Pid)) {
			return nil
		}
		select {
		case <-r.done:
			return errors.New("it has ended")
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-tick.C:
		}
	}
}

// info is what it says of itself.
func (r *redisServer) info(ctx context.Context) (text string, err error) {
	err = r.talk(ctx, func(conn net.Conn, in *bufio.Reader) error {
		head, err := say(conn, in, "INFO server")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
		if err != nil || n < 0 || n > 1<<20 {
			return fmt.Errorf("a strange answer: %.80q", head)
		}
		body := make([]byte, n)
		_, err = io.ReadFull(in, body)
		text = string(body)
		return err
	})
	return text, err
}

// talk does something with a connection of its own.
func (r *redisServer) talk(ctx context.Context, do func(net.Conn, *bufio.Reader) error) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.addr)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		if stop() {
			_ = conn.Close() // all that matters was read
		}
	}()
	return do(conn, bufio.NewReader(conn))
}

// say sends one command of plain words and returns the first line of the answer.
func say(conn net.Conn, in *bufio.Reader, words string) (string, error) {
	if _, err := io.WriteString(conn, words+"\r\n"); err != nil {
		return "", err
	}
	line, err := in.ReadString('\n')
	if err == nil && strings.HasPrefix(line, "-") {
		err = fmt.Errorf("%s: %.200s", words, line)
	}
	return strings.TrimSpace(line), err
}

// during does something and returns the commands that others sent to Redis
// meanwhile. Redis itself tells them one by one, in their order: what was sent
// before a word of ours comes before it.
func (r *redisServer) during(ctx context.Context, do func() error) (all []string, err error) {
	err = r.talk(ctx, func(told net.Conn, lines *bufio.Reader) error {
		if _, err := say(told, lines, "MONITOR"); err != nil {
			return err
		}
		if err := do(); err != nil {
			return err
		}
		word := string(cove.NewID())
		if err := r.talk(ctx, func(conn net.Conn, in *bufio.Reader) error {
			_, err := say(conn, in, "ECHO "+word)
			return err
		}); err != nil {
			return err
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil || strings.Contains(line, word) {
				return err
			}
			if c := sent(line); c != "" {
				all = append(all, c)
			}
		}
	})
	return all, err
}

// sent returns the command in a line of MONITOR, with what it is done to or by, as in
// `+1700000000.000000 [0 127.0.0.1:40000] "evalsha" "…`. What a script does in Redis
// was not sent, and a connection that asks whether anybody is there asks for nothing
// else: they are "".
func sent(line string) string {
	_, rest, _ := strings.Cut(line, " [")
	where, what, ok := strings.Cut(rest, "] ")
	words := strings.Fields(strings.ReplaceAll(what, `"`, ""))
	if !ok || len(words) == 0 || strings.HasSuffix(where, " lua") || strings.EqualFold(words[0], "ping") {
		return ""
	}
	return fmt.Sprintf("%.60s", strings.Join(words[:min(2, len(words))], " "))
}
