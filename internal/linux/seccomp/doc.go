// Package seccomp keeps a process from the system calls that it does not need.
//
// A [Policy] is an allow-list: it names calls, looks at arguments where a number
// alone says too little, and has an answer for everything else. Compile turns it
// into a [Program] for the kernel, and Install puts that over the calling thread
// or the whole process, for good: everything started from there inherits it.
//
// Every program first looks at the architecture. The numbers mean other calls
// for 32-bit code, which any 64-bit program can run, so a foreign architecture
// and the x32 numbers end the process. Flags, requests and families are compared by
// their low 32 bits only, as the kernel reads them: bits above must not make a
// forbidden request look like another. Of sizes and addresses it reads all 64.
//
// The package decides nothing about paths and addresses, and about amounts only where
// the kernel charges no control group for them (decision 061): the rest is the work of mounts,
// namespaces and control groups. For the filters that programs install themselves,
// [LimitFilters] leaves little room.
//
// Minimum kernel: Linux 4.14. From 5.11 on, calls that are allowed whatever
// their arguments cost nothing; before, every call runs the program once.
package seccomp
