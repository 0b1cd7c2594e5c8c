// Package protocol is what the host and the agent in a sandbox say to each
// other: the encoding of messages, the records inside streams, and the two
// transports that carry both. The specification is the comment of the package
// internal/guest.
//
// Both ends import it, so it must stay small: it imports neither the root
// package nor anything that formats text, and it decides nothing.
package protocol
