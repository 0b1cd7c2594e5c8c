package escape

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/cove-sandbox/cove"
)

func neighbourAttacks() []Attack {
	return []Attack{
		{Name: "other_files", Try: "read the files of another sandbox", Via: programs, run: otherFiles},
		{Name: "other_processes", Try: "see and kill the processes of another sandbox", Via: programs, run: otherProcesses},
		{Name: "other_memory", Try: "reach shared memory, queues and sockets of another sandbox", Via: programs, run: otherMemory},
		{Name: "shared_locks", Try: "hold back the host and another sandbox by locks of files that all of them have", Via: programs, run: sharedLocks},
	}
}

func otherFiles(ctx context.Context, r *round) verdict {
	other, err := r.neighbour(ctx)
	if err != nil {
		return failed(err)
	}
	for _, name := range neighbourFiles {
		// Not every sandbox has every one of these directories.
		_ = other.Files().Write(ctx, name, strings.NewReader(r.token), 0o666)
	}
	v, _ := r.attack(ctx, "other_files")
	for _, name := range neighbourFiles {
		if text := read(ctx, other.Files(), name); text != "" && text != r.token {
			return breach("changed a file of another sandbox: " + name)
		}
	}
	return v
}

// neighbourFiles are where another sandbox keeps its secrets.
var neighbourFiles = []string{"/workspace/neighbour", "/tmp/neighbour", "/dev/shm/neighbour"}

func otherProcesses(ctx context.Context, r *round) verdict {
	other, err := r.neighbour(ctx)
	if err != nil {
		return failed(err)
	}
	there := &round{arena: r.arena, box: other, via: Exec}
	return there.beside(ctx, []string{"sh", "-c", there.lingering("")}, func(p cove.Process, mark string) verdict {
		seen := len(processesWith(mark)) > 0
		got, err := r.do(ctx, usualLimits, cove.WorkspacePath+"/"+Name, "other_processes", encode(mission{Token: mark}))
		if err != nil {
			return failed(err)
		}
		v, _ := got.verdict()
		if seen && len(processesWith(mark)) == 0 {
			return breach("killed a process of another sandbox")
		}
		if err := p.Signal(ctx, "CONT"); err != nil {
			return breach("a process of another sandbox is gone: " + cove.MessageOf(err))
		}
		return v
	})
}

func otherMemory(ctx context.Context, r *round) verdict {
	other, err := r.neighbour(ctx)
	if err != nil {
		return failed(err)
	}
	there := &round{arena: r.arena, box: other, via: Exec}
	argv := []string{cove.WorkspacePath + "/" + Name, "share", encode(r.mission())}
	return there.beside(ctx, argv, func(cove.Process, string) verdict {
		v, _ := r.attack(ctx, "other_memory")
		return v
	})
}

func encode(m mission) string {
	text, _ := json.Marshal(m) // strings and numbers always encode
	return string(text)
}

// commonFiles are in every sandbox, and on most hosts.
var commonFiles = []string{"/usr/bin/env", "/bin/sh"}

// sharedLocks has a sandbox lock files that another one and the host have, too: neither
// may find them locked.
func sharedLocks(ctx context.Context, r *round) verdict {
	other, err := r.neighbour(ctx)
	if err != nil {
		return failed(err)
	}
	there := &round{arena: r.arena, box: other, via: Exec}
	argv := []string{cove.WorkspacePath + "/" + Name, "hold_locks", encode(r.mission())}
	return there.beside(ctx, argv, func(cove.Process, string) verdict {
		for _, path := range commonFiles {
			if lockedElsewhere(path) {
				return breach("a lock in a sandbox holds back the host: " + path)
			}
		}
		v, _ := r.attack(ctx, "shared_locks")
		return v
	})
}
