package escape

import (
	"context"

	"github.com/cove-sandbox/cove"
)

// keptAttacks have the kernel of the host keep memory for a sandbox that is charged to
// no control group. Each asks for 64 MiB of it.
func keptAttacks() []Attack {
	of := func(name, try string) Attack {
		return Attack{
			Name: name, Try: try, Via: everyWay, SharedKernel: true, armed: true, run: fillKernel(name),
			own: func(s *cove.Spec) { s.Resources.Memory, s.Workspace.Size = someMemory, someMemory/2 },
		}
	}
	return []Attack{
		of("kernel_memory_locks", "have the kernel keep 340,000 locks of parts of files"),
		of("kernel_memory_flocks", "have the kernel keep as many locks of whole files"),
		of("kernel_memory_connections", "have the kernel keep 16,000 connections that are not accepted"),
		kernel("kernel_memory_hidden", "hold locks in the name of a process that has ended, which cannot be counted"),
	}
}

// fillKernel makes an attack that either is told what stopped it or has its sandbox
// ended. Others must not notice.
func fillKernel(name string) func(ctx context.Context, r *round) verdict {
	return func(ctx context.Context, r *round) verdict {
		got, err := r.do(ctx, usualLimits, cove.WorkspacePath+"/"+Name, name, encode(r.mission()))
		switch {
		case cove.ReasonOf(err) == cove.ReasonKernelMemory:
			return heldBy("the watch over what the kernel keeps: " + cove.MessageOf(err)).also(r.others(ctx))
		case err != nil:
			return failed(err)
		}
		v, _ := got.verdict()
		return v.also(r.others(ctx))
	}
}
