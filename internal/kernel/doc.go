// Package kernel runs interpreters that remember inside sandboxes: it implements
// [cove.Kernels] over nothing but [cove.Starter], so every provider has them.
//
// Each language has a driver, a program of our own written in that language with
// nothing but its standard library. The driver runs code and says how it ended; what
// the code writes goes to the ordinary streams as it is.
//
// # The protocol
//
// A driver is started as a program with three streams. Its standard input carries
// first the driver's own source, for each of its files eight decimal digits of length
// and the text, and after it requests. Code that is run finds /dev/null on its standard input.
//
// A request is a line "KIND SEQ LEN\n" and LEN bytes:
//
//	I 0   begin: a list of the marker, "warm" or "", and modules to import ahead
//	A 0   belong to somebody: a list of the directory, and names and values of the
//	      environment in turn
//	X n   run code: the code itself
//	V 0   set variables of the environment for the run that follows, and give them back
//	      what they were when it has ended: a list of names and values in turn
//	P 0   answer, when all requests before are done: a server that takes up an
//	      interpreter learns by that whether the driver got the code of the last run
//	C 0   wait until no interrupt that was sent before can reach code any more; it
//	      is asked before the run that follows one, of drivers to which they come late
//
// Standard output and standard error carry all that the code, its children and its
// extensions write there, untouched, and between it frames of the driver, which it
// writes to duplicates of the same pipes: the marker, "KIND SEQ LEN" with a newline or
// a semicolon, and LEN bytes, at most 4096 in all. The kernel does not tear such a
// write, so that nothing another process writes can be inside a frame; bash, which
// writes at every newline, has none in its frames. What is longer comes in parts: all
// but the last have the kind in lower case.
//
//	H 0   on stdout, ready: a list of process id, process group and version
//	A 0   on stdout, the answer to A: a list of one text, empty or what went wrong
//	P 0   on stdout, the answer to P
//	M n   on stderr: all that run n wrote to stderr is before this
//	R n   on stdout, a value: a list of MIME types and forms in turn
//	T n   on stdout, the value of the last expression, as R has it
//	E n   on stdout, what was raised: a list of name, value, traceback and line
//	D n   on stdout, done: a list of exit code, microseconds of CPU time and
//	      kilobytes of memory at most; E, R and T of the run come before it, M too
//	L 0   on stdout, last words: a list of one sentence, why the driver ends itself
//	B k   on either stream: this is point k of it
//	W k   on the other stream: what follows was written after point k there
//
// A list is netstrings without commas: the length in decimal digits, a colon and the
// bytes, one after the other.
//
// The marker is drawn for every interpreter, begins with a byte that text does not
// have, and is told to the driver alone. Code that digs it out of the driver can fool
// its own context only: everything that comes out of a sandbox is bounded, checked
// and never trusted with more than the answer to its own caller. A marker that no
// good frame follows is output.
//
// # What it must not do
//
// It must not know a provider, read or write files of a sandbox, run code outside of
// one, or keep more of what comes out than the bounds in limits.go say.
package kernel
