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
// that has the id of the request that started it, and of a connection with one that
// has the id of the request to listen. The end never comes before the reply to the
// start. A message is
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
//	hold               Hold                    –, with the input if it was asked for
//	follow             Poke      1 written     –, then records
//	look               Poke      1 written     –, with the input if it is open; a record
//	shut               Poke                    –; of a program that is kept, or guarded
//	mark               Mark                    –
//	listen             Listen    1 read, with names 1 both ways   –, then events until the first ends
//	leave              –                       none
//	stat               File                    Entry
//	read list archive  File      1 written     –, then records
//	write unpack       File      1 read        – after the last record
//	watch              File      1 written, 1 read   –, then records until the second ends
//	mkdir move remove  File                    –
//	tag                Tag                     –
//	dial               File                    –, with the connection (both ways)
//	usage              File                    Usage
//	kills              File                    a count, of an agent that sees its control group
//	bound              Bound                   –
//	ping shutdown      –                       –
//
// Excess is of the agent, without a request: it ends the sandbox in this moment, since
// its programs have the kernel keep more locks or sockets than they may, and has
// their number. An agent that was started with the word watch, or filter, sends it.
//
// The depth of a usage, if it has one, asks to count the files one by one.
//
// A reply begins with an errno, a reason and a short text; all are empty when
// the request was done. An agent that does not know a request says so with a
// reason. The greeting has the agent's version, which is that of the protocol: a
// host may be of a newer build than the agent it finds, and speaks the version
// of the agent if it is not too old. Version 3 has whole trees, see below,
// version 4 doors, and version 5 tag: in its lists and answers a file has an owner and
// the attributes that there is room for, and before it a file is an Info alone. The
// watches of version 6 tell a file that has another name from one that is gone, and
// one with other attributes from one with other content. Since version 7 a start or hold
// can have a list of programs, to which landlock keeps the program and all that it
// starts; the greeting says whether the agent's kernel has that. Since version 8 a host that
// follows a program that is held is told how much of its output was dropped. Since version 9
// a start can have its input guarded, see below. Since version 10 a program that runs can be
// given a name, and of output that is held a part can be marked as read.
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
// # Doors
//
// Where nobody can hold a link to an agent, such as in a container of an engine
// that may run on another machine, the agent listens (cove-agent listen): it is the
// sandbox's first process, and waits at the abstract socket @cove-agent of the
// sandbox's own network. Each link is made by a process that the engine starts
// inside, a door (cove-agent door), with standard streams that lead to the host. It
// hands these to the agent (SCM_RIGHTS) and lives on, without touching what goes
// through, until the agent is done with them. The agent writes a line, COVE4, and
// then speaks frames; what comes before the line was said by the engine.
//
// A door is known by its user: only root is one, without any capability. Programs
// have the agent's user, which must be another, and cannot become root; they are
// turned away. Where nobody is root, as in a sandbox within another, both are started
// with the word beside: the agent listens at @cove-agent-N, N being its parent, and a
// door is who has that parent. Programs can end such an agent, and itself alone. A new door ends the link before it, whose host may have hung. The end
// of a link, in the middle of a message or not, is a leave: it ends what is not kept,
// and not the agent. After a sandbox was stopped and restored, its memory included,
// the agent listens as before, and a new door finds it.
//
// Programs of an agent that listens have an oom_score_adj above its own, so that
// the kernel kills one of them when the sandbox's memory runs out.
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
// read; who writes then finds his pipe closed. With one byte, 1, it says that a
// connection was refused: a socket is reset then and not ended. Streams can have 4096
// directions at once, and connections that the host made 1024 of them; a request for
// more is busy. Who closes a connection is told from who ends his half of it.
//
// # Records
//
// Content goes through streams as records: a kind (1 data, 2 file, 3 change,
// 4 end, 5 failed, 6 attribute, 7 parts, 8 errors), a length, and at most 64 KiB. A stream
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
// any. What ends it is the end of the link, if it has but one, the host, or a fault
// of its own.
//
// The end of a program is told when the program itself has ended. What is in its
// pipes at that time is all the host still delivers: with descriptors it reads
// as many bytes as the kernel counts there, with frames the agent does so and
// then ends the stream. So nothing that the program wrote is lost, and children
// in the background that hold the pipes, or go on writing, hold up nobody; they
// find the pipe closed.
//
// Where no kernel bounds the memory of a sandbox, the agent can, since version 4.
// With bound it looks at what is in use (AnonPages in /proc/meminfo, which has files in
// memory, too) while there are programs, every 5 to 50 ms, the more often the less is
// left. Above the bound it kills the largest process, and the next only when that one is
// gone. What is in use even then, such as by files, counts as no program's up to 32 MiB above
// the bound, or a quarter of it where that is less: the program that removes the files must live. The end of a program that it killed says
// so, in a bit above the status.
//
// A program that reads the end of its input believes that it has read all of it, and may
// replace a good file with what it has. So the end of the input is only ever the caller's.
// When a host is gone, in whatever way, the agent ends the programs that are not kept while
// their input is still open. With frames it knows the end of a stream from the end of the
// link, and keeps the pipe of the input open. With descriptors the kernel closes the host's
// end of the pipe: since version 9 the agent has it, too (Guarded), until the host shuts the
// input. Input that was whole in the pipe before the start needs no guard.
//
// # Programs that are kept
//
// A start with a name makes the agent keep the program: it outlives its host, and
// its end is remembered until it is forgotten. At most 512 are. What cannot be
// executed is kept as well, as a program that said so and ended with 127 or 126.
//
// With descriptors the agent holds none of a program's streams. Of one that is kept,
// somebody beside the host does (Holder): the host hands him its ends of the pipes
// before the start, or the terminal after it, and gets what he reads, from the first
// byte on, as often as it likes. When the program has ended, the host tells him;
// from then on the rule above holds for what he reads.
//
// With frames nobody outside can hold a pipe, and since version 4 the agent does it,
// for a program that is started with hold instead. It remembers what the program
// writes, as records: data, and errors for what comes on stderr. Hold says how many
// bytes of it, beginning with the first; of what is more than that only the newest
// 256 KiB are there, after a record that says how much of each stream is not, and all programs together have no more than four times as much.
// Who follows gets it from the first byte on and is waited for while he reads, so
// that he misses nothing; who does not read for ten seconds is not, unless he says, by
// the signal of his Poke, that nobody else ever will. The input is a stream that host
// after host may write to; it ends when one shuts it. Look also gives back the note
// that hold had.
//
// # Programs that are recorded
//
// Since version 10 a program that runs can be given a name, or another one, by mark. Of
// one whose streams the agent holds, mark also replaces the note and says how much of
// each stream is not wanted again, counted from its start or from when it got another
// name. That is freed, and the rest is not dropped: a program without a follower waits,
// and one that is followed loses only what was read. A follower gets the output from
// the mark on. With descriptors the host reads the pipes of such a program itself, puts
// what it reads on tapes, and from the first mark on has a RecordHolder hold copies of
// all descriptors.
//
// # Ways out
//
// A sandbox that has no network but its own loopback gets a way out of it by the
// agent, since version 4 and with frames only. Listen makes it bind ports, at all
// addresses, and with names the port 53 of 127.0.0.1, for packets and connections.
// Each connection is an event of the agent (accepted) with the address that it was
// made to, and is attached; 512 may be on their way at once, and who makes more is
// turned away. Packets go over the second stream of the request, as records of data
// that say whose they are; so do the answers. The agent knows no names and makes no
// choices: it is for the host to give names addresses out of 127.64.0.0/10, all of
// which every loopback has, and to connect or not. Nothing comes from the sockets any
// more when the first stream of the request ends, or the link does. They stay bound
// until a host starts a program without having asked for them, so that programs that
// are kept cannot take the place of the next host's.
//
// # Failures
//
// A message that is malformed, a reply with streams that were not asked for, a
// descriptor of another kind than asked for, data beyond its credit: the host
// ends the connection. So it does when the agent is gone or takes no messages
// for 30 seconds. Then every call ends with unavailable, and so do programs
// whose end was not seen. An agent whose link has ended kills everything and ends,
// unless it listens.
// Replies that nobody waits for are dropped: their call has ended.
package guest
