// Package local makes sandboxes on this machine's own kernel: namespaces, a
// read-only root of the host's own programs, a system call filter, control
// groups. It needs neither Docker nor KVM, and runs as root or as an ordinary
// user.
//
// Each sandbox has an agent (package guest) as its first process, which is born
// without privileges inside the finished fence (package fence). All policy is
// here; the fence and the agent carry it out. What this host cannot enforce is
// in the report of Probe and of every sandbox, and refused where it was asked
// for.
//
// # What is in a sandbox
//
// The root is a file system in memory that cannot be written to, with the host's
// /usr, a private /etc that knows two users, a handful of devices, and three
// places that can be written to: /workspace, /tmp and /dev/shm, each in memory
// and bounded in bytes and in files. The workspace can be on disk instead: in an
// image of a file system of its own where the provider is root, and elsewhere in
// a directory that is looked at from time to time. Volumes are copies of the
// host's mounts, and a sandbox that has some has a root of its own for them. Programs are user 1000, sandbox. Where the
// provider is root, each sandbox is another user of the host, so that two
// sandboxes share nothing even where something else fails. The network is a
// loopback of its own. Where a spec asks for more, addresses in it lead to sockets
// that a gateway of the host answers (package egress). Mounts, network and host name belong to a user namespace
// that programs are not in: even with every privilege in theirs they could
// change none of them.
//
// # Templates
//
// The root above is the template base. A caller can give others by Config.Templates:
// the same root with variables and places to search of their own, a directory that
// lies over the host's files, and one that takes their place. Each but the first kind has a kit of its own, which is a
// plan and a spawner, and all sandboxes of it share the files, read-only. Of a
// template that takes the place of the host's files, /etc has our own few on top,
// and /dev, /mnt, /proc, /run, /sys, /tmp and /workspace are never the template's.
// What is mounted below the host's /usr is not seen through a layer. A workspace
// belongs to no template: snapshots and forks go from one to another.
//
// # Snapshots, forks and trials
//
// They copy nothing, if nobody uses the workspace at that moment: its layers are
// shared. If somebody does, a trial is refused and the others copy; the copy is
// of one moment where programs can be frozen, and otherwise a file that is being
// written to may be torn. A copy has the files of the workspace and nothing else
// of the sandbox. Bounds are on all files that a sandbox sees: what those that it
// shares take is measured, and its own have the rest. Removing or replacing shared
// files gives their room back when they are measured again, before a program starts
// or a file call writes.
//
// # How long it lives
//
// A sandbox ends with its provider, unless Config.Keeper is set: then a process
// beside it (package keeper) holds what keeps the sandbox alive, and the next
// provider of the same directory attaches to it.
//
// The package must not run anything of a sandbox's on the host, nor look at a
// sandbox's files through a path of the host.
package local
