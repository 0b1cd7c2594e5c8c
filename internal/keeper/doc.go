// Package keeper is a small process that outlives the server: it holds open what
// keeps sandboxes alive, and reads what their programs write while nobody else
// does. There is one for each directory of a provider. The same package has the
// client by which a server talks to it.
//
// It knows nothing of sandboxes. What it holds are names, notes and descriptors,
// logs of what came out of pipes, and gateways; what they mean is in the notes,
// which it does not read. It must not decide anything about a sandbox, nor end one: it
// lets go of what it holds when it is told to or dies, and whoever finds his
// socket closed draws his conclusions.
//
// # Who may talk to it
//
// It listens on a socket in the directory, of its own user, who alone may
// connect: the kernel says who is at the other end. One server at a time is
// served; another waits a moment for the first to be gone, and is refused.
//
// # Its life
//
// A server starts it when it is needed, in a session of its own, and it stays
// for as long as it holds something or serves somebody. A lock on a file in the
// directory makes sure that there is one. Signals of a terminal mean nothing to
// it. When it dies, the kernel closes all that it held. One whose socket was removed
// cannot be reached by another server, and ends when it serves none; its program, package
// local, then removes the control groups of what it held.
//
// # Messages
//
// Each message is one packet (SOCK_SEQPACKET) in the encoding of package
// protocol, with descriptors beside it (SCM_RIGHTS). Requests are answered in
// their order. [Protocol] counts changes of the messages; it is not the version
// of the build, so that a newer server works with a keeper that runs.
//
//	hello    protocol               → protocol
//	put      sandbox, note, farewell, names, descriptors
//	list                            → names
//	get      sandbox                → note, farewell, names, descriptors
//	drop     sandbox
//	keep     sandbox, program, note, names, descriptors of in, out, err
//	programs sandbox                → names
//	look     sandbox, program       → note, with in if it is open
//	follow   sandbox, program, from → a socket
//	shut     sandbox, program       closes in
//	finish   sandbox, program       reads what is in out and err now, and no more
//	forget   sandbox, program
//	gate     sandbox, note, names, descriptors of sockets
//	listen   sandbox, names, descriptors of sockets
//	set      sandbox, note
//	connections sandbox, from       → note
//	ungate   sandbox
//	bye                             ends the keeper if it holds nothing
//
// A gate is the way out of a sandbox (package egress), which goes on while there
// is no server. Its note is the gateway's configuration, and that of connections a
// list of them, both as JSON; there may be more connections than one answer has.
// A note that is too large for a message is a descriptor with the name "note".
//
// The farewell of a sandbox is a packet that is sent on its descriptor "link" when
// a server is gone.
//
// What comes out of a socket to follow by is a sequence of records: a kind (1
// stdout, 2 stderr, 3 end), the offset of the first byte, and the bytes with
// their length before them, both numbers big endian, of 64 and of 32 bits.
// Without the end the log is not complete. Output is kept as package spool says;
// while somebody follows and keeps moving, programs that write faster than he
// reads are held up before anything is dropped.
package keeper
