// Package preview shows what listens on a port inside a session to a browser. Each
// port of each session has an origin of its own, http(s)://<port>-<session>.<domain>,
// so that a page from one sandbox is a stranger to every other one and to Cove's own
// pages.
//
//	?cove_ticket=…   a link: the ticket becomes a cookie of that host alone, and the
//	                 browser is sent to the same URL without it
//	Cookie           every request after it; the ticket is redeemed for each
//
// A request goes in without what is Cove's: Authorization, X-API-Key and cookies
// named cove_…; what the program set itself it gets back. An answer comes out
// without what reaches beyond its own origin. WebSockets and event streams pass; a
// connection over which nothing goes for a while is ended, and so is every one whose
// ticket is good no more.
//
// Where the configuration says so, a door of other clients' has no tickets: each
// request is judged by itself.
//
// Everything inside is hostile and so is every client. The package must not serve a
// host that is not below its domain, hold a ticket in a log, decide who may reach a
// port (the platform does), or keep a connection to a sandbox that nobody uses.
package preview
