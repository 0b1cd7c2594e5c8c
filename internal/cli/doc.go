// Package cli is the command line of Cove. A command reads its flags, asks a
// [cove.Platform], and prints the answer; where the platform is depends on the
// settings: in this process, in the daemon of COVE_HOME, or at a URL.
//
// Commands are made by constructors and share one value, so that nothing is
// global and tests run them with streams of their own. [System] is the only
// place that touches the process: its streams, arguments and environment.
//
// What comes from a sandbox or a server is escaped before it is shown, unless
// it is the output of a program, which passes as it is.
//
// The package must not decide what is allowed or how a session lives: that is
// the engine's. It must not print secrets, but for a new key, once.
package cli
