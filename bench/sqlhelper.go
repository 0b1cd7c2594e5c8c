package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/duckdb/ask"
)

// hostHelper is the helper as a plain process of the host.
type hostHelper struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	last uint64
}

// What the helper on the host may use: as much as a place of the usual flavor.
const (
	helperMemory  = int64(cove.GiB)
	helperThreads = 1
)

func startHelper(ctx context.Context, path string) (_ *hostHelper, err error) {
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = []string{"TZ=UTC", "LC_ALL=C", "HOME=/nonexistent"}
	h := &hostHelper{cmd: cmd}
	if h.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := h.ask(ask.Request{Verb: ask.VerbOpen, Open: &ask.Open{Memory: helperMemory, Threads: helperThreads}}); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *hostHelper) ask(r ask.Request) (*ask.Answer, error) {
	h.last++
	r.ID = h.last
	if err := ask.Write(h.in, r); err != nil {
		return nil, err
	}
	var a ask.Answer
	if err := ask.Read(h.out, &a); err != nil {
		return nil, fmt.Errorf("the helper on the host: %w", err)
	}
	if a.Fault != nil {
		return nil, fmt.Errorf("the helper on the host: %+v", *a.Fault)
	}
	return &a, nil
}

func (h *hostHelper) load(file string) error {
	a, err := h.ask(ask.Request{Verb: ask.VerbLoad, Load: &ask.Load{Tables: []ask.Table{{Schema: "bench", Name: ordersTable, Path: file, Format: ask.CSV}}}})
	if err == nil && (len(a.Tables) != 1 || a.Tables[0].Problem != "") {
		err = fmt.Errorf("the helper on the host loaded %+v", a.Tables)
	}
	return err
}

func (h *hostHelper) query(sql string) error {
	a, err := h.ask(ask.Request{Verb: ask.VerbQuery, Query: &ask.Query{SQL: sql, Schema: "bench", MaxRows: cove.DefaultRunRows, MaxBytes: int(cove.DefaultRunOutput)}})
	if err == nil && (a.Rows == nil || a.Rows.Count == 0) {
		err = errors.New("the helper on the host has no rows")
	}
	return err
}

// close ends the helper, which ends by itself when nobody asks any more.
func (h *hostHelper) close() error { return errors.Join(h.in.Close(), h.cmd.Wait()) }
