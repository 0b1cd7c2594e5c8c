// Package e2bapi is the face that E2B's SDKs talk to, unchanged: their control API,
// and for each sandbox the calls of its agent (envd) and of its code interpreter. It is
// a translation: every call becomes calls of [cove.Platform], where keys, quotas,
// policy, journal and metrics are what they are for everybody.
//
//	POST /sandboxes, GET /v2/sandboxes, …       the control API, by a key in X-API-Key
//	/process.Process/…, /filesystem.Filesystem/… envd, port 49983: Connect's protocol
//	GET, POST /files                            envd: bytes of files
//	/execute, /contexts                         the interpreter, port 49999: lines of JSON
//
// Which sandbox a call is for is told by its host, <port>-<id>.<domain>, or on a plain
// address by the headers E2b-Sandbox-Id and E2b-Sandbox-Port. Calls to a sandbox show
// an access token that is made from the server's secret and the id; they act for the
// session's owner as his key is now.
//
// Connect's protocol is spoken in JSON alone, as all SDKs do: a unary call is a POST
// with a JSON body; a stream is frames of one byte of flags, four bytes of length,
// big-endian, and JSON; the last frame of an answer has flag 2 and holds the error, if
// there is one.
//
// Files are named as E2B has them: the workspace is /home/user, and metadata are the
// attributes user.e2b.* of a file. A link that is signed stands for the token; where it
// names no sandbox, the signature is tried for each that is there, and who shows wrong
// ones is stopped after 20 in a second. Watches take changes faster than clients may read
// them, hold a bounded number, and end with an error where one was lost.
//
// Every byte of a client is hostile, and so is what comes from a sandbox. The package
// must not decide what is allowed, keep state that a restart loses and a client relies
// on, or let a call reach another sandbox than the one whose token it shows.
package e2bapi
