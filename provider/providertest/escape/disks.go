package escape

import (
	"context"
	"fmt"
	"strings"

	"github.com/cove-sandbox/cove"
)

// diskAttacks are on workspaces on disk.
func diskAttacks() []Attack {
	small := func(s *cove.Spec) { s.Workspace.Size = littleDisk }
	roomy := func(s *cove.Spec) { s.Workspace.Size = roomForAttacker }
	few := func(s *cove.Spec) { s.Workspace.Files = fewFiles }
	return []Attack{
		{Name: "workspace_bytes", Try: "write more than fits into a workspace on disk", Via: everyWay, Limits: limits(cove.LimitDisk), disk: true, own: small, run: diskBomb},
		{Name: "workspace_files", Try: "make more files than a workspace on disk may have", Via: programs, Limits: limits(cove.LimitFiles), disk: true, own: few, run: inodeBomb},
		{Name: "workspace_holes", Try: "fill the holes of a file that is larger than the workspace on disk", Via: everyWay, Limits: limits(cove.LimitDisk), disk: true, own: small, run: fillHoles},
		{
			Name: "workspace_device", Try: "reach the blocks below a workspace on disk, and change what bounds it", Via: everyWay, SharedKernel: true,
			disk: true, own: roomy, armed: true, run: native("workspace_device", "").run,
		},
	}
}

func fillHoles(ctx context.Context, r *round) verdict {
	got, err := r.shell(ctx, `truncate -s 1G holes || echo "no holes"
i=0; while [ $i -lt 32 ]; do
	dd if=/dev/zero of=holes bs=1M count=1 seek=$((i*30)) conv=notrunc 2>/dev/null || break
	i=$((i+1))
done
fallocate -n -l 32M more 2>/dev/null && echo "allocated all"
echo "filled $i $(du -k holes | cut -f1)"; rm -f holes more`)
	if err != nil {
		return failed(err)
	}
	var pieces, size int64
	_, after, ok := strings.Cut(got.text, "filled ")
	if _, err := fmt.Sscan(after, &pieces, &size); !ok || err != nil {
		return untold(fmt.Sprintf("the shell was %s with code %d and said %q", got.Outcome, got.ExitCode, clip(got.text)))
	}
	if most := int64(littleDisk / cove.KiB); strings.Contains(got.text, "allocated all") || pieces >= 32 || size > most {
		return breach(fmt.Sprintf("%d MiB and %d KiB of holes are filled in %s", pieces, size, littleDisk))
	}
	return heldBy("ENOSPC: the size of the workspace").also(r.alive(ctx))
}
