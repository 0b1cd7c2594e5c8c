// Package egress is the way out of something that has no network: it answers
// names, dials what a list of rules allows, and carries bytes.
//
// # How it works
//
// Whoever stands behind a [Gateway] sends all it has to sockets that the caller
// made: DNS, and TCP for whole ranges of addresses. A name that the rules allow is
// answered with an address that only the gateway understands, out of
// 198.18.0.0/15; nothing leaves the host for it. A connection to such an address
// is one to its name: the gateway asks the rules again, now with the port,
// resolves the name itself, refuses it unless every answer is a public address,
// and dials exactly one of those that it has checked. What the other side knows of
// addresses, caches or answers twice in two ways does not matter.
//
// With mode open every name is allowed and so is every public address.
//
// # Secrets
//
// A connection to a host for which there is a [Secret] is not carried but read:
// as HTTP, and where it is TLS with a certificate of the [Authority] that the
// other side was told to trust. Each request gets the secret's header on its way
// out. Requests to any other host in such a connection are refused, and so are
// requests without TLS, unless all secrets of the host are plain. Hosts without a
// secret are never read.
//
// # What it must not do
//
// The package knows names, sockets and rules, and of a sandbox only its files, where
// a [Way] says whom to trust: nothing of sessions or providers. It must not look up
// a name that the rules do not allow, dial an address that it has not checked, or
// put the value of a secret anywhere but into the header it is for, nor send it in
// clear text unless it is told to.
package egress
