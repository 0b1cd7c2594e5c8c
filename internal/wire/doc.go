// Package wire holds the JSON forms of Cove's public API: what a client sends,
// what the server answers, and what the command line prints with --json.
//
// Each form is a struct with the names that users see, a function XOf that
// makes it from the platform's own type, and a method Cove that goes back.
// Going there and back loses nothing but what must not travel: the hash of a
// key, the cause of an error, and fields that only the engine fills in.
//
// Units are in the names: execution_time_ms, timeout_minutes, size_mb. Bytes
// that are not UTF-8 travel in a field of the same name with _base64 added, and
// the plain field is then left out.
//
// The package must not do I/O beyond reading the body it is given, and must
// not decide anything: checks here are only those without which a request has
// no meaning. Everything else is the engine's to refuse.
package wire
