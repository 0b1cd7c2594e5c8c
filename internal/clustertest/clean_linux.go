package clustertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/cove-sandbox/cove/internal/clustertest/history"
)

// closeAll ends every session that there is, also one whose open nobody got an answer
// to. It is no part of a history.
func (r *Rig) closeAll(ctx context.Context) error {
	if len(r.nodes) == 0 || r.nodes[0].admin == "" {
		return nil // the nodes did not come so far that anybody could open one
	}
	return until(ctx, patience, func(ctx context.Context) error {
		ids, err := r.sessions(ctx)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			_, _ = r.send(ctx, r.nodes[0], questionOf(&history.Event{Op: history.Close, Session: id})) // the next list has those that stay
		}
		return fmt.Errorf("sessions stay: %v", ids)
	})
}

// sessions lists those that have not ended.
func (r *Rig) sessions(ctx context.Context) ([]string, error) {
	a, err := r.send(ctx, r.nodes[0], question{http.MethodGet, "/api/sandboxes?limit=1000", nil})
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("list sessions: status %d: %.200q", a.status, a.body)
	}
	if err != nil {
		return nil, err
	}
	var page struct {
		Items []struct {
			ID string `json:"session_id"`
		} `json:"items"`
	}
	if err := json.Unmarshal(a.body, &page); err != nil {
		return nil, err
	}
	var ids []string
	for _, s := range page.Items {
		ids = append(ids, s.ID)
	}
	return ids, nil
}

// groups are the control groups of a node, by the name that the provider has for its
// directory, in every hierarchy.
func (n *node) groups() []string {
	sum := sha256.Sum256([]byte(filepath.Join(n.home, "providers", "local")))
	name := "cove-" + hex.EncodeToString(sum[:6])
	all, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	top, _ := filepath.Glob("/sys/fs/cgroup/" + name)
	return append(all, top...)
}

// inside are all groups below a directory, and itself, the outer before the inner.
func inside(dir string) []string {
	var all []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error { // what goes meanwhile is what is wanted
		if err == nil && entry.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	return all
}

// remains are the sandboxes that the kernel still has of a node.
func (n *node) remains() []string {
	var all []string
	for _, dir := range n.groups() {
		for _, path := range inside(dir) {
			if filepath.Dir(path) == dir {
				all = append(all, filepath.Base(path))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// removeGroups removes the control groups of a node, in which nothing may run.
func (n *node) removeGroups(context.Context) error {
	var failed []error
	for _, dir := range n.groups() {
		for _, path := range slices.Backward(inside(dir)) {
			if err := syscall.Rmdir(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, fmt.Errorf("remove %s: %w", path, err))
			}
		}
	}
	return errors.Join(failed...)
}
