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
//	kept               Poke                    Greeting: the programs after one
//	start              Start     see Stdio     –, with TTY the terminal (both ways)
//	signal             Poke                    –
//	kill               Poke                    –, when the tree is gone
//	resize             Poke                    –
//	forget             Poke                    –
//	leave              –                       none
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
// reason. The greeting has the agent's version, which is that of the protocol: a
// host may be of a newer build than the agent it finds, and speaks the version
// of the agent if it is not too old. Version 3 has whole trees, see below.
//
// # Hosts
//
// An agent serves one host at a time, and may serve several in turn over one
// link, if somebody holds the host's end of it open meanwhile. Each begins with
// hello. The first is answered at once. A later one makes the agent end all
// programs that are not kept, with all that they started; leave does the same,
// and is sent by who holds the link when a host is gone. What else a host has
// begun, such as file calls, watches and connections, ends with its streams; with
// frames the agent ends all of them.
//
// The greeting names the programs that are kept, in the order of their ids, and
// for those that have ended how; where there are too many for a message, the host
// asks for the rest. It also has the highest id of the hosts before, above which
// the new one goes on. A host begins with an id that it draws by lot: replies and
// events for others that are still on their way are none of its own, and are
// dropped.
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
// 4 end, 5 failed, 6 attribute, 7 parts), a length, and at most 64 KiB. A stream
// is complete only with its end record: one that stops without was broken, and
// what was written from it does not appear.
//
// A tree is a file record for each entry, a directory before what is in it, each
// followed by its attributes (user.* only), its parts and its data. A file whose
// Hard is set is another name of an earlier one and has none of these. Parts say
// which pieces of a file are in the data; the others are holes. An agent of version
// 2 sends every name as a file of its own and holes as zeros, and no pipes; it is
// sent holes as zeros, no pipes, no attributes and of a mode only the permissions.
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
// # Programs that are kept
//
// A start with a name makes the agent keep the program: it outlives its host, and
// its end is remembered until it is forgotten. At most 512 are. What cannot be
// executed is kept as well, as a program that said so and ended with 127 or 126.
//
// The agent holds none of a program's streams. Of one that is kept, somebody
// beside the host does (Holder): the host hands him its ends of the pipes before
// the start, or the terminal after it, and gets what he reads, from the first
// byte on, as often as it likes. When the program has ended, the host tells him;
// from then on the rule above holds for what he reads. With frames the streams
// are the host's own, and end with it.
//
// # Failures
//
// A message that is malformed, a reply with streams that were not asked for, a
// descriptor of another kind than asked for, data beyond its credit: the host
// ends the connection. So it does when the agent is gone or takes no messages
// for 30 seconds. Then every call ends with unavailable, and so do programs
// whose end was not seen. An agent whose link has ended kills everything and ends.
// Replies that nobody waits for are dropped: their call has ended.
package guest
