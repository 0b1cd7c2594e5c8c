// Command mutate takes one defence or guarantee out of the product at a time and runs
// the test of the gate that must notice it. It changes no file of the tree: go test
// reads the changed file by -overlay. It fails when a test passes in spite of its
// mutation, when a test fails without it, and when a mutation does not build.
//
// usage: mutate [part of a name]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Join(os.Args[1:], " "), os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run applies the mutations whose names contain part, and prints a line for each.
func run(ctx context.Context, part string, out io.Writer) error {
	caught, missed := 0, 0
	for _, m := range mutations {
		if !strings.Contains(m.name, part) {
			continue
		}
		verdict := "caught"
		if err := m.try(ctx); err != nil {
			missed++
			verdict = err.Error()
		} else {
			caught++
		}
		_, _ = fmt.Fprintf(out, "%-58s %s %s: %s\n", m.name, m.pkg, m.test, verdict)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	_, _ = fmt.Fprintf(out, "%d caught, %d not caught\n", caught, missed)
	if missed > 0 || caught == 0 {
		return fmt.Errorf("%d mutations were caught and %d were not", caught, missed)
	}
	return nil
}

// try returns nil if the test passes as it is and fails with the mutation.
func (m mutation) try(ctx context.Context) error {
	if out, err := m.goTest(ctx); err != nil || !strings.Contains(out, "--- PASS: "+m.test+" ") {
		return fmt.Errorf("the test does not pass without the mutation: %v\n%s", err, out)
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := m.overlay(dir)
	if err != nil {
		return err
	}
	out, err := m.goTest(ctx, "-count=1", "-overlay="+overlay)
	switch {
	case err == nil:
		return errors.New("NOT CAUGHT: the test passes with the mutation")
	case !strings.Contains(out, "--- FAIL: "+m.test+" ") || strings.Contains(out, "panic: ") || strings.Contains(out, "fatal error: "):
		return fmt.Errorf("no assertion failed: the mutation does not build, or the test crashed: %w\n%s", err, out)
	}
	return nil
}

// overlay writes the changed file into dir, and the file that tells go test to read
// it instead of the one in the tree.
func (m mutation) overlay(dir string) (string, error) {
	text, err := m.apply()
	if err != nil {
		return "", err
	}
	from, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "changed"+filepath.Ext(m.file))
	if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {from: to}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}

// apply returns the text of the file with the mutation.
func (m mutation) apply() (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, want once: change the list of mutations with the code", m.file, m.old, n)
	}
	return strings.Replace(string(text), m.old, m.new, 1), nil
}

func (m mutation) goTest(ctx context.Context, flags ...string) (string, error) {
	args := append([]string{"test", "-short", "-vet=off", "-v", "-run=" + pattern(m.test)}, flags...)
	out, err := exec.CommandContext(ctx, "go", append(args, m.pkg)...).CombinedOutput()
	return string(out), err
}

// pattern is what go test -run takes to run this test alone.
func pattern(test string) string {
	return "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
}
