// Package msbapi is the server that microsandbox had up to its version 0.2.6: clients
// of that time work against Cove as they are. It translates between their JSON-RPC and
// a [cove.Platform].
//
//	GET  /api/v1/health   without a key
//	POST /api/v1/rpc      sandbox.start, sandbox.stop, sandbox.command.run,
//	                      sandbox.repl.run, sandbox.metrics.get
//
// A sandbox of a namespace is the session of project msb, user msb:<namespace> and the
// sandbox's name as thread. Errors have the original's two forms: {"error","code"}
// beside a status, and an error of JSON-RPC for what is no request. What the original
// called an internal error without another word has the cause in detail here.
//
// The package holds no logic of sandboxes: who may do what, on what, and what is
// written down is the platform's. It must not publish ports of the host, mount what
// the platform does not allow, look into keys beyond their namespace, or hold more of
// a request or of an output than its bounds say.
package msbapi
