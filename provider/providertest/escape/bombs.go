package escape

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Sizes of the bombs: each takes a few times what it was given and then lets
// go, so that it does no harm where nothing stops it.
const (
	fewProcesses  = 64
	manyProcesses = 200
	littleMemory  = 96 * cove.MiB
	someMemory    = 256 * cove.MiB
	littleDisk    = 8 * cove.MiB
	fewFiles      = 64
	littleCPU     = 0.25
	wholeCPU      = 1 // the least where a machine has whole ones
)

// bombAttacks take more than the sandbox was given.
func bombAttacks() []Attack {
	processes := func(s *cove.Spec) { s.Resources.PIDs = fewProcesses }
	memory := func(s *cove.Spec) { s.Resources.Memory, s.Workspace.Size = littleMemory, littleDisk }
	return []Attack{
		{Name: "fork_bomb", Try: "start processes without an end", Via: everyWay, Limits: limits(cove.LimitPIDs), own: processes, armed: true, run: forkBomb("fork_bomb")},
		{Name: "zombie_bomb", Try: "leave dead processes without an end", Via: everyWay, Limits: limits(cove.LimitPIDs), own: processes, armed: true, run: forkBomb("zombie_bomb")},
		{Name: "memory_bomb", Try: "take more memory than was given", Via: everyWay, Limits: limits(cove.LimitMemory), own: memory, run: memoryBomb},
		{Name: "memory_files", Try: "take more memory than was given, in files", Via: programs, Limits: limits(cove.LimitMemory), own: memory, run: memoryFiles},
		{
			Name: "memory_beside_files", Try: "take the memory that was given once more, beside a full workspace", Via: programs, Limits: limits(cove.LimitMemory),
			own: func(s *cove.Spec) {
				s.Resources.Memory, s.Workspace = someMemory, cove.Workspace{Kind: cove.WorkspaceMemory, Size: someMemory / 2}
			}, run: memoryBesideFiles,
		},
		{
			Name: "disk_bomb", Try: "write more than fits into the workspace", Via: programs, Limits: limits(cove.LimitDisk),
			own: func(s *cove.Spec) { s.Workspace.Size = littleDisk }, run: diskBomb,
		},
		{
			Name: "inode_bomb", Try: "make more files than the workspace may have", Via: programs, Limits: limits(cove.LimitFiles),
			own: func(s *cove.Spec) { s.Workspace.Files = fewFiles }, run: inodeBomb,
		},
		native("descriptor_bomb", "open descriptors without an end"),
		{
			Name: "cpu_hog", Try: "compute on more processors than were given", Via: byExec, Limits: limits(cove.LimitCPU),
			own: func(s *cove.Spec) { s.Resources.CPUs = littleCPU }, coarse: func(s *cove.Spec) { s.Resources.CPUs = wholeCPU }, run: cpuHog,
		},
	}
}

func limits(l ...cove.Limit) []cove.Limit { return l }

// forkBomb starts processes, and counts on the host how many there are.
func forkBomb(name string) func(ctx context.Context, r *round) verdict {
	return func(ctx context.Context, r *round) verdict {
		mark, out := newMark(), newOutput()
		p, err := r.start(ctx, out, usualLimits, cove.WorkspacePath+"/"+Name, name, encode(mission{Token: mark, Key: manyProcesses}))
		if err != nil {
			return failed(err)
		}
		result, err := p.Wait(ctx)
		if err != nil {
			return failed(err)
		}
		there := len(processesWith(mark))
		if err := p.Kill(ctx); err != nil {
			return failed(err)
		}
		v, facts := ran{result, out.String()}.verdict()
		started := 0
		if len(facts) > 0 {
			started, _ = strconv.Atoi(facts[0]) // on a terminal they end with the program, before we look
		}
		if most := max(there, started); most > fewProcesses {
			return breach(fmt.Sprintf("%d processes where %d are allowed", most, fewProcesses))
		}
		return v.also(r.gone(ctx, mark, there)).also(r.alive(ctx))
	}
}

func memoryBomb(ctx context.Context, r *round) verdict {
	if r.caps.Isolation.Boundary != cove.BoundaryNamespaces {
		// One that is there before, and must be there afterwards.
		if v := r.others(ctx); !v.held {
			return v
		}
	}
	got, err := r.do(ctx, usualLimits, "dd", "if=/dev/zero", "of=/dev/null", "bs=512M", "count=1")
	switch {
	case cove.CodeOf(err) == cove.Unavailable && r.caps.Isolation.Boundary != cove.BoundaryNamespaces:
		// Its kernel is a part of it, and has no memory of its own to go on with.
		return heldBy("the memory limit, which ended the sandbox with it").also(r.others(ctx))
	case err != nil:
		return failed(err)
	case got.Outcome == cove.Exited && got.ExitCode == 0:
		return breach(fmt.Sprintf("512 MiB fit into %d MiB", littleMemory/cove.MiB))
	case got.Outcome == cove.OutOfMemory:
		return heldBy("the memory limit: out_of_memory").also(r.alive(ctx))
	case got.Outcome == cove.Exited && strings.Contains(got.text, "memory"):
		return heldBy("no memory is given: " + clip(strings.TrimSpace(got.text))).also(r.alive(ctx))
	}
	return untold(fmt.Sprintf("dd was %s with code %d and said %q", got.Outcome, got.ExitCode, clip(got.text)))
}

// memoryFiles fills the places that are memory. It does not ask whether the
// sandbox still works: one that filled itself has only itself to blame.
func memoryFiles(ctx context.Context, r *round) verdict {
	got, err := r.shell(ctx, `for d in /dev/shm /tmp /run /var/tmp; do
	[ -w "$d" ] || continue
	dd if=/dev/zero of="$d/fill" bs=1M count=512 2>/dev/null && echo "filled $d"
	rm -f "$d/fill"
done
echo tried`)
	switch {
	case cove.CodeOf(err) == cove.Unavailable:
		return heldBy("the memory limit, which ended the sandbox with it").also(r.others(ctx))
	case err != nil:
		return failed(err)
	case strings.Contains(got.text, "filled"):
		return breach("512 MiB of memory in files: " + clip(strings.Join(strings.Fields(got.text), " ")))
	case got.Outcome == cove.OutOfMemory || got.Outcome == cove.Signaled:
		return heldBy("the memory limit: " + string(got.Outcome))
	case !strings.Contains(got.text, "tried"):
		return untold(fmt.Sprintf("the shell was %s with code %d and said %q", got.Outcome, got.ExitCode, clip(got.text)))
	}
	return heldBy("the size of the file systems in memory, or the memory limit")
}

// memoryBesideFiles fills the workspace, which is half of the memory, and has a program
// take two thirds.
func memoryBesideFiles(ctx context.Context, r *round) verdict {
	got, err := r.shell(ctx, `cat /dev/zero > fill 2>/dev/null; echo "filled $(wc -c < fill)"
dd if=/dev/zero of=/dev/null bs="$1M" count=1 2>/dev/null && echo "took all"
rm -f fill; echo tried`, strconv.Itoa(int(someMemory/cove.MiB*2/3)))
	switch {
	case cove.CodeOf(err) == cove.Unavailable:
		return heldBy("the memory limit, which ended the sandbox with it").also(r.others(ctx))
	case err != nil:
		return failed(err)
	case strings.Contains(got.text, "took all") && strings.Contains(got.text, "filled "+strconv.Itoa(int(someMemory/2))):
		return breach(fmt.Sprintf("files and programs have %d MiB of %d MiB together", someMemory/cove.MiB*7/6, someMemory/cove.MiB))
	case got.Outcome == cove.OutOfMemory || got.Outcome == cove.Signaled:
		return heldBy("the memory limit, which has the files in it: " + string(got.Outcome))
	case !strings.Contains(got.text, "tried") || !strings.Contains(got.text, "filled"):
		return untold(fmt.Sprintf("the shell was %s with code %d and said %q", got.Outcome, got.ExitCode, clip(got.text)))
	}
	return heldBy("the memory limit, which has the files in it").also(r.alive(ctx))
}

func diskBomb(ctx context.Context, r *round) verdict {
	const tooMuch = "32"
	got, err := r.shell(ctx, `dd if=/dev/zero of=a bs=1M count="$1" && echo "wrote all"; rm -f a
fallocate -l "$1M" b && echo "allocated all"; rm -f b
: > small && for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero bs=1M count=4 2>/dev/null >> small || break; done; wc -c < small`, tooMuch)
	switch {
	case err != nil:
		return failed(err)
	case strings.Contains(got.text, "wrote all") || strings.Contains(got.text, "allocated all"):
		return breach(tooMuch + " MiB fit into " + littleDisk.String())
	}
	var size int64
	lines := strings.Fields(got.text)
	if len(lines) > 0 {
		_, _ = fmt.Sscan(lines[len(lines)-1], &size) // 0 if it is no number
	}
	switch {
	case size > int64(littleDisk):
		return breach(fmt.Sprintf("%d bytes fit into %s", size, littleDisk))
	case !strings.Contains(got.text, "No space left"):
		return untold(fmt.Sprintf("the shell was %s with code %d and said %q", got.Outcome, got.ExitCode, clip(got.text)))
	}
	return heldBy("ENOSPC: the size of the workspace").also(r.alive(ctx))
}

func inodeBomb(ctx context.Context, r *round) verdict {
	const script = `i=0; while [ $i -lt "$1" ]; do echo > "f$i" || exit 3; i=$((i+1)); done; echo "made all"`
	got, err := r.shell(ctx, script, fmt.Sprint(4*fewFiles))
	switch {
	case err != nil:
		return failed(err)
	case strings.Contains(got.text, "made all"):
		return breach(fmt.Sprintf("%d files where %d are allowed", 4*fewFiles, fewFiles))
	case got.ExitCode == 0 || got.Outcome != cove.Exited:
		return untold(fmt.Sprintf("the shell was %s with code %d and said %q", got.Outcome, got.ExitCode, clip(got.text)))
	}
	made := 0
	for _, err := range r.box.Files().List(ctx, cove.WorkspacePath, 1) {
		if err != nil {
			return failed(err)
		}
		made++
	}
	if made > fewFiles {
		return breach(fmt.Sprintf("%d files where %d are allowed", made, fewFiles))
	}
	return heldBy("ENOSPC: the number of files in the workspace").also(r.alive(ctx))
}

// cpuHog computes on two processors, and looks how much it got.
func cpuHog(ctx context.Context, r *round) verdict {
	before, err := r.box.Usage(ctx)
	if err != nil {
		return failed(err)
	}
	began := time.Now()
	got, err := r.do(ctx, cove.Limits{Wall: time.Second}, "sh", "-c", "while :; do :; done & while :; do :; done")
	if err != nil {
		return failed(err)
	}
	wall := time.Since(began)
	after, err := r.box.Usage(ctx)
	if err != nil {
		return failed(err)
	}
	limit := r.specFor(r.needs).Resources.CPUs
	used := max(after.CPU-before.CPU, got.CPU)
	// A quota is given for a tenth of a second at a time, to each processor.
	allowed := time.Duration(limit*float64(wall)) + 200*time.Millisecond
	if used > allowed {
		return breach(fmt.Sprintf("%s of processor time in %s with a limit of %v", used.Round(time.Millisecond), wall.Round(time.Millisecond), limit))
	}
	return heldBy(fmt.Sprintf("the cpu limit: %s of processor time in %s", used.Round(time.Millisecond), wall.Round(time.Millisecond)))
}
