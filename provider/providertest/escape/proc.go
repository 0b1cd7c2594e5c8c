package escape

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cove-sandbox/cove"
)

func procAttacks() []Attack {
	namespaces := kernel("namespaces", "find a namespace that is the host's own")
	namespaces.run = sharedNamespaces
	machine := native("proc_machine", "read in /proc what the machine is and what others do on it")
	machine.run = machineTold
	cores := native("core_dumps", "leave a core file, or have the host take one")
	cores.run = leaveCore
	return []Attack{
		kernel("proc_writes", "open what changes the kernel in /proc: sysrq, sysctls and the rest"),
		kernel("proc_secrets", "read the kernel's memory, addresses and log"),
		machine,
		kernel("sys_writes", "open what changes the machine in /sys, control groups too"),
		namespaces,
		kernel("setns", "enter the namespaces of other processes"),
		cores,
	}
}

// sharedNamespaces compares the namespaces inside with ours.
func sharedNamespaces(ctx context.Context, r *round) verdict {
	v, facts := r.attack(ctx, "namespaces")
	if !v.held {
		return v
	}
	for _, fact := range facts {
		kind, name, _ := strings.Cut(fact, " ")
		if slices.Contains([]string{"mnt", "pid", "net", "ipc", "uts"}, kind) && name == namespaceOf("self", kind) {
			return breach("the sandbox is in the host's namespace " + name)
		}
	}
	return v
}

// lockFact begins what a program tells of a lock: by the file, as the kernel names it.
const lockFact = "lock "

// machineTold compares what a kernel of the sandbox's own says with the host's, and locks
// of others that were seen with those that we hold, such as for each sandbox.
func machineTold(ctx context.Context, r *round) verdict {
	v, facts := r.attack(ctx, "proc_machine")
	if !v.held {
		return v
	}
	locks, _ := filepath.Glob("/proc/self/fdinfo/*")
	for _, name := range locks {
		held, _ := os.ReadFile(name) // nothing if it was closed
		for _, fact := range facts {
			if file, ok := strings.CutPrefix(fact, lockFact); ok && strings.Contains(string(held), " "+file+" ") {
				return breach("read in /proc/locks that Cove has file " + clip(file) + " locked")
			}
		}
	}
	return v.also(same(facts))
}

// same looks whether what files of a sandbox have, which is told by path and [digest], is
// what the host's have.
func same(facts []string) verdict {
	for _, fact := range facts {
		name, sum, _ := strings.Cut(fact, " ")
		if text, err := content(name); err == nil && len(text) > 0 && digest(text) == sum {
			return breach("read the host's own " + clip(name))
		}
	}
	return heldBy("")
}

// leaveCore crashes a program, and looks for what it left.
func leaveCore(ctx context.Context, r *round) verdict {
	v, _ := r.attack(ctx, "core_dumps")
	if _, err := r.shell(ctx, "ulimit -c unlimited; kill -SEGV $$"); err != nil {
		return failed(err)
	}
	for info, err := range r.box.Files().List(ctx, cove.WorkspacePath, 1) {
		if err != nil {
			return failed(err)
		}
		if strings.HasPrefix(path.Base(info.Path), "core") {
			return breach("a program that crashed left " + clip(info.Path))
		}
	}
	return v
}

// agentAttacks are on the process that serves the sandbox.
func agentAttacks() []Attack {
	signals := kernel("agent_signals", "kill and stop the agent")
	signals.own, signals.armed, signals.run = fresh, true, signalAgent
	bounds := kernel("agent_limits", "take the agent's limits and turns down")
	bounds.own, bounds.armed = fresh, true
	return []Attack{
		kernel("agent_memory", "read and write the memory, descriptors and environment of the agent"),
		kernel("agent_trace", "trace the agent"),
		kernel("agent_executable", "write to the executable of the agent"),
		bounds,
		signals,
	}
}

func signalAgent(ctx context.Context, r *round) verdict {
	v, _ := r.attack(ctx, "agent_signals")
	if after := r.alive(ctx).also(r.files(ctx)); !after.held {
		return after
	}
	return v
}

// files says whether calls on files still work.
func (r *round) files(ctx context.Context) verdict {
	if err := r.box.Files().Write(ctx, "alive", strings.NewReader("alive"), 0o644); err != nil {
		return breach("calls on files do not work any more: " + cove.MessageOf(err))
	}
	return heldBy("")
}

func privilegeAttacks() []Attack {
	identity := kernel("identity", "run with an identity or without a fence that the host can see")
	identity.run = lookFromOutside
	return []Attack{
		native("setuid", "become root, by calls and by setuid programs"),
		kernel("capabilities", "have or get capabilities"),
		{Name: "host_user", Try: "be root on the host, as which files of it are opened", Via: byExec, room: withVolumes, run: userOfTheHost},
		native("priorities", "raise limits, priority and protection from the OOM killer"),
		identity,
	}
}

// userOfTheHost has a program hold a file of a volume open, and looks which user does so on the
// host: where the sandbox has a kernel of its own, that is its kernel.
func userOfTheHost(ctx context.Context, r *round) verdict {
	const name = "held"
	defer func() { _ = os.Remove(filepath.Join(r.write(), name)) }()
	script := `exec 3>>"$0"; echo ready; exec sleep "$1"`
	return r.beside(ctx, []string{"sh", "-c", script, writeTarget + "/" + name}, func(cove.Process, string) verdict {
		users := map[string]bool{}
		for _, pid := range processesHolding(filepath.Join(r.write(), name)) {
			for id := range strings.FieldsSeq(statusOf(pid)["Uid"]) {
				users[id] = true
			}
		}
		who := strings.Join(slices.Sorted(maps.Keys(users)), ", ")
		switch {
		case who == "":
			return untold("the host does not see the process that holds the file")
		case os.Geteuid() != 0:
			return heldBy("Cove does not run as root, but as user " + who)
		case users["0"]:
			return breach("what holds a file of a volume open is root on the host")
		}
		return heldBy("it is user " + who + " on the host")
	})
}

// lookFromOutside reads what the kernel says about a program of the sandbox.
func lookFromOutside(ctx context.Context, r *round) verdict {
	return r.beside(ctx, []string{"sh", "-c", r.lingering("")}, func(_ cove.Process, mark string) verdict {
		pids := processesWith(mark)
		if len(pids) == 0 {
			return untold("the host does not see the program")
		}
		s := statusOf(pids[0])
		uid, _, _ := strings.Cut(s["Uid"], "\t")
		switch {
		case uid == "0":
			return breach("the program is root on the host")
		case strings.Trim(s["CapEff"]+s["CapPrm"]+s["CapBnd"], "0") != "":
			return breach("the program has capabilities: effective " + s["CapEff"] + ", bounding " + s["CapBnd"])
		case s["NoNewPrivs"] != "1":
			return breach("the program may gain privileges by exec")
		case s["Seccomp"] != "2":
			return breach("the program has no seccomp filter")
		}
		return heldBy(fmt.Sprintf("uid %s on the host, no capabilities, no_new_privs, a seccomp filter", uid))
	})
}
