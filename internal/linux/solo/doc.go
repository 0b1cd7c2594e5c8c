// Package solo is the first process of a sandbox that runs one program and ends
// with it: a few hundred bytes of machine code in an executable of its own.
//
// A host that wants one program run would pay for an agent more than for the
// program. This process can do one thing: it waits for one message, starts the
// program that the message describes, tells how it ended, and ends. With it the kernel ends all others of its pid
// namespace. It is executed like an agent, by whoever locks it up first: it holds
// nothing of its host's memory, and of descriptors only its link.
//
// [Image] is the executable. The code in it is that of start_linux_*.s, copied
// out of this program: it refers to nothing outside itself.
//
// # The message
//
// The link is descriptor 3, a unix socket of type SOCK_SEQPACKET. The host sends
// one packet: the size of an [Order], 8 bytes in the machine's order, with four
// descriptors: a file that holds the order, and the program's three streams. The
// order is a picture of memory, which the process maps at a fixed address: two
// lists of system calls, one for itself and one for its child, the names under
// which the program is searched, its arguments and its environment. The process
// forks as vfork does; the child carries out its list and executes the program.
//
// Afterwards the host may send single bytes: each is a signal for the program.
// The process answers once, with a [Report]. When the link ends, so does it.
//
// Nothing of an order is checked inside: its author is the host. A report must
// not be trusted; the package checks no more than its size.
//
// Minimum kernel: Linux 5.9 (pidfds from clone are 5.2, close_range 5.9).
package solo
