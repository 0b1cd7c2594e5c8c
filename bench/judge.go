package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/cove-sandbox/cove/internal/measure"
)

// judgeTime is how long go-judge may take to start.
const judgeTime = 10 * time.Second

// addJudge starts go-judge on a port of the loopback and adds it.
func (p *peers) addJudge(ctx context.Context, path, dir string) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, "-http-addr", address, "-cgroup-prefix", judgeGroup, "-release", "-silent") //nolint:gosec // scripts/bench.sh built it
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin"}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends its containers then
	cmd.WaitDelay = judgeTime
	if err := cmd.Start(); err != nil {
		return err
	}
	client := &http.Client{Timeout: judgeTime}
	stop := func() {
		client.CloseIdleConnections()
		_ = cmd.Cancel()
		_ = cmd.Wait() // it ends by the signal
		removeGroups(judgeGroup)
	}
	c := measure.Contender{Name: "go-judge, over HTTP", Run: func(ctx context.Context) error { return judgeTrue(ctx, client, address) }}
	if err := untilWorks(ctx, c.Run); err != nil {
		stop()
		return fmt.Errorf("it does not work here: %w", err)
	}
	p.stop = append(p.stop, stop)
	p.quick = append(p.quick, c)
	return nil
}

// judgeGroup is the control group of go-judge, which leaves it behind.
const judgeGroup = "cove-bench-judge"

// removeGroups removes control groups with a name and those in them. Groups
// that are in use stay: the kernel sees to it.
func removeGroups(name string) {
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		tops, _ := filepath.Glob(pattern + name) // the pattern is well formed
		for _, top := range tops {
			var dirs []string
			_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return nil
			})
			for _, dir := range slices.Backward(dirs) {
				_ = os.Remove(dir) // what stays is empty and does nothing
			}
		}
	}
}

// freeAddress returns an address nobody listens on at this moment.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// untilWorks tries until it works once, for a while.
func untilWorks(ctx context.Context, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// judgeTrue runs the work once. The limits are those that our sandboxes have.
func judgeTrue(ctx context.Context, client *http.Client, address string) error {
	const body = `{"cmd":[{"args":["/usr/bin/true"],"env":["PATH=/usr/bin:/bin"],"files":[{"content":""},{"name":"stdout","max":4096},{"name":"stderr","max":4096}],` +
		`"cpuLimit":60000000000,"clockLimit":60000000000,"memoryLimit":1073741824,"procLimit":256}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/run", bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	var results []struct{ Status, Error string }
	if err := json.Unmarshal(text, &results); err != nil {
		return fmt.Errorf("it answered %.200s", text)
	}
	if len(results) != 1 || results[0].Status != "Accepted" {
		return errors.New("it answered " + fmt.Sprintf("%.200v", results))
	}
	return nil
}
