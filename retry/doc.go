// Package retry makes a session that has expired, or was lost, a matter of one
// answer, not of an error: [On] returns a platform that opens the session anew and
// runs once more.
//
//	p := retry.On(platform)
//
// client.New and inprocess.Open do so unless they are told not to, so that both
// modes behave alike.
//
// # What is tried again
//
// A program (Processes.Exec) or code (Contexts.Run) whose session has expired or
// was lost with what held it, such as a node that is gone: not_found with the
// reason session_expired or node_lost, and no other. The platform refused before
// anything ran. The session is opened again by the request that opened it,
// wherever there is room, and the call is made once more in the new one. The answer
// has Recreated set and Session names the new session, since files and variables
// may be gone.
//
// Everything else is told to the caller as it is:
//
//   - another reason, such as session_closed, or node_away and no_directory, which
//     say that the session may be there still;
//   - a sandbox that was lost while something ran in it, which is a conflict;
//   - an answer that did not come: what a broken connection has done is unknown, and
//     so is what is answered with outcome_unknown;
//   - a session that was not opened here, that came from a fork, or whose
//     request was forgotten to stay within 16 MiB of memory;
//   - input that comes from a stream, or of more than 1 MiB, which is read once;
//   - output that was handed on already;
//   - code in a context that was opened by name, which is gone with its session.
//
// # What the old id means
//
// Once a session was opened anew, its old id leads to the new session, in every
// part of this platform: files, ports, Close and the rest. Calls at the same time
// open one session together. What SetNetwork was told holds for the new session.
//
// The package must not know how a platform does anything, must not run anything
// more than twice, and must not hold anything back that the platform said.
package retry
