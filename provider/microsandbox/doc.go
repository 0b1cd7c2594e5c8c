// Package microsandbox makes sandboxes in the small virtual machines of
// microsandbox, by one of two transports: rpc is the server of its versions 0.1 and
// 0.2, cli the msb program of later ones.
//
// Both can start a machine, end it and run programs in it as root; the rest is done
// by Cove's own agent, which is put into the machine when it starts. By cli the
// agent's link is the input and output of one msb exec. The server has nothing like
// it: there the link goes through questions and answers, package mailbox. So limits,
// signals, streams, files and terminals are the same as elsewhere, and nothing of
// what the server does to output matters: lines that it loses or cuts are asked for
// again.
//
// The package must not trust what either says about what it did, and must not
// repeat what is not safe to repeat: a start, a stop that was not answered and
// programs of users are never sent twice.
package microsandbox
