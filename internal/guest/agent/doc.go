// Package agent is the first process of a sandbox: it starts programs, reaps
// everything, and touches files as the sandbox's own user, all of it on request
// of the host at the other end of a link.
//
// It makes no decisions: what a sandbox may do was settled before it runs, by
// whoever started it, and what it sends is trusted by nobody. It must stay
// lean, since its memory and its start are paid for by every sandbox: it does
// not import the root package, and nothing of the network or of archives.
package agent
