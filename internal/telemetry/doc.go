// Package telemetry turns what an engine and its HTTP API tell of themselves
// into Prometheus metrics, OpenTelemetry traces and structured log events.
//
//	metrics   names and labels are in testdata/metrics.txt, a golden file: they
//	          are part of what operators build on. Every label has a closed set of
//	          values; what is not in the set counts as "other". Tenants, users,
//	          threads and sessions are no labels.
//	traces    one span for a request with a valid key, below it one for each action
//	          on the road, and below that its parts. Off without an endpoint. Spans
//	          wait in a bounded queue and are dropped, and counted, when it is full.
//	events    nine words, one line each, with tenant, user, thread, session,
//	          provider and duration.
//
// The package must not stop, slow down or change what it looks at, must not be
// linked into the lean program, and must not get hold of a command, a path, a
// file, a secret or a message: cove.Observer hands out none of them.
package telemetry
