package escape

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/cove-sandbox/cove"
)

// unchargedAttacks take of the machine what no control group is charged for.
func unchargedAttacks() []Attack {
	lists := native("kernel_lists", "keep access control lists in memory that no control group is charged for")
	lists.own, lists.armed = fresh, true
	keys := native("kernel_keys", "keep keys of connections and socket options in memory that no group is charged for")
	for _, a := range []*Attack{&lists, &keys} {
		attack := a.run
		a.run = func(ctx context.Context, r *round) verdict {
			return unreclaimable(func() verdict { return attack(ctx, r) })
		}
	}
	files := kernel("open_files", "have more files open than a part of what the machine can have open")
	files.own, files.armed, files.run = fewPIDs, true, countFiles
	return []Attack{
		lists, keys, files,
		kernel("kernel_queues", "queue data on connections that are not accepted, more than the kernel gives to one"),
		kernel("huge_pages", "take huge pages out of the reserve of the machine"),
		kernel("filters_sockets", "attach programs to sockets, for which the whole machine has little room"),
		kernel("filters_own", "install filters of system calls, for which the whole machine has little room"),
		kernel("file_locks", "take locks that show on files of the whole machine"),
	}
}

// mostSlab is how much memory of the host's kernel one attack may leave taken: what
// else happens on the machine takes some, too.
const mostSlab = 64 << 20

// unreclaimable compares what the kernel of the host has taken for itself before and
// after an attack.
func unreclaimable(attack func() verdict) verdict {
	before, known := slab()
	v := attack()
	after, _ := slab()
	if grown := after - before; known && v.held && grown >= mostSlab {
		return breach(fmt.Sprintf("the kernel of the host holds %d MiB more", grown>>20))
	}
	return v
}

// slab is the memory of the kernel that it cannot take back.
func slab() (n int64, ok bool) {
	text, _ := os.ReadFile("/proc/meminfo") // none where there is no /proc
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == "SUnreclaim:" {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}

func fewPIDs(s *cove.Spec) { s.Resources.PIDs = fewProcesses }

// countFiles opens what one process can, and compares that of all processes of the
// sandbox with the bound of the machine.
func countFiles(ctx context.Context, r *round) verdict {
	v, facts := r.attack(ctx, "open_files")
	if !v.held {
		return v
	}
	text, err := os.ReadFile("/proc/sys/fs/file-max")
	if err != nil {
		return failed(err)
	}
	all, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil || len(facts) == 0 {
		return untold(fmt.Sprintf("%d facts, %v", len(facts), err))
	}
	const part, usual = 8, 1024
	for _, fact := range facts {
		each, err := strconv.ParseUint(fact, 10, 64)
		if err != nil {
			return failed(err)
		}
		if each > usual && each*fewProcesses > all/part {
			return breach(fmt.Sprintf("%d processes can each have %d files open, of %d for the machine", fewProcesses, each, all))
		}
	}
	return v
}
