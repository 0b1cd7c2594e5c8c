// Package escape is the abuse battery: programs that try to get out of a
// sandbox, to look out of it, or to hurt the host from inside. Each attack must
// fail, and its finding names what stopped it.
//
// What a shell cannot try is tried by a native attacker: the executable that
// [Options] names, uploaded into the sandbox and started there as [Name]. Such
// an executable hands its arguments to [Main], before it does anything else:
//
//	if escape.Summoned(os.Args) {
//		os.Exit(escape.Main(os.Args[1:]))
//	}
//
// What a program may do can depend on what starts it. So attacks come in by several
// ways. By way of [Kernel] come those that the attacker makes alone, and the search for
// descriptors: each is started twice by an interpreter that all attacks on a sandbox
// share, once as a program of its code and once as a fork of itself. Attacks on time,
// memory and files do not: the limits of a sandbox are the same for all that is in it.
//
// A sandbox is not believed where the host can look for itself: whether a
// file of the host was changed, whether somebody called at a listener, whether
// a process is gone. What is neither stopped visibly nor answered counts as got
// through.
//
// Sandboxes are as plain as they can be, unless an attack needs more or [Options]
// has another [Arrangement]. Attacks on the way out of a sandbox call nothing but
// what must be refused; those that need more are made only where the provider is an
// [Outside], whose sandboxes reach a [World] of the attacker's instead of the real
// one.
//
// Every attack is bounded, so that it does no harm where nothing stops it: it
// takes a little more than it was given and then lets go. The package must not
// know any provider and must not be a test: providertest and the command line
// both run it. Nothing is left on the host afterwards.
package escape
