// Package fence builds what stands around a sandbox of the local provider, and
// starts the sandbox's first process in it.
//
// A [Plan] says what all sandboxes of one kind have in common: the read-only
// root, the names, the limits, the filter. An [Order] says what is one sandbox's
// own: its user, the size of its places, its control groups. A [Builder] carries
// orders out, each in a room: a thread that enters new namespaces and is thrown
// away afterwards, so that the process around it stays where it is. The next
// room is begun before anybody asks for it.
//
// Building happens in one of two places. The host itself can do it, if it is
// root. Otherwise, and for a host that makes many, a spawner does: a small
// process that has already turned the read-only root into its own and waits for
// orders on a socket. Each of its sandboxes then only adds what is private.
// [Main] is that process. One of its threads keeps the host's view of files, from
// which volumes are copied.
//
// A part of the root can be a stack of directories: those of a template over the
// host's, or what the root itself has over a template's. It is an overlay without
// a layer to write to.
//
// [Ways] lead out of a sandbox that stands already: sockets in its network that
// somebody outside answers.
//
// # What the spawner and its host say
//
// Both speak packets over a unix socket of type SOCK_SEQPACKET, in the encoding
// of the guest's protocol. The host sends the plan first, with the agent's
// executable and a descriptor of /proc; the answer says whether the root stands.
// Then each request has a number, a kind (1 build, 2 resize, 3 job, 4 ways, 5 nest) and a
// body, with descriptors: the link, the group, the volumes and the tasks of a build,
// the places of a resize, what a job is about, the first process of the sandbox that gets
// ways out. The answer has the number, the step that was refused and the kernel's
// error, or the process and its descriptors, or what a job made, or the sockets. A
// spawner whose host is gone ends; so do the sandboxes whose links are gone as
// well.
//
// # Layers
//
// Where the plan says so, a workspace is a directory of a store, a file system
// that is mounted nowhere. A [Job] replaces what a sandbox sees of it by a stack
// of such directories, compares, merges, removes and copies them, and writes them
// down as a file. Whoever built the sandbox has the rights to: [Tools.Do] is the
// same code in both places. What is in a layer was made by somebody hostile, who
// may still be at it: links are never followed, and all is bounded.
//
// The package is linked into the agent's executable: it must not import the root
// package, and it decides nothing that is not in a plan, an order or a job.
package fence
