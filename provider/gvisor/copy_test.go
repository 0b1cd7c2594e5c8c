//go:build linux

package gvisor_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/provider/providertest"
)

// shell runs a script to its end and returns what it said.
func shell(t *testing.T, s cove.Sandbox, script string) (cove.Result, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	p, err := s.Start(ctx, cove.Command{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r, strings.TrimSpace(out.String())
}

func fork(t *testing.T, s cove.Sandbox, spec cove.Spec) cove.Sandbox {
	t.Helper()
	f, _ := cove.As[cove.Forker](s)
	twin, err := f.Fork(t.Context(), cove.NewID(), spec)
	if err != nil {
		t.Fatal(err)
	}
	destroyLater(t, twin)
	return twin
}

// TestCopyWithoutBound: the bound of memory that a sandbox had is not that of a copy
// without one.
func TestCopyWithoutBound(t *testing.T) {
	p := closeLater(t, open(t))
	s := create(t, p, cove.Spec{Resources: cove.Resources{Memory: 512 * cove.MiB}})
	twin := fork(t, s, cove.Spec{})
	if r, text := shell(t, twin, `dd if=/dev/zero of=/dev/null bs=700M count=3 2>/dev/null && echo all`); r.Outcome != cove.Exited || text != "all" {
		t.Errorf("%+v, %s", r, text)
	}
}

// TestCopyWithFewerProcesses: a program that may have many processes does not go on in
// a copy that may have few, and the files are there.
func TestCopyWithFewerProcesses(t *testing.T) {
	p := closeLater(t, open(t))
	s := create(t, p, cove.Spec{Resources: cove.Resources{PIDs: 100}})
	const many = `touch ready; while ! [ -e go ]; do sleep 0.02; done; for i in $(seq 50); do sleep 100 & echo $i > started; done`
	if _, err := s.Start(t.Context(), cove.Command{Argv: []string{"sh", "-c", many}, Keep: "p1"}); err != nil {
		t.Fatal(err)
	}
	shell(t, s, "while ! [ -e ready ]; do sleep 0.02; done")
	twin := fork(t, s, cove.Spec{Resources: cove.Resources{PIDs: 16}})
	if _, text := shell(t, twin, "ls; touch go; sleep 1; cat started"); !strings.HasPrefix(text, "ready\ncat: started: No such file") {
		t.Error(text)
	}
}

// TestDamagedSnapshot: memory that cannot be read is no sandbox, the reason is said in
// a line, nothing is left, and the files can still be had.
func TestDamagedSnapshot(t *testing.T) {
	p := closeLater(t, open(t))
	s := create(t, p, cove.Spec{})
	shell(t, s, "echo hello > file")
	snap, _ := cove.As[cove.Snapshotter](s)
	name := cove.NewID()
	if _, err := snap.Snapshot(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(providertest.Dir(t), "snapshots", string(name))
	for part, damage := range map[string]func([]byte) []byte{
		"image/checkpoint.img": func(b []byte) []byte { return b[:len(b)/2] },
		"image/pages.img":      func(b []byte) []byte { return b[:len(b)/2] },
		"image/pages_meta.img": func(b []byte) []byte { return bytes.ToUpper(b) },
	} {
		path := filepath.Join(dir, part)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, damage(whole), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = p.Create(t.Context(), cove.NewID(), cove.Spec{Snapshot: name})
		if said := cove.MessageOf(err); cove.CodeOf(err) != cove.Unavailable || !strings.Contains(said, "memory of a snapshot") || strings.Contains(said, "\n") {
			t.Errorf("%s: %v", part, err)
		}
		empty(t, p)
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "image")); err != nil {
		t.Fatal(err)
	}
	files := create(t, p, cove.Spec{Snapshot: name, Workspace: cove.Workspace{Size: 32 * cove.MiB}})
	if _, text := shell(t, files, "cat file"); text != "hello" {
		t.Error(text)
	}
}
