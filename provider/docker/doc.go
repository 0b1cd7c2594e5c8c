// Package docker makes sandboxes of containers: of Docker, or of another engine
// that speaks its API, such as Podman, on this machine or on another.
//
// # How it works
//
// The first process of a container is Cove's own agent, which a volume brings in:
// images stay as they are. The agent listens inside, and the provider reaches it
// through a door: one exec of the engine, whose streams the agent takes over. An
// exec is paid once for a connection; programs, files and terminals after that are
// messages on it. A sandbox has no network, a root that cannot be written to, no
// capability, the engine's own seccomp filter, and a workspace in memory, or on disk
// in a volume that is made and removed with it. What may leave it goes through the
// same connection, to a gateway in this process.
//
// What a container cannot tell about itself is in a note, a file in the provider's
// directory: the spec and what it enforces. A container with our label and without
// a note is half-made.
//
// # What it must not do
//
// It must not pull or change an image, look at containers that lack its label, or
// start anything on the host. An engine that is not there is said so: nothing else
// serves in its place.
package docker
