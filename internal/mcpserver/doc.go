// Package mcpserver is Cove for clients of the Model Context Protocol: tools that
// run code and commands, files, sessions and questions to data, over standard
// streams ([Stdio]) or streamable HTTP ([HTTP]).
//
// A client that names no session gets one of its own with its first call, and
// keeps it, files and variables included, for as long as its MCP session lasts;
// then it is stopped, and its files stay until the idle time is over. What a tool
// answers fits into a budget, as text and as structured content alike, and says
// how to get at the rest. What goes wrong is an answer that a model can read, with
// a code and what to do; only faults of our own are errors of the protocol.
//
// Everything is done through the [cove.Platform] of who asks, so a client can do
// what its key may and no more. The package holds no logic about sandboxes: it must
// not reach one otherwise, decide what is allowed, or keep anything longer than an
// MCP session. It is the one importer of the protocol's SDK, and no type of that
// is in what it exports.
package mcpserver
