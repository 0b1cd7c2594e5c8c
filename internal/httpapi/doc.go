// Package httpapi is the public HTTP API: a translation of cove.Platform into
// routes, JSON, event streams and byte streams, and of errors into
// application/problem+json.
//
// One table, put together in route.go, says everything about a route: its
// method and path, its query, what it takes and gives, and what it does.
// Requests are decoded from it, and docs/openapi.json, which a server shows, is
// written from it by a test that fails where the two differ.
//
//	GET …            an answer in JSON, or bytes for files and archives
//	Accept: text/event-stream
//	                 the same as it happens: stdout, stderr and exit of a
//	                 program, places in the queue, files of a list
//	Content-Type: application/x-cove-exec
//	                 …/execute takes the request on one line, and then the
//	                 standard input while the output goes the other way
//	Content-Type: multipart/form-data
//	                 …/upload writes each file of the form while it arrives
//	Upgrade: tcp     …/ports/{port}/connect is then the connection itself
//	WebSocket        …/terminal: binary messages are bytes of the terminal,
//	                 text messages are JSON about it
//
//	Cookie           of a browser that is signed in, in the place of a key; only
//	                 where no other site made the browser send it
//
// The client going away ends what it was waiting for, a program in the
// foreground too, and never one in the background.
//
// Beside the handler there are the server with its bounds on what a client may
// do before it is known, and a listener with bounds on connections.
//
// The package must not hold state, but for the number of connections, or decide anything: who may do what, what is
// journaled and what is kept are the platform's business. It never logs or
// answers with a body, a secret or the cause of an error.
package httpapi
