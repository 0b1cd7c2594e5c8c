// Package ticket signs grants and reads them back. A ticket is a grant with a
// keyed hash (HMAC-SHA256), which only the server that made it can check; it
// needs no record, and nobody can change a letter of it.
//
//	ticket   = body "." mac            both in base64url without padding
//	body     = JSON: v, kind, who, tenant, session, path, port, until, nonce
//	mac      = HMAC-SHA256(key, "cove ticket 1" NUL body)
//	key      = the 32 bytes in the file link.key, made at the first start; for
//	           login tickets a key that is derived from it and from chance that
//	           this process alone has, for console tickets from it and from chance
//	           that is in the file signed-out
//
// So links and browsers that are signed in outlive a restart of the server, and
// login links do not: which of them were used is known in memory only. Browsers
// that signed out are written down in signed-out until their time is up. A file
// that is gone or damaged has other chance when it is made again, so that who
// signed out cannot come back by it. Removing link.key ends every link.
//
//	signed-out = "cove signed out 1 " chance LF, then lines: nonce SP until SP who LF
//
// # Many servers
//
// The servers of a cluster have one key, which comes of the cluster's secret, and no
// chance of their own, so that each knows the tickets of all ([Join]). What is spent
// is noted where all of them look ([Shared]), under a hash of the ticket's nonce: a
// login link that was used, a browser that is in, and one that is out. A browser
// counts as signed in only while the first of these two is there and the second is
// not. So a shared memory that lost something ends sign-ins, and brings none back;
// but for a login link, which may be used once more in the few minutes that it is
// good for. Where nobody can be asked, nobody is signed in: Unavailable.
//
// That a browser is signed in is believed for a second without asking again. For so
// long it may still be answered after it signed out at another server; at the same
// one it is out at once.
//
// A ticket is not permission by itself. A [Desk] turns it into the principal that
// it names as that one is now, with no more scopes than the ticket is for.
//
// The package must not know URLs, HTTP or sessions, and must not write a ticket
// or the key anywhere but into the file of the key.
package ticket
