// Package e2btest is a server that speaks E2B's protocol, as far as package e2b
// needs it, in front of sandboxes of any provider. It was written from what E2B's
// own clients send and take, and was never compared with E2B itself: it proves how
// Cove reads the protocol, not that the reading is right.
//
// It is for tests: it must not be reachable by others, and keeps no secrets.
package e2btest
