// Package pyrun answers a question to data that is Python code: it has a fresh
// interpreter load tables as pandas frames, run the code, and say in JSON what the
// code gave.
//
// The interpreter comes from a [cove.Kernels] and is asked three times: to load the
// tables (tables.py) and have the kernel confine it (confine.py), to run the code as it
// is, and to tell the result (values.py).
// All three happen in the sandbox and in one process, so the code can forge its own
// answer and nobody else's: what comes out is checked as anything from a sandbox.
//
// What the code can do is what landlock and a system call filter leave it, where the
// kernel of the sandbox has them; the answer says whether it has. The package opens no
// sandbox, reads no file and judges no code.
package pyrun
