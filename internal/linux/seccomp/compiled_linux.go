package seccomp

// Compiled is [Sandbox] as it is compiled for this machine, in the form of
// [Program.Bytes]: the policy never changes while a program runs, and compiling
// it would take a good part of the time in which a sandbox is made. A test
// compares the two.
func Compiled() []byte { return []byte(compiledSandbox) }
