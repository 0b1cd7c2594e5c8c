// Package guest is the host's side of a sandbox: it drives the agent that is
// the sandbox's first process, and gives it the shape of a [cove.Sandbox]:
// programs, files and connections. This comment specifies the protocol that
// the two speak; the package protocol below has the encoding, the package
// agent the other side.
//
// The package makes no sandbox. Whoever does so starts an agent inside and
// hands the other end of its link to [Connect]. Nothing that an agent says is
// trusted: it shares a kernel with untrusted programs.
//
// # Roles and messages
//
// The host sends requests. The agent answers each with one reply that has the
// request's id, in any order, and tells of the end of a program with an event
// that has the id of the request that started it. The end never comes before
// the reply to the start. A message is
//
//	kind  byte
//	large byte    1: the body is in the last descriptor, see below
//	id    uvarint chosen by the host, never used twice
//	n     byte    streams attached, at most 4
//	n ×   flow byte (1 receiver reads, 2 receiver writes, 3 both), and with
//	      frames the stream's number, uvarint
//	body  the rest
//
// Numbers are varints in their shortest form, signed ones zigzag; strings have
// their length before them; lists their count. Every length and count has a
// bound. What is not exactly so, or has bytes left over, is malformed. The
// types of package protocol list the fields in their order.
//
//	request            body      streams       reply
//	hello              –                       Greeting
//	start              Start     see Stdio     –, with TTY the terminal (both ways)
//	signal             Poke                    –
//	kill               Poke                    –, when the tree is gone
//	resize             Poke                    –
//	stat               File                    Info
//	read list archive  File      1 written     –, then records
//	write unpack       File      1 read        – after the last record
//	watch              File      1 written, 1 read   –, then records until the second ends
//	mkdir move remove  File                    –
//	dial               File                    –, with the connection (both ways)
//	usage              File                    Usage
//	ping shutdown      –                       –
//
// A reply begins with an errno, a reason and a short text; all are empty when
// the request was done. An agent that does not know a request says so with a
// reason. Both sides have the same version, which hello compares: an agent is
// started from the executable of its host.
//
// # Transports
//
// Descriptors: a unix socket of type SOCK_SEQPACKET, one message in a packet of
// at most 32 KiB to the agent and 16 KiB to the host. A larger body, up to
// 4 MiB, goes in a file in memory, from the host only. Streams are descriptors
// (SCM_RIGHTS): a program's output is the host's own pipe, and nothing is copied.
//
// Frames: any reliable stream of bytes. A frame is a kind (1 message, 2 data,
// 3 end, 4 credit, 5 reset), the number of a stream and a length, both uvarint,
// and so many bytes: at most 32 KiB of data. The host numbers the streams that
// it attaches with odd numbers, the agent with even ones. Whoever receives a
// stream gets a pipe, and the transport copies: each direction may have 256 KiB
// on its way, and credit comes when they were taken, so that a stream nobody
// reads stops alone and holds no more than that. Reset says that nobody will
// read; who writes then finds his pipe closed.
//
// # Records
//
// Content goes through streams as records: a kind (1 data, 2 file, 3 change,
// 4 end, 5 failed), a length, and at most 64 KiB. A stream is complete only with
// its end record: one that stops without was broken, and what was written from
// it does not appear.
//
// # Programs
//
// A program is looked up in the PATH of its own environment, inside, and leads a
// process group of its own; with a terminal it leads a session, and without one
// it is in the agent's, which has no terminal. It is the reaper of its
// descendants while it lives, so that kill finds all of them, whatever they did
// with sessions and forks; what it leaves behind becomes the agent's, who
// remembers whose it was. When several programs end in the same moment, what
// they left belongs to all of them.
//
// Signals mean nothing to the agent: programs have its user and could send it
// any. What ends it is the end of the link, the host, or a fault of its own.
//
// The end of a program is told when the program itself has ended. What is in its
// pipes at that time is all the host still delivers: with descriptors it reads
// as many bytes as the kernel counts there, with frames the agent does so and
// then ends the stream. So nothing that the program wrote is lost, and children
// in the background that hold the pipes, or go on writing, hold up nobody; they
// find the pipe closed.
//
// # Failures
//
// A message that is malformed, a reply with streams that were not asked for, a
// descriptor of another kind than asked for, data beyond its credit: the host
// ends the connection. So it does when the agent is gone or takes no messages
// for 30 seconds. Then every call ends with unavailable, and so do programs
// whose end was not seen. An agent whose host is gone kills everything and ends.
// Replies that nobody waits for are dropped: their call has ended.
package guest
