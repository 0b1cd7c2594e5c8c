package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/testkit/tier"
)

// killedOp tells the child which operation it does, and killedAt at which step
// it is killed.
const (
	killedOp = "COVE_TEST_KILLED_OP"
	killedAt = "COVE_TEST_KILLED_AT"
)

// killedChild does an operation on a whole server, and kills itself at a step.
func killedChild(dir string) {
	ctx := context.Background()
	at, err := strconv.Atoi(os.Getenv(killedAt))
	if err == nil {
		err = killedIn(ctx, dir, os.Getenv(killedOp), at)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func killedIn(ctx context.Context, dir, name string, at int) error {
	w := newStopper(at)
	w.kill = func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	s, err := openServer(ctx, dir, w)
	if err != nil {
		return err
	}
	sc := &scene{p: s.engine.As(boss)}
	for _, op := range operations() {
		if op.name != name {
			continue
		}
		if err := op.prepare(ctx, sc); err != nil {
			return err
		}
		say("session", string(sc.id))
		w.arm()
		return op.do(ctx, sc)
	}
	return errors.New("no such operation")
}

// TestWalkWithSIGKILL kills a server for real, on a database on the disk, at
// every step of what changes a session most.
func TestWalkWithSIGKILL(t *testing.T) {
	tier.Full(t, "TestWalk stops each operation at each step, without processes")
	for _, op := range operations() {
		switch op.name {
		case "create", "stop", "start", "snapshot", "fork", "destroy":
		default:
			continue
		}
		t.Run(op.name, func(t *testing.T) {
			for at := 1; killAndLook(t, op, at); at++ {
			}
		})
	}
}

// killAndLook reports whether the operation has so many steps.
func killAndLook(t *testing.T, op operation, at int) (more bool) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), crashDir+"="+dir, killedOp+"="+op.name, killedAt+"="+strconv.Itoa(at))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && (!failed || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) { //nolint:forcetypeassert // on this system it is one
		t.Fatalf("the child ended with %v", err)
	}
	_, id, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	t.Run(strconv.Itoa(at), func(t *testing.T) { lookAt(t, op, dir, cove.ID(id), err != nil) })
	return err != nil
}

func lookAt(t *testing.T, op operation, dir string, id cove.ID, cut bool) {
	t.Helper()
	s, err := openServer(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close(t)
	a := &aftermath{dir, s.store, s.provider, s.journal, s.engine}
	a.agrees(t)
	a.looksRight(t, op, id, cut)
	a.endsClean(t)
}
