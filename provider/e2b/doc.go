// Package e2b makes sandboxes at E2B, or at any server that speaks its protocol:
// machines elsewhere, paid for by the second.
//
// E2B's way to run a program knows no trees of processes, no bounds on output and
// no whole files. So Cove's own agent is put into each machine and started there
// once; its link is the standard input and output of that one program, and all that
// Cove promises of programs, files and terminals is kept by it, as in a sandbox on
// this machine. What is asked of E2B itself is little: machines, their time to live,
// one file, one program.
//
// A machine lives for a while without news from us and is renewed as long as its
// sandbox is held: what a server leaves behind when it dies ends by itself, unless
// the next one takes it up. Which machines are ours their metadata says.
//
// The package must not believe what comes from a machine or from the server in
// front of it, must not send the key anywhere but to the API, and must not repeat
// a request that may have been carried out.
package e2b
